"""Messages nested far deeper than Python recurses: whatever walks values gets through them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shell import Shell

import snapstore
from snapstore import Store
from snapstore.formats.write_markdown import markdown
from snapstore.maintenance.purge import purge
from snapstore.maintenance.redact import redact, signed_thinking
from snapstore.maintenance.scan import Scan
from snapstore.transfer.exports import Wish, export
from snapstore.transfer.exports import sanitized as clean

DEPTHS = [4_000, pytest.param(100_000, marks=pytest.mark.slow)]
SECRET = "ghp_" + "a1B2c3D4e5F6" * 3


def nested(leaf: str, depth: int = 4_000) -> Any:
    """Lists and dicts by turns."""
    value: Any = leaf
    for level in range(depth):
        value = [value] if level % 2 else {"key": value}
    return value


def message(leaf: str, depth: int = 4_000) -> dict[str, Any]:
    """A message whose thinking, which is signed, is deep."""
    thinking = {"type": "thinking", "thinking": "so", "deep": nested(leaf, depth)}
    return {"role": "user", "content": [thinking]}


@pytest.fixture(scope="module", params=DEPTHS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sessions a and b, whose second turns hold such messages, in .snapstore."""
    depth: int = request.param
    made = tmp_path_factory.mktemp("deep")
    with snapstore.open(made / ".snapstore", durable=False) as store:
        session = store.session("a")
        session.history.append({"role": "user", "content": "hello"})
        session.save("first")
        other = session.fork("b")
        for one, leaf in ((session, SECRET), (other, "leaf")):
            one.history.append(message(leaf, depth))
            one.save("deep")
        tool = {"type": "tool_use", "id": "t", "name": "f", "input": nested("leaf", depth)}
        session.history.append({"role": "assistant", "content": [tool]})
        result = {"type": "tool_result", "tool_use_id": "t", "content": nested("leaf", depth)}
        session.history.append({"role": "user", "content": [result]})
        session.scratchpad["deep"] = nested("leaf", depth)
        session.save("deeper")
    return made


@pytest.fixture
def store(folder: Path) -> Any:
    """That store."""
    with snapstore.open(folder / ".snapstore", create=False) as opened:
        yield opened


def _exported(store: Store, form: str) -> bytes:
    return export(store, store.resolve("a"), "a", Wish(form)).data


WALKS: dict[str, Callable[[Store], object]] = {
    "scan": lambda store: len(list(Scan(store).findings())) == 1,
    "purge": lambda store: purge(store, SECRET).messages == 1,
    "verify": lambda store: store.verify() == [],
    "stats": lambda store: store.stats()["turns"],
    "diff": lambda store: store.diff("a", "b").left,
    "redact": lambda store: redact(message(SECRET)),
    "signed thinking": lambda store: signed_thinking(message("a"), message("b")),
    "sanitize": lambda store: clean(message("leaf")),
    "markdown": lambda store: "".join(markdown(store.resolve("a").history, "a")),
    "summary": lambda store: store.session("a").scratchpad.summary(),
    "pending": lambda store: store.session("a").pending_tool_calls == [],
    "save": lambda store: store.session("a").save("deeper").turn,
    **{
        form: lambda store, form=form: _exported(store, form)  # type: ignore[misc]
        for form in ("messages", "markdown", "claude-code", "codex")
    },
}


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
def test_the_library_gets_through_it(store: Store, walk: Callable[[Store], object]) -> None:
    assert walk(store)


COMMANDS = [
    "show a", "show a --json", "diff a b", "diff a b --stat", "diff a b --json",
    "diff a b --html page.html", "log a --grep zzz", "find leaf", "scratch list",
    "scratch get deep", "scratch summary", "resume a", "resume a --format codex",
    "export a --format markdown", "export a --format markdown --redact", "export a --format html",
    "export --all --format html -o all.html", "export a --format messages -o messages.json",
    "export a --format bundle -o a.bundle", "scan", "purge --match leaf", "verify", "doctor",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_get_through_it(folder: Path, shell: Shell, command: str) -> None:
    told = shell("--store", str(folder / ".snapstore"), *command.split())
    assert told.code in (0, 1), told.err[-300:]


TEXT = '{"key": [' * 2_000 + f'"{SECRET}"' + "]}" * 2_000


@pytest.mark.parametrize("options", [(), ("--redact",)], ids=["", "redacted"])
def test_it_is_saved_and_imported_or_told_about(shell: Shell, options: tuple[str, ...]) -> None:
    line = f'{{"role": "user", "content": {TEXT}}}\n'
    shell.ok("save", "-s", "saved", "--messages", "-", *options, stdin=line)
    path = shell.folder / "messages.jsonl"
    path.write_text(json.dumps({"role": "user", "content": "hello"}) + "\n" + line)
    told = shell.ok("import", str(path), *options, "--json")
    assert "nested too deeply" in told.json["sessions"][0]["warnings"][0]


def test_a_task_file_that_is_nested_so_is_refused(shell: Shell) -> None:
    deep = "[" * 40_000 + "]" * 40_000
    path = shell.folder / "task.toml"
    path.write_text(f'name = "t"\n[[phase]]\nname = "p"\nrun = "true"\nneeds = {deep}\n')
    told = shell("task", "run", str(path))
    assert told.code == 2 and "nested too deeply" in told.err


def test_a_deep_text_is_purged_for_good(shell: Shell) -> None:
    with shell.open() as store:
        session = store.session("a")
        session.history.append(message(SECRET))
        session.save("deep")
    shell.ok("purge", "--match", SECRET, "--apply")
    shell.ok("verify")
    assert shell.ok("scan").lines == []
