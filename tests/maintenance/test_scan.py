"""Secrets in what was saved, each told where it first appears and never as a whole."""

from __future__ import annotations

import json
from dataclasses import astuple
from pathlib import Path

from made_up_keys import ANTHROPIC, KEYS
from stores import Place

from snapstore import Store, formats
from snapstore.maintenance.scan import Finding, Scan
from snapstore.model.maps import Inline
from snapstore.objects import Stage
from snapstore.transfer.imports import import_transcript

GITHUB, NPM = KEYS["github-token"], KEYS["npm-token"]


def findings(store: Store) -> list[Finding]:
    return list(Scan(store).findings())


def places(store: Store) -> list[tuple[str, int, str]]:
    return [(found.session, found.turn, found.where) for found in findings(store)]


def test_a_store_without_secrets_has_none(store: Store) -> None:
    session = store.session("s")
    session.history.append({"role": "user", "content": "hello"})
    session.save()
    assert findings(store) == []


def test_messages_scratchpad_label_and_meta_are_looked_at(store: Store) -> None:
    session = store.session("s")
    session.history += ["hello", {"content": [{"type": "text", "text": f"use {ANTHROPIC} now"}]}]
    session.scratchpad["k"] = {"odd key": [GITHUB]}
    session.meta["env"] = NPM
    session.save(f"with {KEYS['stripe-key']}")
    assert places(store) == [
        ("s", 1, "messages[1].content[0].text"),
        ("s", 1, 'scratchpad:k["odd key"][0]'),
        ("s", 1, "label"),
        ("s", 1, "meta.env"),
    ]


def test_a_finding_tells_the_rule_and_how_it_begins_but_not_the_secret(store: Store) -> None:
    session = store.session("s")
    session.history.append(f"use {ANTHROPIC} now")
    session.save()
    (found,) = findings(store)
    assert (found.rule, found.begins, found.length) == ("anthropic-key", "sk-a", len(ANTHROPIC))
    assert ANTHROPIC not in str(astuple(found))


def test_what_is_shared_is_told_once_at_its_first_turn(store: Store) -> None:
    session = store.session("s")
    session.history.append(ANTHROPIC)
    session.save()
    session.history.append("more")
    session.save()
    fork = session.fork("f", at=1)
    fork.history += [ANTHROPIC, GITHUB]
    fork.save()
    assert sorted(places(store)) == [("f", 1, "messages[0]"), ("f", 2, "messages[2]")]


def test_an_unchanged_scratchpad_is_told_once(store: Store) -> None:
    session = store.session("s")
    session.scratchpad["k"] = ANTHROPIC
    session.save()
    session.scratchpad["other"] = "plain"
    session.save()
    assert places(store) == [("s", 1, "scratchpad:k")]


def test_tags_deleted_sessions_and_rewound_turns_are_looked_at(store: Store) -> None:
    session = store.session("s")
    session.history.append("plain")
    session.save()
    session.history.append(ANTHROPIC)
    session.save()
    session.rewind(1)
    gone = store.session("gone")
    gone.history.append(GITHUB)
    store.tag("kept", gone.save())
    store.delete("gone")
    assert sorted(places(store)) == [("kept", 1, "messages[0]"), ("s", 2, "messages[1]")]


def test_files_are_looked_at_and_binary_ones_passed_over(store: Store, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / ".env").write_text(f"API_KEY={ANTHROPIC}\n")
    (tmp_path / "program").write_bytes(b"\x7fELF\0\0" + GITHUB.encode())
    session = store.session("s")
    session.worktree = tmp_path
    session.save()
    (tmp_path / "new.txt").write_text(NPM)
    session.save()
    assert places(store) == [("s", 1, "files:deep/.env"), ("s", 2, "files:new.txt")]


def test_a_secret_that_lies_across_windows_of_a_large_file_is_told_once(
    store: Store, tmp_path: Path
) -> None:
    line = b"nothing to see here\n"
    filler = line * ((1 << 20) // len(line))
    for shift in (0, 40, 80):
        (tmp_path / f"{shift}.txt").write_bytes(
            filler[: len(filler) - shift] + b"\n" + ANTHROPIC.encode() + b"\n" + filler
        )
    session = store.session("s")
    session.worktree = tmp_path
    session.save()
    assert [(found.where, found.length) for found in findings(store)] == [
        (f"files:{shift}.txt", len(ANTHROPIC)) for shift in (0, 40, 80)
    ]


def test_rows_of_a_transcript_tell_what_the_messages_do_not(store: Store) -> None:
    rows = [
        {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s", "cwd": "/w",
         "message": {"role": "user", "content": f"use {ANTHROPIC}"},
         "toolUseResult": {"stdout": f"{ANTHROPIC} {GITHUB}"}},
    ]  # fmt: skip
    text = "".join(json.dumps(row) + "\n" for row in rows)
    import_transcript(store, formats.read(text.encode(), "s.jsonl"), name="s")
    assert [
        (found.rule, found.where.split("[")[0])
        for found in findings(store)
        if found.where != "label"
    ] == [
        ("anthropic-key", "messages"),
        ("github-token", "rows"),
    ]


def test_what_another_program_keeps_beside_a_turn_is_looked_at(store: Store) -> None:
    with Stage(store.objects) as stage:
        put = stage.put_node
        state = store.objects.maps.update(None, {b"rest": Inline(f"\x01{NPM}".encode())}, put)
        turn, _ = store.objects.snapshots.create(None, stage.put_snapshot, time=1, state=state)
        stage.commit()
    store.fork(store.snapshot(turn), "s")
    assert places(store) == [("s", 1, "state:rest")]


def test_what_cannot_be_read_is_counted_and_the_rest_looked_at(place: Place) -> None:
    session = place.open().session("s")
    session.history.append(ANTHROPIC)
    first = session.save()
    session.history.append(GITHUB)
    session.save()
    lost = bytes.fromhex(first.id)
    message = first.history._objects.lists.item(first.record.history, 0)
    for gone in (message, lost):
        scan = Scan(place.lacking(gone))
        assert [found.turn for found in scan.findings()] in ([2], [])
        assert scan.unread
