"""Events of a harness: what is saved at each, with the transcript as it stands on disk then."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from harness import Claude, Codex, event
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore import Snapshot, Store, formats
from snapstore.integrations.hooks import Done, catch_up, handle, history, read_event
from snapstore.transfer.imports import import_transcript
from snapstore.worktree.known import known_paths


def happens(store: Store, told: bytes, **how: Any) -> Done:
    found = read_event(told)
    assert found is not None
    return handle(store, found, **how)


def names(store: Store) -> list[str]:
    return [info.name for info in store.sessions()]


def heads(store: Store) -> dict[str, str]:
    return {info.name: info.head for info in store.sessions()}


def head(store: Store, name: str) -> Snapshot:
    found = store.session(name).head
    assert found is not None
    return found


def text_of(turn: Snapshot, path: str = "a.txt") -> str | None:
    return None if turn.files is None else turn.files.read(path).decode()  # type: ignore[attr-defined]


def moves(store: Store) -> int:
    return len(list(store.engine.reflog()))


# --- a session from its first prompt to its end ------------------------------------------------


def test_a_session_of_claude_code_is_saved_turn_by_turn(
    saved: Store, claude: Claude, project: Path
) -> None:
    for name in ("SessionStart", "UserPromptSubmit", "PreToolUse"):  # there is no file yet
        happens(saved, claude.event(name))
    assert names(saved) == []
    claude.asks("make it two")
    claude.calls("t1")
    (project / "a.txt").write_text("two")
    happens(saved, claude.event("PostToolUse"))  # the result is not in the file yet
    assert names(saved) == []
    claude.gets("t1")
    claude.answers("it is two")
    happens(saved, claude.event("Stop", last_assistant_message="it is two"))
    assert names(saved) == ["make-it-two"]
    first = head(saved, "make-it-two")
    assert (first.turn, len(first.history), text_of(first)) == (1, 4, "two")
    (project / "a.txt").write_text("two, by hand")
    happens(saved, claude.event("UserPromptSubmit"))
    claude.asks("make it three")
    (project / "a.txt").write_text("three")
    happens(saved, claude.event("PostToolUseFailure"))
    claude.answers("it is three")
    happens(saved, claude.event("Stop", last_assistant_message="it is three"))
    second = head(saved, "make-it-two")
    assert (second.turn, second.parent, text_of(second)) == (2, first.id, "three")
    claude.add({"type": "last-prompt", "leafUuid": claude.tip, "sessionId": "S1"})
    happens(saved, claude.event("SessionEnd", reason="other"))
    last = head(saved, "make-it-two")
    assert (last.turn, list(last.history), text_of(last)) == (2, list(second.history), "three")
    assert saved.verify() == []


def test_a_session_of_codex_is_saved_turn_by_turn(
    saved: Store, tmp_path: Path, project: Path
) -> None:
    codex = Codex(tmp_path / "codex", project)
    happens(saved, codex.event("UserPromptSubmit", prompt="make it two"))
    assert names(saved) == []
    codex.asks("make it two")
    codex.calls("c1")
    (project / "a.txt").write_text("two")
    happens(saved, codex.event("PostToolUse", tool_response="ok"))
    assert names(saved) == []
    codex.gets("c1")
    codex.answers("it is two")
    happens(saved, codex.event("Stop", last_assistant_message="it is two"))
    first = head(saved, "make-it-two")
    assert (first.turn, text_of(first)) == (1, "two")
    codex.asks("and now?")
    codex.answers("still two")
    happens(saved, codex.event("Stop", last_assistant_message="still two"))
    happens(saved, codex.event("SessionEnd", reason="other"))
    assert [turn.turn for turn in saved.session("make-it-two").log()] == [2, 1]
    assert all(text_of(turn) == "two" for turn in saved.session("make-it-two").log())


def test_the_files_of_a_saved_turn_come_back(saved: Store, claude: Claude, project: Path) -> None:
    for n, text in enumerate(("two", "three"), 1):
        (project / "a.txt").write_text(text)
        happens(saved, claude.event("Stop", last_assistant_message=claude.turn(f"turn {n}")))
    saved.session("turn-1").rewind(1, files=True)
    assert (project / "a.txt").read_text() == "two"


# --- the same again, late, early, at once ------------------------------------------------------


@pytest.mark.parametrize("name", ["Stop", "SessionEnd", "SubagentStop", "PreCompact"])
def test_an_event_that_comes_again_writes_nothing(saved: Store, claude: Claude, name: str) -> None:
    reply = claude.turn("hello")
    happens(saved, claude.event(name, last_assistant_message=reply))
    before = moves(saved)
    assert happens(saved, claude.event(name, last_assistant_message=reply)).settled
    assert moves(saved) == before


def test_a_stop_that_comes_again_later_keeps_the_files_of_the_first(
    saved: Store, claude: Claude, project: Path
) -> None:
    claude.turn("hello")
    happens(saved, claude.event("Stop"))
    before = heads(saved)
    (project / "a.txt").write_text("changed by hand since")
    happens(saved, claude.event("Stop"))
    assert heads(saved) == before


@pytest.mark.parametrize("early", ["SubagentStop", "PreCompact", "SessionEnd"])
def test_a_turn_saved_before_its_end_gets_the_files_of_its_end(
    saved: Store, claude: Claude, project: Path, early: str
) -> None:
    happens(saved, claude.event("UserPromptSubmit"))
    claude.turn("hello")
    happens(saved, claude.event(early))
    assert text_of(head(saved, "hello")) == "one"
    (project / "a.txt").write_text("two")
    happens(saved, claude.event("Stop"))
    assert (head(saved, "hello").turn, text_of(head(saved, "hello"))) == (1, "two")


def test_a_turn_saved_in_its_middle_is_completed_and_stays_one_turn(
    saved: Store, claude: Claude, project: Path
) -> None:
    claude.asks("hello")
    claude.calls("t1")
    happens(saved, claude.event("PreCompact"))
    claude.gets("t1")
    claude.answers("done")
    happens(saved, claude.event("Stop", last_assistant_message="done"))
    assert (head(saved, "hello").turn, len(head(saved, "hello").history)) == (1, 4)
    assert names(saved) == ["hello"]


def test_a_turn_that_goes_on_after_its_stop_gets_the_files_of_its_last_stop(
    saved: Store, claude: Claude, project: Path
) -> None:
    claude.turn("hello")
    happens(saved, claude.event("Stop"))
    claude.answers("one more thing")
    (project / "a.txt").write_text("two")
    happens(saved, claude.event("Stop", stop_hook_active=True))
    assert (head(saved, "hello").turn, text_of(head(saved, "hello"))) == (1, "two")


def test_undo_takes_back_a_whole_turn_however_many_events_saved_it(
    saved: Store, claude: Claude, project: Path
) -> None:
    claude.turn("hello")
    happens(saved, claude.event("Stop"))
    first = head(saved, "hello")
    claude.asks("more")
    happens(saved, claude.event("PreCompact"))
    claude.answers("more of it")
    (project / "a.txt").write_text("two")
    happens(saved, claude.event("Stop"))
    claude.add({"type": "last-prompt", "leafUuid": claude.tip, "sessionId": "S1"})
    happens(saved, claude.event("SessionEnd"))
    session = saved.session("hello")
    assert session.turn == 2
    assert session.undo() == first
    assert session.undo() is None


# --- transcripts that lag behind ---------------------------------------------------------------


def test_a_stop_waits_for_the_reply_that_it_tells_of(
    saved: Store, claude: Claude, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "PAUSES", (0.05,) * 20)
    claude.asks("hello")
    later = threading.Timer(0.08, claude.answers, ["good day"])
    later.start()
    done = happens(saved, claude.event("Stop", last_assistant_message="good day"))
    later.join()
    assert done.settled
    assert len(head(saved, "hello").history) == 2


def test_what_does_not_come_in_time_is_marked_and_comes_with_the_next_event(
    saved: Store, claude: Claude, project: Path
) -> None:
    claude.asks("hello")
    (project / "a.txt").write_text("two")
    done = happens(saved, claude.event("Stop", last_assistant_message="good day"))
    assert not done.settled
    tip = saved.engine.tip("sessions/hello")
    assert tip is not None and tip.info["lagging"] is True
    claude.answers("good day")
    happens(saved, claude.event("SessionEnd"))
    now = head(saved, "hello")
    assert (now.turn, len(now.history), text_of(now)) == (1, 2, "two")


def test_a_reply_is_found_however_it_is_trimmed(saved: Store, claude: Claude) -> None:
    claude.asks("hello")
    claude.answers("  good\n\nday 🙂  ")
    assert happens(saved, claude.event("Stop", last_assistant_message="good\n\nday 🙂")).settled


# --- rewinds -----------------------------------------------------------------------------------


def test_a_rewind_moves_head_to_the_new_line_and_keeps_the_old_with_its_files(
    saved: Store, claude: Claude, project: Path
) -> None:
    claude.turn("one")
    back_to = claude.tip
    happens(saved, claude.event("Stop"))
    for text in ("old way", "older way"):
        claude.turn(text)
        (project / "a.txt").write_text(text)
        happens(saved, claude.event("Stop"))
    old = head(saved, "one")
    claude.tip = back_to
    claude.turn("new way")
    (project / "a.txt").write_text("new way")
    happens(saved, claude.event("Stop"))
    new = head(saved, "one")
    assert (new.turn, new.label, text_of(new)) == (2, "new way", "new way")
    assert names(saved) == ["one", "one/branch-1"]
    assert head(saved, "one/branch-1") == old
    assert new.parent == saved.resolve("one/branch-1@1").id
    before = heads(saved)
    claude.turn("further")
    happens(saved, claude.event("Stop"))
    assert heads(saved)["one/branch-1"] == before["one/branch-1"]
    assert head(saved, "one").parent == new.id


# --- events that change nothing ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["Stop", "SubagentStop", "PreCompact", "SessionEnd"])
@pytest.mark.parametrize(
    "odd",
    [
        {"transcript_path": None},
        {"transcript_path": ""},
        {"transcript_path": 7},
        {"transcript_path": "/nonexistent/gone.jsonl"},
        {"transcript_path": "/"},
        {"transcript_path": "a\0b"},
        {"session_id": ""},
        {"session_id": None},
        {"cwd": "/nonexistent"},
        {"cwd": None},
        {"cwd": ["/"]},
    ],
    ids=str,
)
def test_an_event_that_lacks_what_it_is_about_changes_nothing(
    saved: Store, claude: Claude, name: str, odd: dict[str, Any]
) -> None:
    claude.turn("hello")
    happens(saved, claude.event("Stop"))
    claude.turn("more")
    before = moves(saved)
    happens(saved, json.dumps(json.loads(claude.event(name)) | odd).encode())
    assert moves(saved) == before


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b'{"type":"summary","summary":"x","leafUuid":"y"}\n']
)
def test_a_transcript_that_tells_nothing_moves_nothing(
    saved: Store, claude: Claude, content: bytes
) -> None:
    claude.turn("hello")
    happens(saved, claude.event("Stop"))
    before = moves(saved)
    claude.transcript.write_bytes(content)
    happens(saved, claude.event("Stop"))
    assert moves(saved) == before


def test_an_older_copy_of_the_transcript_does_not_move_head_back(
    saved: Store, claude: Claude
) -> None:
    claude.turn("hello")
    older = claude.transcript.read_bytes()
    claude.turn("more")
    happens(saved, claude.event("Stop"))
    before = heads(saved)
    claude.transcript.write_bytes(older)
    happens(saved, claude.event("Stop"))
    claude.transcript.write_bytes(older[:-30])
    happens(saved, claude.event("Stop"))
    assert heads(saved) == before


def test_a_rewritten_transcript_is_a_session_beside_the_one_it_was(
    saved: Store, claude: Claude, project: Path
) -> None:
    claude.turn("hello")
    happens(saved, claude.event("Stop"))
    before = heads(saved)
    claude.transcript.unlink()
    claude.tip = None
    claude.turn("something else")
    happens(saved, claude.event("Stop"))
    assert heads(saved)["hello"] == before["hello"]
    assert len(names(saved)) == 2


def test_a_transcript_of_another_session_gets_no_files_of_this_one(
    saved: Store, claude: Claude, tmp_path: Path, project: Path
) -> None:
    claude.turn("hello")
    happens(saved, claude.event("Stop"))
    before = heads(saved)
    other = Claude(tmp_path / "projects" / "x" / "S2.jsonl", project, "S2")
    other.turn("elsewhere")
    happens(saved, event("Stop", "S1", other.transcript, project))
    assert heads(saved)["hello"] == before["hello"]
    assert head(saved, "elsewhere").files is None


def test_a_moved_transcript_goes_on_in_its_session(
    saved: Store, claude: Claude, tmp_path: Path
) -> None:
    claude.turn("hello")
    happens(saved, claude.event("Stop"))
    moved = tmp_path / "elsewhere" / "S1.jsonl"
    moved.parent.mkdir()
    claude.transcript = claude.transcript.rename(moved)
    claude.turn("more")
    happens(saved, claude.event("Stop"))
    assert (names(saved), head(saved, "hello").turn) == (["hello"], 2)


@given(st.binary() | st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).map(lambda value: json.dumps(value).encode()))  # fmt: skip
@settings(deadline=None, max_examples=150)
def test_no_bytes_are_too_odd_to_be_read_as_an_event(data: bytes) -> None:
    found = read_event(data)
    assert found is None or all(isinstance(text, str) for text in (found.name, found.cwd))


# --- files -------------------------------------------------------------------------------------


def test_a_capture_makes_no_path_known(saved: Store, claude: Claude, project: Path) -> None:
    (project / "scratch").write_text("x")
    happens(saved, claude.event("PostToolUse"))
    (project / "scratch").unlink()
    claude.turn("hello")
    happens(saved, claude.event("Stop"))
    root = os.path.realpath(project)
    assert known_paths(saved.objects, root, (), {b"scratch", b"a.txt"}) == {b"a.txt"}


def test_what_a_capture_stored_is_reached_and_costs_the_turn_nothing(
    saved: Store, claude: Claude, project: Path
) -> None:
    (project / "big").write_bytes(os.urandom(1 << 20))
    happens(saved, claude.event("PostToolUse"))
    before = saved.stats()["bytes"]
    claude.turn("hello")
    happens(saved, claude.event("Stop"))
    assert saved.stats()["bytes"] - before < 4096


def test_captures_of_unchanged_files_write_nothing(saved: Store, claude: Claude) -> None:
    happens(saved, claude.event("UserPromptSubmit"))
    before = moves(saved)
    for _ in range(3):
        happens(saved, claude.event("PostToolUse"))
    assert moves(saved) == before


def test_the_directory_stays_the_same_when_the_harness_goes_deeper(
    saved: Store, claude: Claude, project: Path
) -> None:
    happens(saved, claude.event("SessionStart"))
    claude.cwd = project / "deep" / "er"
    claude.cwd.mkdir(parents=True)
    claude.turn("hello")
    assert happens(saved, claude.event("Stop")).root == Path(os.path.realpath(project))
    assert head(saved, "hello").worktree == os.path.realpath(project)


def test_the_directory_that_the_harness_was_started_in_counts_from_the_first_event(
    saved: Store, claude: Claude, project: Path, tmp_path: Path
) -> None:
    claude.cwd = project / "deep"
    claude.cwd.mkdir()
    done = happens(saved, claude.event("UserPromptSubmit"), project=project)
    assert done.root == Path(os.path.realpath(project))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    told = event("UserPromptSubmit", "S9", None, elsewhere)
    assert happens(saved, told, project=project).root == Path(os.path.realpath(elsewhere))


def test_a_home_is_not_captured_and_its_history_is_saved(
    saved: Store, claude: Claude, project: Path
) -> None:
    claude.turn("hello")
    done = happens(saved, claude.event("Stop"), home=project)
    assert "no files" in done.told and "home" in done.told
    assert (head(saved, "hello").turn, head(saved, "hello").files) == (1, None)


# --- beside import -----------------------------------------------------------------------------


def test_importing_what_a_hook_has_saved_writes_nothing(saved: Store, claude: Claude) -> None:
    for n in range(3):
        claude.turn(f"turn {n}")
        happens(saved, claude.event("Stop"))
    before = heads(saved), moves(saved)
    transcript = formats.read(claude.transcript.read_bytes(), claude.transcript.name)
    (found,) = import_transcript(saved, transcript, source=os.path.realpath(claude.transcript))
    assert (found.created, heads(saved), moves(saved)) == (False, *before)


def test_turns_from_before_the_hooks_stay_as_they_were(saved: Store, claude: Claude) -> None:
    claude.turn("hello")
    transcript = formats.read(claude.transcript.read_bytes(), claude.transcript.name)
    import_transcript(saved, transcript, source=os.path.realpath(claude.transcript))
    first = head(saved, "hello")
    claude.turn("more")
    happens(saved, claude.event("Stop"))
    assert head(saved, "hello").parent == first.id
    assert (first.files, text_of(head(saved, "hello"))) == (None, "one")


# --- large transcripts -------------------------------------------------------------------------


def test_a_large_transcript_is_postponed_and_saved_as_it_was_then(
    saved: Store, claude: Claude, project: Path
) -> None:
    claude.turn("hello")
    done = happens(saved, claude.event("Stop"), most=10)
    assert (names(saved), done.root) == ([], Path(os.path.realpath(project)))
    claude.turn("more")
    (project / "a.txt").write_text("two")
    assert done.postponed is not None
    assert catch_up(saved, done.postponed).settled
    assert (head(saved, "hello").turn, text_of(head(saved, "hello"))) == (1, "one")


# --- what is kept beside a transcript ----------------------------------------------------------


def test_agents_are_sessions_beside_the_one_that_called_them(
    saved: Store, claude: Claude, project: Path
) -> None:
    folder = claude.transcript.with_suffix("") / "subagents"
    agent = Claude(folder / "agent-1.jsonl", project, "A")
    agent.turn("errand")
    claude.asks("hello")
    told = claude.event("SubagentStop", last_assistant_message="answer to errand")
    assert happens(saved, told).settled
    assert names(saved) == ["hello", "hello/agent-1"]
    agent.turn("second errand")
    claude.answers("done")
    happens(saved, claude.event("Stop"))
    assert names(saved) == ["hello", "hello/agent-1"]
    assert (head(saved, "hello").turn, head(saved, "hello/agent-1").turn) == (1, 2)
    assert head(saved, "hello/agent-1").files is None


def test_many_transcripts_of_agents_are_postponed_as_one_large_one(
    saved: Store, claude: Claude, project: Path
) -> None:
    claude.turn("hello")
    most = claude.transcript.stat().st_size
    assert happens(saved, claude.event("Stop"), most=most).postponed is None
    Claude(claude.transcript.with_suffix("") / "subagents" / "agent-1.jsonl", project).turn("x")
    assert happens(saved, claude.event("Stop"), most=most).postponed is not None


# --- secrets -----------------------------------------------------------------------------------

KEY = "ghp_" + "0a1B" * 9


def test_secrets_are_left_out_when_that_is_asked_for(saved: Store, claude: Claude) -> None:
    claude.asks(f"the token is {KEY}")
    claude.answers(f"I see {KEY}")
    reply = f"I see {KEY}"
    for _ in range(2):
        told = claude.event("Stop", last_assistant_message=reply)
        assert happens(saved, told, redact=True).settled
    (name,) = names(saved)
    turn = head(saved, name)
    assert (turn.turn, len(turn.history)) == (1, 2)
    assert "[redacted:" in json.dumps(list(turn.history))
    assert KEY not in json.dumps([name, turn.label, list(turn.history)])


def test_what_is_postponed_is_redacted_too(saved: Store, claude: Claude) -> None:
    claude.turn(f"the token is {KEY}")
    done = happens(saved, claude.event("Stop"), most=10, redact=True)
    assert done.postponed is not None
    catch_up(saved, done.postponed)
    assert KEY not in json.dumps(list(head(saved, names(saved)[0]).history))
