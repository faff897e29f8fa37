"""What a page holds is what the store holds, small and without secrets."""

from __future__ import annotations

import random
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from chronicle import ATTACK, Read, grown, left_behind_long_ago, page_of, shown_store, told
from hypothesis import given, settings
from hypothesis import strategies as st
from stores import Place

import snapstore
from snapstore import Corrupt, Store
from snapstore.formats.html import Branches, Named, Payload, blocks, branches, export
from snapstore.maintenance.gc import Collected
from snapstore.textdiff import render_value

KEY = "sk-ant-api03-" + "Ab1" * 31 + "AA"
"""What looks like a key and opens nothing."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return shown_store(tmp_path)


def test_every_session_has_its_messages_scratchpad_and_files(store: Store) -> None:
    page = Read.of(page_of(store, redacted=False))
    for info in store.sessions():
        head = store.resolve(info.name)
        assert page.messages(info.name) == [blocks.message(m) for m in head.history]
        assert page.scratchpad(info.name) == {
            key: blocks.text_of(value) for key, value in head.scratchpad.items()
        }
        cells = page.cells(info.name, 8, "paths")
        assert list(cells) == ["code.py"]
        assert head.files is not None
        assert page.text(cells["code.py"][3]).encode() == head.files.read("code.py")


def test_a_branch_that_was_left_behind_is_in_the_page_of_everything(store: Store) -> None:
    page = Read.of(page_of(store))
    behind = [page.turns[at] for at in page.index["behind"]]
    assert any("question 6" in row[3] for row in behind)


def test_the_question_of_a_turn_that_was_completed_is_no_branch() -> None:
    store = snapstore.open("memory://")
    session = store.session("s")
    for n in range(3):
        session.history.append({"role": "user", "content": f"question {n}"})
        session.save()
        session.history.append({"role": "assistant", "content": f"answer {n}"})
        session.complete()
    session.undo()
    assert len(Read.of(page_of(store)).turns) == 3  # the last one, undone, is still shown


def test_the_page_of_one_turn_holds_nothing_that_came_after_it(store: Store) -> None:
    third = store.resolve("main@3")
    shown = Branches((Named("main", third.raw_id),))
    page = Read.of(b"".join(export(store, shown, "main", redacted=False)))
    assert len(page.turns) == 3
    assert "question 4" not in str(page.values)


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["append", "trim", "edit", "note", "forget"]), st.integers(0, 9), st.text()
    ),
    max_size=12,
)


@settings(deadline=None, max_examples=40)
@given(EDITS)
def test_any_line_of_edits_is_told(edits: list[tuple[str, int, str]]) -> None:
    store = snapstore.open("memory://")
    session = store.session("s")
    for kind, n, text in edits:
        if kind == "append":
            session.history.append({"role": "user", "content": text})
        elif kind == "trim":
            del session.history[:n]
        elif kind == "edit" and session.history:
            session.history[n % len(session.history)] = {"role": "user", "content": text}
        elif kind == "note":
            session.scratchpad[f"k{n}"] = {"n": n, "text": text}
        elif kind == "forget":
            session.scratchpad.pop(f"k{n}", None)
        session.save(kind)
    head = session.save("end")
    page = Read.of(page_of(store, redacted=False))
    assert page.messages("s") == [blocks.message(m) for m in head.history]
    assert page.scratchpad("s") == {k: render_value(v) for k, v in head.scratchpad.items()}


def test_sizes_tell_what_is_new_and_what_a_whole_copy_would_take() -> None:
    store = snapstore.open("memory://")
    session = store.session("s")
    for _ in range(2):
        session.history.append({"role": "user", "content": "the same words"})
        session.save("again")
    first, second = Read.of(page_of(store)).turns
    assert first[10][0] > 0
    assert second[10][0] == 0
    assert second[11][0] == 2 * first[11][0]


def test_what_is_added_later_comes_in_chunks_of_its_own() -> None:
    store = snapstore.open("memory://")
    session = store.session("s")
    told(session, 1)
    payload = Payload(store)
    assert len(list(payload.add(branches(store).heads))) == 1
    assert list(payload.add(branches(store).heads)) == []
    told(session, 2)
    assert len(list(payload.add(branches(store).heads))) == 1


def test_the_page_of_a_whole_store_tells_what_gc_says() -> None:
    store = left_behind_long_ago()
    page = Read.of(page_of(store, whole=True))
    found = store.gc()
    assert found.objects > 0
    assert page.index["store"]["gc"] == {"objects": found.objects, "bytes": found.bytes}
    assert "gc" not in Read.of(page_of(store)).index["store"]


def test_where_gc_would_fail_the_page_says_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(self: Store) -> Collected:
        raise Corrupt("damaged")

    monkeypatch.setattr(Store, "gc", failing)
    store = left_behind_long_ago()
    assert Read.of(page_of(store, whole=True)).index["store"]["gc"] is None


# --- secrets and hostile content -------------------------------------------------------------


def planted(root: Path) -> Store:
    """A store with a key in every place."""
    store = shown_store(root, f"key {KEY}")
    session = store.session("main")
    (root / "work" / ".env").write_text(f"TOKEN={KEY}\n")
    session.worktree = root / "work"
    session.save(f"label {KEY}")
    return store


def test_secrets_are_taken_out_unless_that_is_turned_off(tmp_path: Path) -> None:
    store = planted(tmp_path)
    whole = Read.of(page_of(store, redacted=False))
    assert KEY in str(whole.values)
    page = Read.of(page_of(store))
    assert "redacted:" in str(page.values)
    assert KEY not in str(page.values)
    assert KEY not in str([row[3] for row in page.turns])


def test_hostile_texts_stand_in_the_data_and_nowhere_in_the_markup(tmp_path: Path) -> None:
    page = page_of(shown_store(tmp_path, ATTACK), redacted=False)
    assert b"harmed" not in page
    assert ATTACK in str(Read.of(page).values)


def test_a_hostile_name_is_escaped() -> None:
    page = b"".join(export(snapstore.open("memory://"), Branches(()), f"a{ATTACK}"))
    assert b"<script>window.harmed" not in page


def test_a_page_names_no_address_to_load_anything_from(store: Store) -> None:
    page = page_of(store)
    for word in (b'src="http', b'href="http', b"url(", b"@import", b"innerHTML", b"eval("):
        assert word not in page


@pytest.mark.parametrize(
    "message",
    [
        None, 7, "text", [], {}, {"role": 3, "content": 4}, {"role": "user"},
        {"role": "user", "content": [None, 1, {"type": "image", "source": {"type": "base64"}}]},
        {"role": "assistant", "content": [{"type": "tool_use", "input": 10**5000}]},
    ],
)  # fmt: skip
def test_any_value_can_be_a_message(message: object) -> None:
    role, shown = blocks.message(message)
    assert isinstance(role, str)
    assert all(isinstance(block[0], str) for block in shown)


def test_deep_nesting_and_long_texts_are_carried_as_text() -> None:
    deep: object = "end"
    for _ in range(3000):
        deep = [deep]
    store = snapstore.open("memory://")
    session = store.session("s")
    session.history.append({"role": "assistant", "content": [{"type": "odd", "x": deep}]})
    session.history.append({"role": "user", "content": "x" * (blocks.LONGEST + 1)})
    session.save()
    odd, long = Read.of(page_of(store, redacted=False)).messages("s")
    assert odd[1][0][:2] == ["o", "odd"]
    assert "cut here" in long[1][0][1]


def test_pictures_that_could_hold_a_script_are_left_out() -> None:
    source = {"type": "base64", "media_type": "image/svg+xml", "data": "PHN2Zz4="}
    shown = blocks.message({"role": "user", "content": [{"type": "image", "source": source}]})
    assert shown[1] == [["i", "image/svg+xml", "", ""]]


def test_a_lost_message_costs_itself_and_no_other(new_place: Callable[[], Place]) -> None:
    with new_place() as place:
        store = place.open()
        session = store.session("s")
        told(session, 1)
        lost = session.history.ids()[0]
        told(session, 2)
        page = Read.of(page_of(place.lacking(lost)))
        first, second = page.messages("s")[:2]
        assert first[1][0][:2] == ["o", "cannot be read"]
        assert second == blocks.message(session.history[1])


# --- size ------------------------------------------------------------------------------------


def test_a_thousand_turns_take_less_than_a_megabyte() -> None:
    assert len(page_of(grown(1000))) < 1_000_000


@pytest.mark.slow
def test_ten_thousand_turns_take_ten_megabytes_and_little_memory(tmp_path: Path) -> None:
    store = snapstore.open(tmp_path / "store", durable=False)
    session = store.session("s")
    for n in range(10_000):
        told(session, n, f"{random.Random(n).getrandbits(400):x}")
    store.close()
    page = tmp_path / "page.html"
    command = [sys.executable, "-m", "snapstore_cli", "--store", str(tmp_path / "store")]
    subprocess.run([*command, "export", "--all", "--format", "html", "-o", str(page)], check=True)
    assert page.stat().st_size < 10_000_000
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 200_000
