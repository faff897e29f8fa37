"""What stands on disk, byte for byte. A change here is a change of the format."""

from __future__ import annotations

from pathlib import Path

import pytest
from given import chunked, content, node, save, snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.engine import Kind, Move, Obj
from snapstore.engines.log.batch import (
    FIRST_SKIPPABLE,
    LOOSE,
    MOVE,
    REFS,
    SEAL,
    START,
    Batch,
    Writer,
    slot_order,
)
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.index import Cover, Entries, Index, build, object_key, place, ref_key
from snapstore.engines.log.layout import FORMAT_LINE, Layout, Manifest
from snapstore.engines.log.records import (
    PAGE,
    decode_page,
    encode_move,
    encode_pages,
    moves_in,
)
from snapstore.errors import Corrupt, UnsupportedFormat

WHERE = ("file", 0)
TIME = 1_700_000_000_000_000
SNAP = snapshot(b"snap")
SAVED = Move("main", 1, SNAP.id, "save", TIME, born=1)
GONE = Move("zed", 3, None, "delete", TIME + 1, base=2, born=1, info={"why": "done"})


def written(*parts: str) -> bytes:
    """Hex digits in the pieces that they mean something in."""
    return bytes.fromhex("".join(parts))


def pack(objects: list[Obj], extra: list[tuple[int, bytes]], flags: int = 0) -> bytes:
    """A batch with a header that is easy to recognise."""
    data, digest = Writer().pack(
        sorted(objects, key=slot_order),
        extra,
        flags=flags,
        number=1,
        durable_end=200,
        previous=b"before",
    )
    assert Batch(data, WHERE).digest == digest
    return data


