"""Files that were imported come out again byte for byte, whatever stands in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stores import place_on
from transcripts import ROLLOUT, TALK, call, result, said, text, user, written

from snapstore import NotATranscript, ObjectMissing, Store, formats, refs
from snapstore.formats import Harness
from snapstore.model.layout import LAYOUT
from snapstore.model.pages import decode_page, parts_of
from snapstore.store import open_store
from snapstore.transfer.imports import Imported, import_transcript
from snapstore.transfer.original import original, rows_of
from snapstore.transfer.origins import last_import

CORPUS = Path(__file__).resolve().parents[2].parent / "shared" / "corpus"
FACTS = json.loads((CORPUS / "facts.json").read_text()) if CORPUS.exists() else {}
READABLE = [
    name
    for name, facts in FACTS.items()
    if facts["format"] in ("claude_code", "codex", "langgraph_state", "tau_bench")
]


@pytest.fixture
def store() -> Store:
    return open_store("memory://", clock=lambda: 7)


def bring(store: Store, data: bytes, harness: Harness | None = None, **how: Any) -> Imported:
    told = formats.read(data, "t.jsonl", harness)
    return import_transcript(store, told, name=how.pop("name", "t"), **how)[0]


def file_of(store: Store, name: str = "t") -> bytes:
    tip = refs.live(store.engine, refs.SESSIONS + name)
    move = last_import(store.engine, tip) if tip else None
    assert move is not None
    return b"".join(original(store.objects, move.info[LAYOUT]))


def page_texts(store: Store, revision: str) -> str:
    page = store.resolve(revision).record.rows
    assert page is not None
    return b"".join(row.raw for row in rows_of(store.objects, [page])).decode()


# --- odd files -------------------------------------------------------------------------------

FIRST, *REST = written(TALK).splitlines(keepends=True)
DEEP = b'{"type":"x","v":' + b"[" * 400 + b"]" * 400 + b"}\n"
TOO_DEEP = b'{"type":"x","v":' + b"[" * 5000 + b"]" * 5000 + b"}\n"


@pytest.mark.parametrize(
    "data",
    {
        "as the program writes": written(TALK),
        "a rollout": written(ROLLOUT),
        "no line feed at the end": written(TALK)[:-1],
        "CRLF": written(TALK, b"\r\n"),
        "byte order mark": b"\xef\xbb\xbf" + written(TALK),
        "blank lines": b"\n\n" + written(TALK, b"\n \n") + b"\n\n",
        "glued lines": FIRST[:-1] + b"".join(REST),
        "glued with spaces": FIRST[:-1] + b" \t " + b"".join(REST),
        "a torn line in the middle": FIRST + b'{"type":"user","mess\n' + b"".join(REST),
        "a torn end": written(TALK) + b'{"type":"user","mess',
        "torn inside a character": written([*TALK, {"type": "x", "v": "ü"}])[:-4],
        "a hole of NULs": FIRST + b"\0" * 300 + b"\n" + b"".join(REST),
        "NULs at the end": written(TALK) + b"\0" * 4000,
        "bytes that are no UTF-8": FIRST + b'{"v":"\xff\xfe"}\n' + b"".join(REST),
        "the same key twice": FIRST + b'{"type":"x","a":1,"a":2}\n' + b"".join(REST),
        "numbers in other words": FIRST + b'{"a":1E2,"b":1e400,"c":NaN,"d":-0.0,"e":1.0}\n'
        + b"".join(REST),
        "integers of any width": FIRST + b'{"a":18446744073709551616,"b":-9e99}\n' + b"".join(REST),
        "values that are no objects": FIRST + b'null\n42\n"x"\n[1,2]\ntrue\n{}\n' + b"".join(REST),
        "lone surrogates": written([*TALK, user("u3", "a4", "half \ud83d")]),
        "default separators": b"".join(json.dumps(r).encode() + b"\n" for r in TALK),
        "deep": FIRST + DEEP + TOO_DEEP + b"".join(REST),
        "rows twice": written([*TALK, *TALK]),
        "a uuid with another body": written([*TALK, user("u1", None, "changed", more=[1] * 99)]),
        "parents that come later": written(TALK[::-1]),
        "a circle": written([user("a", "b", "x"), user("b", "a", "y"), *TALK]),
        "side rows only": written(TALK[:1]),
        "an unknown row with a large body": written([{"type": "new", "sessionId": "S",
                                                     "body": ["y" * 200_000]}, *TALK]),
        "a large text": written([*TALK, user("u3", "a4", "long " * 60_000)]),
        "one document": json.dumps([{"role": "user", "content": "hi"}] * 3, indent=2).encode(),
        "a document of a thread": json.dumps({"values": {"messages": [
            {"type": "human", "content": "x" * 500}]}, "next": ["y" * 500]}).encode() + b"\n",
        "messages line by line": b'{"role":"user","content":"a"}\n{"role":"user","content":"b"}',
    }.items(),
    ids=lambda pair: pair[0],
)  # fmt: skip
def test_a_file_comes_out_byte_for_byte(store: Store, data: tuple[str, bytes]) -> None:
    _, content = data
    bring(store, content)
    assert file_of(store) == content
    assert store.verify() == []
    again = bring(store, content)
    assert not again.created


@pytest.mark.parametrize("end", range(1, len(written(TALK[-1:]))))
def test_cut_at_any_byte_of_its_last_row_all_turns_before_are_there(end: int) -> None:
    """Power that fails in the middle of a write leaves such a file."""
    store = open_store("memory://")
    whole = written(TALK[:-1])
    content = whole + written(TALK[-1:])[:end]
    found = bring(store, content)
    assert found.turns == 2
    assert len(found.warnings) == (end < len(written(TALK[-1:])) - 1)
    assert file_of(store) == content


ROWS = st.sampled_from(
    [*TALK, *ROLLOUT, {}, [], 1, "x", None, {"type": "new", "v": "x" * 200}, {"uuid": 3}]
)
LINES = st.one_of(
    ROWS.map(lambda row: written([row], b"")),
    ROWS.map(lambda row: json.dumps(row).encode()),
    ROWS.map(lambda row: written([row], b"")[:-3]),
    st.binary(max_size=12),
)


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(LINES, st.sampled_from([b"\n", b"\r\n", b"", b"\n\n"])), max_size=10),
    st.sampled_from(["claude-code", "codex", "messages"]),
)
def test_any_lines_come_out_byte_for_byte(lines: list[tuple[bytes, bytes]], harness: Any) -> None:
    content = b"".join(line + end for line, end in lines)
    if harness == "messages":
        content = b'{"role":"user","content":"hi"}\n' + content
    store = open_store("memory://")
    told = formats.read(content, "t.jsonl", harness)
    import_transcript(store, told, name="t")
    if content:
        assert file_of(store, "t-1" if len(told.sessions) > 1 else "t") == content
    assert all(problem.kind == "pair" for problem in store.verify())


@pytest.mark.skipif(not READABLE, reason="the corpus is not beside this checkout")
def test_real_files_come_out_byte_for_byte_and_take_less_than_a_third(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store", durable=False)
    total = 0
    for number, name in enumerate(READABLE):
        content = (CORPUS / name).read_bytes()
        try:
            told = formats.read(content, Path(name).name)
        except NotATranscript:
            continue
        found = import_transcript(store, told, name=f"f{number}", source=name)
        assert file_of(store, found[0].name) == content, name
        total += len(content)
    assert all(problem.kind == "pair" for problem in store.verify())
    assert store.engine.stats().bytes < total / 3


# --- growing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [TALK, ROLLOUT], ids=["claude-code", "codex"])
def test_a_growing_file_comes_out_whole_at_every_step_and_keeps_the_ids_of_its_turns(
    rows: list[Any],
) -> None:
    grown = open_store("memory://")
    ids: dict[int, str] = {}
    for count in range(3, len(rows) + 1):
        content = written(rows[:count])
        found = bring(grown, content)
        assert file_of(grown) == content
        line = list(grown.session("t").log())
        assert [info.name for info in grown.sessions()] == ["t"]
        for snapshot in line[1:]:  # the last turn goes on
            assert ids.setdefault(snapshot.turn, snapshot.id) == snapshot.id
        assert found.turns == line[0].turn
    whole = open_store("memory://")
    bring(whole, written(rows))
    assert whole.session("t").head == grown.session("t").head


def test_rows_that_belong_to_no_turn_yet_change_no_turn(store: Store) -> None:
    bring(store, written(TALK))
    head = store.session("t").head
    later = written([*TALK, {"type": "cost-state", "sessionId": "S", "cost": 1}])
    found = bring(store, later)
    assert found.created
    assert store.session("t").head == head
    assert file_of(store) == later
    assert not bring(store, later).created


def test_what_stands_between_two_turns_goes_with_the_second(store: Store) -> None:
    """It may speak of it: the last prompt does."""
    bring(store, written(TALK))
    assert "and now the second" not in page_texts(store, "t@1")
    assert "turn_duration" in page_texts(store, "t@2")
    assert "last-prompt" in page_texts(store, "t@2")


def test_a_rewritten_file_becomes_a_line_of_its_own_and_the_old_one_stays(store: Store) -> None:
    bring(store, written(TALK))
    other = written([user("u1", None, "something else"), *TALK[2:]])
    found = bring(store, other)
    assert found.name == "t+1"
    assert file_of(store, "t+1") == other
    assert file_of(store) == written(TALK)


def test_the_file_is_found_after_a_rewind_and_its_way_back(store: Store) -> None:
    bring(store, written(TALK))
    session = store.session("t")
    session.rewind(1)
    session.undo()
    store.rename("t", "renamed")
    assert file_of(store, "renamed") == written(TALK)


def test_a_rewind_in_the_harness_keeps_both_ways_in_the_file(store: Store) -> None:
    bring(store, written(TALK))
    rewound = written([*TALK, user("u3", "a3", "another way"), said("a5", "u3", text("yes"))])
    found = bring(store, rewound)
    assert (found.branches, found.warnings) == (2, ())
    assert file_of(store) == rewound


# --- sharing ---------------------------------------------------------------------------------


def renamed(rows: list[Any], session_id: str) -> list[Any]:
    facts = {"sessionId": session_id, "gitBranch": "other", "slug": "new-name"}
    return [{**row, **facts} for row in rows]


def large_talk(words: Callable[[int], str]) -> list[Any]:
    rows: list[Any] = [user("u0", None, words(0))]
    for n in range(1, 20):
        rows.append(said(f"a{n}", rows[-1]["uuid"], text(words(n)), call(f"t{n}")))
        output = {"stdout": words(-n), "interrupted": False}
        rows.append(user(f"u{n}", f"a{n}", result(f"t{n}", words(n + 99)), toolUseResult=output))
    return rows


def test_a_fork_shares_all_parts_with_its_parent_though_every_row_differs(store: Store) -> None:
    rows = large_talk(lambda n: f"{n} " + "words and words " * 20)
    bring(store, written(rows), name="parent")
    parts = {i for i, _ in store.engine.ids(b"", 0)}
    bring(store, written(renamed(rows, "F")), name="fork")
    new = [i for i, _ in store.engine.ids(b"", 0) if i not in parts]
    assert len(new) <= 3  # its page, its snapshot, its layout
    assert file_of(store, "fork") == written(renamed(rows, "F"))


def test_a_large_file_is_committed_bit_by_bit_and_named_at_the_end(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("snapstore.transfer.turns._MOST_STAGED", 1)
    bring(store, written(TALK))
    plain = open_store("memory://")
    monkeypatch.undo()
    bring(plain, written(TALK))
    assert store.session("t").head == plain.session("t").head
    assert file_of(store) == written(TALK)
    assert not list(filter(lambda tip: tip.new, store.engine.tips(refs.ARRIVING)))


# --- when something is gone ------------------------------------------------------------------


def test_verify_finds_what_a_file_can_no_longer_be_made_of() -> None:
    with place_on("memory", iter(())) as place:
        store = place.open()
        bring(store, written(TALK))
        record = store.resolve("t@1").record
        tip = refs.live(store.engine, refs.SESSIONS + "t")
        assert record.rows is not None and tip is not None
        page = decode_page(store.objects.content(record.rows), record.rows)
        for lost in (record.rows, next(parts_of(page)), tip.info[LAYOUT]):
            (problem,) = place.lacking(lost).verify()
            assert (problem.kind, problem.id) == ("missing", lost)
            with pytest.raises(ObjectMissing):
                file_of(place.lacking(lost))
