"""What happens on the tour, step by step."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from snapstore_cli.tour.scratch import Scratch

_SAVED = "saved turn "
_OTHER_WAY = [
    {"role": "user", "content": "Keep the sessions in Redis instead."},
    {"role": "assistant", "content": "Done: a session outlives a restart of the server."},
]
_ENOUGH = 40
"""Turns that the busy agent saves before it is killed."""


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the story."""

    title: str
    text: str
    act: Callable[[Scratch], None]


def _save_turn_by_turn(scratch: Scratch) -> None:
    scratch.command("init")
    scratch.show_program("agent.py")
    scratch.program("agent.py", "3")
    scratch.check("three turns are saved", holds=_turn(scratch, "fix-login") == 3)


def _die_in_a_save(scratch: Scratch) -> None:
    before = scratch.ask("resume", "fix-login")
    scratch.show_program("dies.py")
    scratch.program_that_dies("dies.py")
    scratch.command("verify")
    scratch.command("log", "fix-login")
    after = scratch.ask("resume", "fix-login")
    scratch.check(_balance(3, after.get("turn", 0)), holds=bool(after) and after == before)


def _go_on(scratch: Scratch) -> None:
    scratch.command("resume", "fix-login")
    scratch.program("agent.py", "1")
    scratch.check("it went on with turn 4", holds=_turn(scratch, "fix-login") == 4)


def _die_at_any_moment(scratch: Scratch) -> None:
    scratch.show_program("busy.py")
    printed = scratch.kill_while_it_prints("busy.py", _ENOUGH)
    said = int(printed[-1].removeprefix(_SAVED)) if printed else 0
    scratch.command("--store", "busy", "log", "busy", "-n", "2")
    found = _turn(scratch, "busy", store="busy")
    scratch.check(_balance(said, found), holds=said > 0 and found in (said, said + 1))


def _balance(said: int, found: int) -> str:
    told = f"it had said that {said} turns are saved, and {found} are there"
    return f"{told}: it died before it could say so of the last" if found == said + 1 else told


def _go_back(scratch: Scratch) -> None:
    before = scratch.ask("status", "-s", "fix-login").get("head")
    scratch.command("rewind", "fix-login@2")
    scratch.command("log", "fix-login")
    scratch.check("HEAD is turn 2", holds=_turn(scratch, "fix-login") == 2)
    scratch.command("undo", "-s", "fix-login")
    after = scratch.ask("status", "-s", "fix-login").get("head")
    scratch.check("undo brought turn 4 back", holds=after is not None and after == before)


def _try_another_way(scratch: Scratch) -> None:
    scratch.command("fork", "fix-login@2", "try-redis", "--switch")
    scratch.command(
        "save", "-m", "Redis", "--set", "redis=true", "--messages", "-",
        stdin=json.dumps(_OTHER_WAY),
    )  # fmt: skip
    scratch.command("diff", "fix-login", "try-redis")
    found = scratch.ask("diff", "fix-login", "try-redis")
    parted = bool(found) and (
        found["base"]["turn"],
        len(found["left"]["turns"]),
        len(found["right"]["turns"]),
    )
    scratch.check("they part at turn 2: two turns on one side, one on the other",
                  holds=parted == (2, 2, 1))  # fmt: skip


def _look_around(scratch: Scratch) -> None:
    scratch.command("scratch", "summary", "-s", "try-redis")
    scratch.command("log", "--graph", "--all")
    scratch.command("sessions")
    names = [session["name"] for session in scratch.ask("sessions").get("sessions", ())]
    scratch.check("both sessions are listed", holds=sorted(names) == ["fix-login", "try-redis"])


def _bring_files_back(scratch: Scratch) -> None:
    scratch.shell("mkdir project && echo 'port = 8080' > project/config.toml")
    scratch.shell("echo '# Login' > project/README.md && echo notes > project/notes.txt")
    scratch.command("save", "-s", "fix-login", "-m", "before", "--worktree", "project")
    before = scratch.contents("project")
    scratch.show_program("edits.py")
    scratch.program("edits.py")
    scratch.shell("rm project/README.md && mkdir project/logs && date > project/logs/today")
    scratch.command("save", "-s", "fix-login", "-m", "after")
    scratch.shell("echo 'typed by hand' >> project/notes.txt")
    by_hand = scratch.contents("project")
    scratch.command("status", "-s", "fix-login")
    scratch.command("rewind", "fix-login@5", "--what", "messages,scratchpad,files")
    scratch.check("the edits of the agent, of the shell and by hand are gone",
                  holds=scratch.contents("project") == before)  # fmt: skip
    scratch.command("undo", "-s", "fix-login")
    scratch.check("and undo brought them back, the one by hand too",
                  holds=scratch.contents("project") == by_hand)  # fmt: skip


def _take_care(scratch: Scratch) -> None:
    for name, store in ((".snapstore", ()), ("busy", ("--store", "busy"))):
        scratch.command(*store, "stats")
        scratch.command(*store, "verify")
        sound = scratch.ask(*store, "verify").get("ok") is True
        scratch.check(f"nothing is damaged in {name}", holds=sound)


def _turn(scratch: Scratch, session: str, *, store: str = ".snapstore") -> int:
    turn: int = scratch.ask("--store", store, "status", "-s", session).get("turn", -1)
    return turn


STORY = (
    Step(
        "An agent saves every turn",
        "A turn is messages and a scratchpad. When save() returns, it is on the disk.",
        _save_turn_by_turn,
    ),
    Step(
        "It is killed in the middle of a save",
        "Half of turn 4 reaches the disk. What was saved before stays as it was, and the torn\n"
        "half is found and counts for nothing.",
        _die_in_a_save,
    ),
    Step(
        "A new process goes on",
        "It knows nothing but the name of the session.",
        _go_on,
    ),
    Step(
        "An agent is killed at any moment",
        "Save after save, and a SIGKILL in whichever it happens to be.",
        _die_at_any_moment,
    ),
    Step(
        "Back to turn 2, and forth again",
        "A rewind moves HEAD and loses nothing: undo takes it back.",
        _go_back,
    ),
    Step(
        "Another way from turn 2",
        "A fork shares what came before. A diff tells what each side did since.",
        _try_another_way,
    ),
    Step(
        "All of it at a glance",
        "The summary of a scratchpad is made to be put into a prompt.",
        _look_around,
    ),
    Step(
        "Files go back too",
        "A session can have a directory: each save captures it. Whoever changed a file since, a\n"
        "rewind brings it back, and undo brings back what the rewind found.",
        _bring_files_back,
    ),
    Step(
        "What it takes, and whether it is sound",
        "Stored once is what turns share. Every byte is read again and checked against its hash.",
        _take_care,
    ),
)
