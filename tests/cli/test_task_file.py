"""The TOML files of tasks: what they may say, and how errors name their line."""

from __future__ import annotations

import pytest

from snapstore import InvalidInput
from snapstore_cli.task.file import CommandPhase, TaskFile, parse

WHOLE = """
name = "release"

[[phase]]
name = "build"
run = '''
make
[[phase]]
'''
cwd = "app"
env = { LEVEL = "3" }
timeout = 1.5
retries = 2
needs = []
version = 4

[[ phase ]]
"name" = "upload"
run = "./upload.sh"
needs = ["build"]
"""


def test_a_file_says_what_the_phases_are() -> None:
    build = CommandPhase(
        "build", "make\n[[phase]]\n", "app", {"LEVEL": "3"}, 1.5, 2, needs=(), version=4
    )
    assert parse(WHOLE, "f") == TaskFile(
        "release", (build, CommandPhase("upload", "./upload.sh", needs=("build",)))
    )


def test_a_task_may_have_no_phases() -> None:
    assert parse('name = "x"', "f") == TaskFile("x", ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[phase]\n", r"f: .*line 1"),
        ('name = "x"\nname = "y"\n', r"f: .*line 2"),
        ('[[phase]]\nname = "a"\nrun = "b"\n', "f: line 1: a task has a name"),
        ("name = 3\n", "f: line 1: a task has a name"),
        ('\nname = "x"\nphases = 1\n', "f: line 3: there is no key 'phases'"),
        ('name = "x"\n\n[phase]\nname = "a"\n', "f: line 3: phases are tables"),
        ('name = "x"\nphase = [1]\n', "f: line 2: phases are tables"),
        ('name = "x"\n[[phase]]\nname = "a"\n', "f: line 2: phase 1 has no run"),
        ('name = "x"\n[[phase]]\nrun = "a"\n', "f: line 2: phase 1 has no name"),
        ('name = "x"\n[[phase]]\nname = "a"\nrum = "b"\n', "f: line 4: a phase has no key 'rum'"),
        ('name = "x"\n[[phase]]\nname="a"\nrun="b"\n[[phase]]\nname="c"\nrun=["d"]\n',
         r"f: line 7: run is a command, not \['d'\]"),
        ('name = "x"\n[[phase]]\nname="a"\nrun="b"\n[[phase]]\nname="a"\nrun="d"\n',
         "f: line 6: there are two phases 'a'"),
        ('name = "x"\n[[phase]]\nname="a"\nrun="b"\nneeds=["c"]\n',
         "f: line 5: 'a' needs 'c', which is no phase"),
        ('name = "x"\n[[phase]]\nname="a"\nrun="b"\n[phase.env]\nX=1\n',
         r"f: line 2: env is a table of texts"),
        *(
            (f'name="x"\n[[phase]]\nname="a"\nrun="b"\n{key} = {value}\n', f"f: line 5: {key} is")
            for key, value in (
                ("timeout", "0"), ("timeout", "true"), ("timeout", '"1"'), ("retries", "-1"),
                ("retries", "1.5"), ("retries", "true"), ("needs", '"a"'), ("needs", "[1]"),
                ("version", "1.5"), ("env", '"X=1"'), ("env", "{ X = 1 }"), ("cwd", '""'),
            )
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        parse(text, "f")