class TestGoldenBytes:
    def test_of_a_saved_turn(self) -> None:
        said = content(b"hello")
        added = node(b"node:" + said.id)
        assert pack([said, added, SNAP], [(MOVE, encode_move(SAVED, slot=2))]) == written(
            "736e7042 01 04",  # magic, version, NARROW
            "02000000 04000000 5e000000 01000000 c8000000",  # blocks, records, body, number, end
            "6265666f7265 7858a9d9",  # previous, crc
            "44010000 14000000",  # block table: 81 bytes and 5 bytes, both as they are
            "01 03 04 10",  # kinds
            "0500 2500 0400 1600",  # lengths
            "0100",  # one record in the first content block
            "05000000",  # its id stands 5 bytes into the structure payloads
            "6e6f64653a",
            "ea8f163db38682925e4491c5e58d4bb3506ef8c14eb78a86e908c5624a67200f",
            "736e6170",
            "95 a46d61696e 01 a473617665 02 cf00060a24181e4000",  # the move; new is slot 2
            "68656c6c6f",
            "b8cb49dde012a609b115bc0868bdf580 9a000000 42706e73",  # digest, length, end
        )

    def test_of_chunks_and_what_they_make(self) -> None:
        parts = [content(b"ab"), content(b"cd")]
        data = pack([*parts, chunked(*parts)], [], flags=LOOSE)
        assert data[:6] == written("736e7042 01 0c")
        assert data[36:-24] == written(
            "bc010000 10000000",  # block table: 111 bytes and 4 bytes
            "01 01 02",
            "0200 0200 4000",
            "0200",
            "00000000",  # in the chunk list
            "8c9c9881805d1a847102d7a42e58b990d088dd88a84f7314d71c838107571f2b",
            "2dc99999a6aaef3f20349d2ed4057a2b54419545dabb809e6381de1bad8337e2",
            "e8cf3ad3c77be0828dfb8fffc06fed22ab037dfa68a16049fe8267f70265afe2",
            "61626364",
        )

    def test_of_a_page_of_refs(self) -> None:
        pages = [(REFS, page) for page in encode_pages([SAVED, GONE])]
        data = pack([], pages, flags=START)
        assert data[:6] == written("736e7042 01 05")
        assert data[36:-24] == written(
            "7c010000",  # block table: 95 bytes
            "11",
            "5c00",
            "92",
            "95 a46d61696e 01 a473617665",
            "c420 2f5b407e91c2a8ff26000275c525a70dc7c25c9e6c60d2549310eacdedb8559a",
            "cf00060a24181e4000",
            "99 a37a6564 03 a664656c657465 c0 cf00060a24181e4001",
            "c0 c0 01",  # base as usual, no redo, born
            "81 a3776879 a4646f6e65",
        )

    def test_of_a_move_with_everything(self) -> None:
        undo = Move("zed", 3, None, "undo", 5, base=0, redo=2, born=1, info={"n": 1})
        assert encode_move(undo) == written("99 a37a6564 03 a4756e646f c0 05 00 02 01 81 a16e 01")

    def test_of_an_index(self) -> None:
        cover = Cover(1, 0, 300, 2, bytes(range(16)), b"12345678")
        objects = [
            (object_key(content(b"hello").id), place(0, 1)),
            (object_key(SNAP.id), place(200, 2)),
        ]
        data = build(cover, Entries(objects, {ref_key("main", 1): 200}, {ref_key("main"): 200}))
        assert data == written(
            "736e7058 01000000 01000000 00000000 2c010000 02000000",
            "000102030405060708090a0b0c0d0e0f",
            "02000000 01000000 01000000",
            "1ba8aa0cec65223ecdb85c6b4faee17e 3132333435363738",
            *_columns(
                sorted(key for key, _ in objects),
                [200 << 24 | 2, 1],
                [ref_key("main", 1)],
                [200],
                [ref_key("main")],
                [200],
            ),
        )
        index = Index(data)
        assert index.sound() and index.cover == cover

    def test_of_the_small_files(self, root: Path) -> None:
        engine = LogEngine(root)
        engine.create()
        engine.close()
        assert (root / "FORMAT").read_bytes() == FORMAT_LINE == b"snapstore 1 blake3\n"
        assert (root / "LOCK").read_bytes() == b""
        assert Manifest(3, (1, 2)).encode() == (
            b'{"generation": 3, "segments": [1, 2], "check": '
            b'"ae2df4b30a791a77b0358539bdb518e468eddcda131c6630bce47f2aa1853b15"}\n'
        )
        assert Manifest.read(Layout(root).manifest) == Manifest(1, (1,))
        assert Layout(root).segment(1) == root / "log" / "00000001.seg"
        assert Layout(root).index(1) == root / "log" / "00000001.idx"

    def test_of_keys_do_not_depend_on_the_machine(self) -> None:
        assert object_key(content(b"hello").id) == 0xEA8F163DB3868292
        assert ref_key("main") == 0xE726318BBC3FD75A
        assert ref_key("main", 1) == 0xD22DA04349C81526


def _columns(*columns: list[int]) -> list[str]:
    return [n.to_bytes(8, "little").hex() for column in columns for n in column]


payloads = st.one_of(
    st.binary(max_size=200),
    st.builds(lambda b, n: b * n, st.binary(min_size=1, max_size=30), st.integers(1, 4000)),
)
objects = st.lists(
    st.one_of(
        payloads.map(content),
        payloads.map(node),
        payloads.map(snapshot),
        st.lists(st.binary(max_size=40).map(content), min_size=1, max_size=4).map(
            lambda parts: chunked(*parts)
        ),
    ),
    max_size=12,
    unique_by=lambda o: o.id,
)
names = st.text(st.characters(exclude_categories=()), min_size=1, max_size=20)
heads = st.one_of(st.none(), st.binary(min_size=32, max_size=32))
numbers = st.integers(0, 2**40)
infos = st.dictionaries(
    st.text(max_size=5),
    st.one_of(st.integers(-(2**63), 2**64 - 1), st.text(), st.binary(), st.none()),
)
moves = st.builds(Move, names, numbers, heads, names, numbers, numbers, numbers, numbers, infos)


