"""Sessions as files of other programs: the same one back, any turn as a new one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from transcripts import ROLLOUT, TALK, call, codex, item, result, said, text, user, written

from snapstore import InvalidInput, Refused, Store, formats
from snapstore.store import open_store
from snapstore.transfer.exports import FORMATS, Export, Wish, export, sanitized, uuid7
from snapstore.transfer.imports import import_transcript
from snapstore.transfer.install import install, project_folder

TIME = 1_900_000_000_000_000


@pytest.fixture
def store() -> Store:
    return open_store("memory://", clock=lambda: TIME)


def bring(store: Store, rows: list[Any], name: str = "t") -> None:
    import_transcript(store, formats.read(written(rows), "t.jsonl"), name=name)


def out(store: Store, revision: str, format: str = "claude-code", **wish: Any) -> Export:
    found = store.revision(revision)
    return export(store, found.snapshot, found.session, Wish(format, **wish))


def rows_of(made: Export) -> list[dict[str, Any]]:
    return [json.loads(line) for line in made.data.splitlines()]


def uuids(rows: list[dict[str, Any]]) -> list[str]:
    return [row["uuid"] for row in rows if "uuid" in row]


def is_whole(rows: list[dict[str, Any]]) -> bool:
    """Whether Claude Code finds every parent, and one session id."""
    known = {row["uuid"] for row in rows} | {None}
    parents = {row["parentUuid"] for row in rows} | {row.get("logicalParentUuid") for row in rows}
    return parents <= known and len({row["sessionId"] for row in rows}) == 1


# --- the same session ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "format", "session_id"),
    [(TALK, "claude-code", "S"), (ROLLOUT, "codex", "T"), (TALK[1:2], "claude-code", "S")],
)
def test_the_head_of_an_unchanged_import_is_the_file_that_it_was(
    store: Store, rows: list[Any], format: str, session_id: str
) -> None:
    bring(store, rows)
    made = out(store, "t", format)
    assert (made.data, made.is_original, made.session_id) == (written(rows), True, session_id)


def test_it_is_so_again_after_a_rewind_was_undone(store: Store) -> None:
    bring(store, TALK)
    session = store.session("t")
    session.rewind(1)
    assert not out(store, "t").is_original
    session.undo()
    assert out(store, "t").is_original


@pytest.mark.parametrize(
    ("revision", "wish"),
    [("t@1", {}), ("fork", {}), ("t", {"fresh": True}), ("t", {"cwd": "/elsewhere"}),
     ("t", {"change": sanitized})],
)  # fmt: skip
def test_anything_else_is_a_new_session(store: Store, revision: str, wish: dict[str, Any]) -> None:
    bring(store, TALK)
    store.fork(store.resolve("t"), "fork")
    made = out(store, revision, **wish)
    assert not made.is_original
    assert UUID(made.session_id).version == 4
    assert {row["sessionId"] for row in rows_of(made)} == {made.session_id}


# --- turns and branches ----------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("rows", [TALK, ROLLOUT], ids=["of claude", "of codex"])
def test_a_turn_holds_nothing_of_later_ones(store: Store, rows: list[Any], format: str) -> None:
    bring(store, rows)
    early, whole = (out(store, revision, format).data.decode() for revision in ("t@1", "t@2"))
    assert "count the files" in early and "second" not in early
    assert "and now the second" in whole and "the second answer" in whole


def test_a_turn_is_its_own_rows_with_every_parent_and_pair(store: Store) -> None:
    bring(store, TALK)
    rows = rows_of(out(store, "t@1"))
    assert uuids(rows) == ["u1", "a1", "a2", "r1", "r2", "a3"]
    assert is_whole(rows)
    assert rows[3]["toolUseResult"] == TALK[4]["toolUseResult"]


def test_thinking_and_signatures_are_untouched(store: Store) -> None:
    bring(store, TALK)
    reply = next(row for row in rows_of(out(store, "t@1")) if row["uuid"] == "a3")
    assert reply["message"] == TALK[6]["message"]


def test_a_branch_is_its_own_way_from_the_root(store: Store) -> None:
    bring(store, [*TALK, user("u3", "a3", "another way"), said("a5", "u3", text("yes"))])
    branch = rows_of(out(store, "t/branch-1"))
    assert uuids(branch)[-2:] == ["u2", "a4"]
    assert "another way" not in json.dumps(branch)
    assert is_whole(branch)


def test_a_parent_that_is_not_in_the_file_gives_way_to_the_row_before(store: Store) -> None:
    lost = [user("u1", "gone", "one"), said("a1", "u1", text("1")), user("u2", "lost", "two")]
    bring(store, [*lost, said("a2", "u2", text("2")), user("u3", "a2", "three")])
    rows = rows_of(out(store, "t@2"))
    assert [row["parentUuid"] for row in rows] == [None, "u1", "a1", "u2"]


def test_after_a_compaction_the_rows_before_it_come_along(store: Store) -> None:
    boundary = user("b1", None, "") | {
        "type": "system", "subtype": "compact_boundary", "logicalParentUuid": "a4",
    }  # fmt: skip
    del boundary["message"]
    summary = user("s1", "b1", "what was said", isCompactSummary=True)
    bring(store, [*TALK, boundary, summary, user("u3", "s1", "go on"), user("u4", "u3", "later")])
    rows = rows_of(out(store, "t@3"))
    assert uuids(rows)[-3:] == ["b1", "s1", "u3"]
    assert is_whole(rows)


def test_an_agents_rows_become_a_session_that_can_be_resumed(store: Store) -> None:
    aside = {"isSidechain": True, "agentId": "x"}
    errand = [user("s1", None, "errand", **aside), said("s2", "s1", text("done"), **aside)]
    bring(store, [*TALK[:7], *errand])
    rows = rows_of(out(store, "t/sidechain-1"))
    assert uuids(rows) == ["s1", "s2"]
    assert not any(row["isSidechain"] or "agentId" in row for row in rows)


def test_paths_below_the_old_directory_lead_below_the_new_one(store: Store) -> None:
    deep = [{**row, "cwd": "/w/sub"} if row.get("uuid") == "a4" else row for row in TALK]
    bring(store, [*deep, user("u3", "a4", "x", cwd="/other")])
    cwds = [row["cwd"] for row in rows_of(out(store, "t", cwd="/new"))]
    assert (cwds[0], cwds[-2], cwds[-1]) == ("/new", "/new/sub", "/other")


def test_what_was_said_here_since_is_added_after_the_last_row(store: Store) -> None:
    bring(store, TALK)
    session = store.session("t")
    session.history.append({"role": "user", "content": "from here"})
    session.history.append({"role": "assistant", "content": "yes"})
    session.save()
    rows = rows_of(out(store, "t"))
    assert [row["parentUuid"] for row in rows[-2:]] == ["a4", rows[-2]["uuid"]]
    assert rows[-1]["message"]["content"] == [{"type": "text", "text": "yes"}]
    assert is_whole(rows)


def test_a_history_that_was_changed_here_is_told_anew(store: Store) -> None:
    bring(store, TALK)
    session = store.session("t")
    session.history[:] = [{"role": "user", "content": "only this"}]
    session.save()
    rows = rows_of(out(store, "t"))
    assert [row["message"]["content"] for row in rows] == ["only this"]


def test_a_session_of_ones_own_goes_out_too(store: Store) -> None:
    session = store.session("own")
    session.history.append({"role": "user", "content": "a"})
    session.history.append({"role": "assistant", "content": "b"})
    session.save()
    made = out(store, "own", here="/here")
    rows = rows_of(made)
    assert is_whole(rows)
    assert (made.cwd, rows[0]["cwd"], rows[0]["type"], rows[1]["type"]) == (
        "/here", "/here", "user", "assistant",
    )  # fmt: skip


@pytest.mark.parametrize("format", ["claude-code", "codex"])
def test_what_goes_out_comes_in_again_as_the_same_history(store: Store, format: str) -> None:
    bring(store, TALK if format == "claude-code" else ROLLOUT)
    session = store.session("t")
    session.rewind(1)
    again = out(store, "t", format)
    import_transcript(store, formats.read(again.data, "x.jsonl"), name="again")
    assert list(store.session("again").history) == list(session.history)


# --- Codex -----------------------------------------------------------------------------------


def test_a_rollout_begins_with_what_it_is(store: Store) -> None:
    bring(store, ROLLOUT)
    made = out(store, "t@1", "codex", cwd="/new")
    first, *rows = rows_of(made)
    assert (first["type"], first["payload"]["id"]) == ("session_meta", made.session_id)
    assert UUID(made.session_id).version == 7
    assert first["payload"]["cwd"] == "/new"
    assert "model_provider" not in first["payload"]  # Codex refuses to go on with another one
    context = next(row for row in rows if row["type"] == "turn_context")
    assert context["payload"]["cwd"] == "/new/sub"


def test_numbers_of_rows_and_rows_of_another_thread_are_left_out(store: Store) -> None:
    numbered = [{**row, "ordinal": n} for n, row in enumerate(ROLLOUT)]
    numbered[0]["payload"] = {**numbered[0]["payload"], "history_base": {"thread_id": "P"}}
    bring(store, numbered)
    rows = rows_of(out(store, "t@2", "codex", fresh=True))
    assert not any("ordinal" in row for row in rows)
    assert "history_base" not in rows[0]["payload"]
    assert "task_complete" not in json.dumps(rows)


def test_what_was_rolled_back_is_not_told(store: Store) -> None:
    back = codex("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    end = codex("event_msg", {"type": "agent_message", "message": "the second is over"})
    bring(store, [*ROLLOUT, end, back, item("user", "another way"), item("assistant", "yes")])
    told = json.dumps(rows_of(out(store, "t", "codex", fresh=True)))
    assert "another way" in told and "count the files" in told
    assert "second" not in told and "rolled_back" not in told


def test_ids_of_threads_grow_with_time() -> None:
    ids = [uuid7(n) for n in (1, 2, 3_000_000_000_000)]
    assert ids == sorted(ids)
    assert {(i.version, i.variant) for i in ids} == {(7, "specified in RFC 4122")}


# --- between programs ------------------------------------------------------------------------


def test_claudes_session_as_a_rollout_tells_what_it_could_not_carry(store: Store) -> None:
    bring(store, TALK)
    made = out(store, "t@1", "codex")
    payloads = [row["payload"] for row in rows_of(made) if row["type"] == "response_item"]
    assert [payload["type"] for payload in payloads] == [
        "message", "function_call", "function_call",
        "function_call_output", "function_call_output", "message",
    ]  # fmt: skip
    assert dict(made.losses) == {"thinking blocks (only the model's own API reads them)": 1}


def test_a_rollout_as_claudes_session(store: Store) -> None:
    bring(store, ROLLOUT)
    made = out(store, "t@1", "claude-code")
    rows = rows_of(made)
    assert [row["type"] for row in rows] == ["user", "assistant", "user", "assistant"]
    assert is_whole(rows)
    assert made.cwd == "/w"
    assert {what for what, _ in made.losses} == {
        "contexts that Codex put in",
        "reasoning blocks (only the model's own API reads them)",
    }


# --- plain -----------------------------------------------------------------------------------


def test_messages_are_the_array_as_it_is_stored(store: Store) -> None:
    bring(store, TALK)
    made = out(store, "t", "messages")
    assert json.loads(made.data) == [json.loads(json.dumps(m)) for m in store.session("t").history]


def test_a_file_of_messages_comes_out_as_it_was(store: Store) -> None:
    data = json.dumps([{"role": "user", "content": "hi"}], indent=4).encode()
    import_transcript(store, formats.read(data, "chat.json"), name="t")
    assert out(store, "t", "messages").data == data


def test_markdown_shows_what_was_said_called_and_answered(store: Store) -> None:
    answer = "it holds ``` itself"
    rows = [user("u1", None, "look"), said("a1", "u1", text("I look"), call("ls"))]
    rows += [user("r1", "a1", result("ls", answer)), said("a2", "r1", text("that is all"))]
    bring(store, rows)
    page = out(store, "t", "markdown").data.decode()
    for line in ("# t", "## User", "look", "## Assistant", "I look", "**Call** `Bash`", "ls",
                 "**Result**", "````", answer, "that is all"):  # fmt: skip
        assert line in page.splitlines()
    assert page.count("## Assistant") == 1


def test_sanitized_texts_can_be_read_by_every_program(store: Store) -> None:
    bring(store, [user("u1", None, "half \ud83d"), said("a1", "u1", text("ok 🎉"))])
    raw = out(store, "t")
    assert b"\\ud83d" in raw.data
    clean = out(store, "t", change=sanitized)
    assert b"\\ud83d" not in clean.data and "half \ufffd" in clean.data.decode()
    assert "🎉" in clean.data.decode()


# --- where the program looks -----------------------------------------------------------------


def test_installed_sessions_lie_where_the_program_looks(store: Store, tmp_path: Path) -> None:
    bring(store, TALK)
    made = out(store, "t@1")
    installed = install(made, tmp_path)
    assert installed.path == tmp_path / "projects" / "-w" / f"{made.session_id}.jsonl"
    assert installed.command == ("claude", "--resume", made.session_id)
    assert installed.path.read_bytes() == made.data
    assert installed.path.stat().st_mode & 0o777 == 0o600
    thread = out(store, "t@1", "codex")
    place = install(thread, tmp_path).path
    assert place.parent == tmp_path / "sessions" / "2030" / "03" / "17"
    assert place.name == f"rollout-2030-03-17T17-46-40-{thread.session_id}.jsonl"


def test_a_session_that_may_be_going_on_is_never_written_into(store: Store, tmp_path: Path) -> None:
    bring(store, TALK)
    made = out(store, "t")
    first = install(made, tmp_path)
    assert first.written
    assert not install(made, tmp_path).written  # the very same file: nothing to do
    first.path.write_bytes(made.data + b"{}\n")
    with pytest.raises(Refused):
        install(made, tmp_path)
    assert first.path.read_bytes() == made.data + b"{}\n"
    assert [path.name for path in first.path.parent.iterdir()] == [first.path.name]


def test_only_programs_have_a_place_for_sessions(store: Store, tmp_path: Path) -> None:
    bring(store, TALK)
    with pytest.raises(InvalidInput):
        install(out(store, "t", "markdown"), tmp_path)


@pytest.mark.parametrize(
    ("cwd", "folder"),
    [
        ("/home/me/pr_x.y", "-home-me-pr-x-y"),
        ("/日本", "---"),
        # Cut, and ended with the hash that Claude Code 2.1.332 was seen to use:
        (
            "/home/me/projects/" + "/".join(["long_Ünicode-dir.x" * 5] * 3),
            "-home-me-projects-" + "-".join(["long--nicode-dir-x" * 5] * 3)[:182] + "-vcnp1y",
        ),
    ],
)
def test_folders_of_projects_are_called_as_the_program_calls_them(cwd: str, folder: str) -> None:
    assert project_folder(cwd) == folder
