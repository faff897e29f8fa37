"""What ignore rules leave out, held against git itself."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pictures import fill

from snapstore import Session
from snapstore.worktree.ignore import Rules


def ignored(texts: dict[str, str], path: str) -> bool:
    """Whether rules in these directories leave a path out, or a directory above it."""
    names = path.rstrip("/").split("/")
    for depth in range(1, len(names) + 1):
        rules = Rules()
        for level in range(depth):
            text = texts.get("/".join(names[:level]))
            rules = rules.within(level, [text.encode()] if text is not None else [])
        if rules.ignores(names[:depth], depth < len(names) or path.endswith("/")):
            return True
    return False


@pytest.mark.parametrize(
    ("rules", "path", "out"),
    [
        ("*.log", "a/b.log", True),
        ("/b.log", "a/b.log", False),
        ("build/", "build", False),
        ("build/", "build/", True),
        ("build/\n!build/keep", "build/keep", True),
        ("build/*\n!build/keep", "build/keep", False),
        ("*\n!*.py\n!*/", "a/b.py", False),
        ("a/**/z", "a/b/c/z", True),
        ("# *.log\n\\#x", "#x", True),
        ("x \\ny", "x", True),
        ("\ufeff*.log", "b.log", True),
        ("*.log\r\n*.tmp\r\n", "b.log", True),
        ("[", "[", False),
        ("a/**/", "a/b/", True),
        ("a/**/", "a/b", False),
        ("a/**\n!a/keep", "a/keep", False),
        ("a\n!/b/", "b/a", True),
        ("caf\u00e9", "caf\u00e9", True),
    ],
)
def test_patterns_mean_what_they_mean_to_git(rules: str, path: str, out: bool) -> None:
    assert ignored({"": rules.replace("\\n", "\n")}, path) is out


def test_a_deeper_directory_decides_over_those_above() -> None:
    assert not ignored({"": "*.log", "a": "!keep.log"}, "a/keep.log")
    assert ignored({"": "*.log", "a": "!keep.log"}, "a/other.log")
    assert ignored({"a": "x"}, "a/x") and not ignored({"a": "x"}, "x")


PATTERNS = st.sampled_from([
    "a", "/a", "a/", "a/**/", "a/**", "*", "*.x", "b/*", "**/c", "[ab]", "?", "#",
    "!*", "!*.x", "!a", "!a/", "!b/c", "!b/**", "!/b/",
])  # fmt: skip
PATHS = ["a", "b/a", "b/c", "b/c.x", "c/a/b", "c/c/c.x", "d.x", "b/d/a/x"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is what this is held against")
@settings(deadline=None, max_examples=40)
@given(st.dictionaries(st.sampled_from(["", "b", "c/a"]), st.lists(PATTERNS, max_size=4)))
def test_nested_rules_leave_out_what_git_leaves_out(
    tmp_path_factory: pytest.TempPathFactory, rules: dict[str, list[str]]
) -> None:
    root = tmp_path_factory.mktemp("repo")
    texts = {folder: "\n".join(lines) for folder, lines in rules.items()}
    fill(root, dict.fromkeys(PATHS, ""))
    fill(root, {f"{folder}/.gitignore".lstrip("/"): text for folder, text in texts.items()})
    git = ["git", "-c", "core.excludesFile=/dev/null", "-C", str(root)]
    subprocess.run([*git, "init", "-q"], check=True)
    listed = [*git, "ls-files", "--others", "--exclude-standard"]
    seen = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split("\n")
    assert {path for path in PATHS if not ignored(texts, path)} == set(seen) & set(PATHS)
    shutil.rmtree(root)


# --- in captures ----------------------------------------------------------------------------------


def captured(session: Session) -> set[str]:
    """The files that a save holds."""
    files = session.save().files
    assert files is not None
    return {path for path, entry in files.entries() if entry.kind != "dir"}


def test_snapstoreignore_goes_before_gitignore(session: Session, work: Path) -> None:
    fill(work, {".gitignore": "*.log\n", ".snapstoreignore": "!keep.log\nsecret\n"})
    fill(work, {"a.log": "", "keep.log": "", "secret": ""})
    assert captured(session) == {".gitignore", ".snapstoreignore", "keep.log"}


def test_rules_that_change_take_effect_where_nothing_else_changed(
    session: Session, work: Path
) -> None:
    fill(work, {"d/e/x.log": "1", "d/e/y": "2"})
    assert captured(session) == {"d/e/x.log", "d/e/y"}
    fill(work, {".gitignore": "*.log"})
    assert captured(session) == {"d/e/y", ".gitignore"}
    fill(work, {".gitignore": "y"})
    assert captured(session) == {"d/e/x.log", ".gitignore"}
    fill(work, {".gitignore": None})
    assert captured(session) == {"d/e/x.log", "d/e/y"}


def test_a_rule_file_that_leaves_itself_out_still_counts(session: Session, work: Path) -> None:
    fill(work, {"venv/.gitignore": "*", "venv/lib/x": "", "a": ""})
    assert captured(session) == {"a"}
    fill(work, {"venv/.gitignore": "x"})
    assert captured(session) == {"a", "venv/.gitignore"}


def test_a_link_or_a_directory_of_that_name_is_no_rule_file(
    session: Session, work: Path, tmp_path: Path
) -> None:
    (tmp_path / "rules").write_text("*")
    (work / ".gitignore").symlink_to(tmp_path / "rules")
    (work / ".snapstoreignore").mkdir()
    fill(work, {"a": ""})
    assert captured(session) == {".gitignore", "a"}