@settings(deadline=None, max_examples=150)
@given(objects, st.lists(moves, max_size=3), st.booleans())
def test_a_batch_holds_what_was_put_in(objects: list[Obj], moves: list[Move], refer: bool) -> None:
    ordered = sorted(objects, key=slot_order)
    if refer and ordered:  # a list node that names the messages of its turn
        ids = b"".join(o.id for o in ordered if o.kind == Kind.CONTENT)
        ordered = sorted([*ordered, node(b"list " + ids)], key=slot_order)
    opened = Batch(pack(ordered, [(MOVE, encode_move(m)) for m in moves]), WHERE)
    assert opened.objects == len(ordered)
    assert [opened.object(slot) for slot in range(opened.objects)] == ordered
    assert opened.ids() == [o.id for o in ordered]
    for slot, o in enumerate(ordered):
        if o.kind in (Kind.CONTENT, Kind.CHUNKED):
            assert opened.find_content(o.id) == slot
    assert opened.find_content(b"?" * 32) == -1
    assert moves_in(opened) == moves


@settings(deadline=None, max_examples=60)
@given(st.lists(moves, max_size=5, unique_by=lambda m: m.ref), st.integers(1, 3))
def test_pages_hold_the_refs_that_were_put_in(moves: list[Move], times: int) -> None:
    many = [m._replace(ref=f"{m.ref}{i:04}") for m in moves for i in range(300 * times)]
    pages = list(encode_pages(many))
    assert [move for page in pages for move in decode_page(page)] == many
    assert len(pages) == -(-len(many) // PAGE)


def test_many_records_and_large_ones_fit_in_one_batch() -> None:
    many = [content(b"%d" % i) for i in range(10_000)]
    large = [content(bytes([i]) * 100_000 + b"%d" % i) for i in range(3)]
    deep = [node(b"%d" % i * 20_000) for i in range(3)]
    opened = Batch(pack([*many, *large, *deep], []), WHERE)
    assert [opened.object(slot) for slot in range(opened.objects)] == [*many, *large, *deep]


def test_a_move_names_the_slot_of_its_snapshot_only_within_its_batch() -> None:
    opened = Batch(pack([SNAP], [(MOVE, encode_move(SAVED, slot=0))]), WHERE)
    assert moves_in(opened) == [SAVED]
    with pytest.raises(Corrupt):
        moves_in(Batch(pack([SNAP], [(MOVE, encode_move(SAVED, slot=1))]), WHERE))


class TestUnknownRecords:
    @pytest.mark.parametrize("kind", [FIRST_SKIPPABLE, 200, 255])
    def test_that_may_be_skipped_are_skipped(self, kind: int) -> None:
        data = pack([content(b"a"), SNAP], [(MOVE, encode_move(SAVED)), (kind, b"of the future")])
        opened = Batch(data, WHERE)
        assert [opened.object(i) for i in range(2)] == [content(b"a"), SNAP]
        assert moves_in(opened) == [SAVED]
        assert opened.payloads(kind) == [b"of the future"]

    @pytest.mark.parametrize("kind", [0, 5, 15, 19, 127])
    def test_of_any_other_kind_are_refused(self, kind: int) -> None:
        with pytest.raises(UnsupportedFormat):
            Batch(pack([content(b"a")], [(kind, b"of the future")]), WHERE)


def test_flags_say_what_they_mean(root: Path) -> None:
    """In a store that was made by the engine: see also the tests of sealing."""
    engine = LogEngine(root, durable=False)
    engine.commit([SNAP], save("a", SNAP.id, None))
    engine.close()
    data = Layout(root).segment(1).read_bytes()
    start = Batch(data, WHERE)
    saved = Batch(data[start.header.size :], WHERE)
    assert start.header.flags & (START | SEAL | LOOSE) == START
    assert saved.header.flags & (START | SEAL | LOOSE) == LOOSE
    assert saved.header.previous == start.digest[:6]
    assert (start.header.number, saved.header.number) == (0, 1)
    assert data[start.header.size + saved.header.size :] == b""
