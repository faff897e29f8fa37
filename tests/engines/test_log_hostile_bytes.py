"""Bytes that are not what was written raise Corrupt or UnsupportedFormat, and nothing else."""

from __future__ import annotations

import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from blake3 import blake3
from damage import QuickDisk, flip, put, segment_path
from given import chunked, content, node, snapshot, turn
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore.engine import Move
from snapstore.engines.log.batch import (
    END,
    HEADER_SIZE,
    MAX_BODY,
    MOVE,
    REFS,
    TRAILER_SIZE,
    Batch,
    Writer,
)
from snapstore.engines.log.codec import decompress
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.index import Cover, Entries, Index, build, load, ref_key
from snapstore.engines.log.layout import Manifest
from snapstore.engines.log.records import decode_page, encode_move, encode_pages, moves_in
from snapstore.errors import Corrupt, SnapstoreError, UnsupportedFormat

WHERE = ("file", 77)


def sample() -> bytes:
    """A batch with a record of every kind."""
    parts = [content(b"part one"), content(b"two" * 100)]
    move = Move("main", 1, bytes(32), "save", 5)
    data, _ = Writer().pack(
        [*parts, chunked(*parts), node(b"node"), snapshot(b"snap")],
        [(MOVE, encode_move(move)), *((REFS, page) for page in encode_pages([move])), (200, b"?")],
        flags=0,
        number=3,
        durable_end=9,
        previous=b"before",
    )
    return data


def signed(data: bytes) -> bytes:
    """Make header and trailer agree with what is between them, whatever that is."""
    head = bytearray(data[:32])
    head[14:18] = (len(data) - HEADER_SIZE - TRAILER_SIZE).to_bytes(4, "little")
    covered = bytes(head) + crc32(head).to_bytes(4, "little") + data[HEADER_SIZE:-TRAILER_SIZE]
    return covered + blake3(covered).digest(length=16) + len(data).to_bytes(4, "little") + END


def read_everything(data: bytes) -> None:
    """Open a batch and pick out all there is."""
    opened = Batch(data, WHERE)
    for slot in range(opened.objects):
        opened.object(slot)
    opened.ids()
    moves_in(opened)
    for page in opened.payloads(REFS):
        decode_page(page)


def test_a_signed_batch_is_read() -> None:
    assert signed(sample()) == sample()
    read_everything(sample())


def test_every_truncation_is_corrupt() -> None:
    data = sample()
    for cut in range(len(data)):
        with pytest.raises(Corrupt) as damage:
            Batch(data[:cut], WHERE)
        assert (damage.value.path, damage.value.offset) == WHERE


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_every_flipped_byte_is_corrupt(mask: int) -> None:
    data = sample()
    for at in range(len(data)):
        hurt = bytearray(data)
        hurt[at] ^= mask
        with pytest.raises(Corrupt) as damage:
            Batch(bytes(hurt), WHERE)
        assert (damage.value.path, damage.value.offset) == WHERE


def test_flipped_bytes_under_a_good_signature_do_no_worse() -> None:
    data = sample()
    for at in range(HEADER_SIZE, len(data) - TRAILER_SIZE):
        for mask in (0x01, 0x80, 0xFF):
            hurt = bytearray(data)
            hurt[at] ^= mask
            try:
                read_everything(signed(bytes(hurt)))
            except (Corrupt, UnsupportedFormat):
                continue


def test_any_header_under_a_good_signature_does_no_worse() -> None:
    data = sample()
    for at in range(4, 26):
        for value in (0, 1, 0x7F, 0xFF):
            hurt = bytearray(data)
            hurt[at] = value
            try:
                read_everything(signed(bytes(hurt)))
            except (Corrupt, UnsupportedFormat):
                continue


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=300), st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_any_body_under_a_good_signature_does_no_worse(body: bytes, blocks: int, n: int) -> None:
    head = bytearray(sample()[:HEADER_SIZE])
    head[6:10], head[10:14] = blocks.to_bytes(4, "little"), n.to_bytes(4, "little")
    with suppress(Corrupt, UnsupportedFormat):
        read_everything(signed(bytes(head) + body + bytes(TRAILER_SIZE)))


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=60))
def test_any_page_of_refs_is_read_or_corrupt(payload: bytes) -> None:
    with suppress(Corrupt):
        decode_page(payload)


class TestHugeClaims:
    def peak(self, data: bytes) -> int:
        tracemalloc.start()
        try:
            with pytest.raises(Corrupt):
                Batch(data, WHERE)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    @pytest.mark.parametrize("claim", [MAX_BODY - 1, MAX_BODY, MAX_BODY + 1, 2**32 - 1])
    @pytest.mark.parametrize("field", [6, 10, 14])
    def test_in_a_header_allocate_nothing(self, field: int, claim: int) -> None:
        head = bytearray(sample()[:32])
        head[field : field + 4] = claim.to_bytes(4, "little")
        data = bytes(head) + crc32(head).to_bytes(4, "little") + sample()[HEADER_SIZE:]
        assert self.peak(data) < 1 << 20

    def test_in_a_log_allocate_nothing(self, root: Path) -> None:
        engine = LogEngine(root, disk=QuickDisk())
        turn(engine, "a", "turn")
        head = bytearray(sample()[:32])
        head[14:18] = MAX_BODY.to_bytes(4, "little")
        with segment_path(root).open("ab") as file:
            file.write(bytes(head) + crc32(head).to_bytes(4, "little") + bytes(100))
        tracemalloc.start()
        assert engine.tip("a") is not None
        turn(engine, "a", "and on")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        engine.close()
        assert peak < 8 << 20

    def test_in_a_compressed_block_are_refused(self) -> None:
        frame = bytes.fromhex("28b52ffd e0") + (1 << 40).to_bytes(8, "little") + bytes(20)
        with pytest.raises(Corrupt):
            decompress(frame, WHERE)

    @pytest.mark.parametrize("stored", [b"", b"\x28\xb5\x2f\xfd", b"no frame at all", bytes(50)])
    def test_and_what_is_no_frame_is_corrupt(self, stored: bytes) -> None:
        with pytest.raises(Corrupt):
            decompress(stored, WHERE)


class TestIndexes:
    @settings(deadline=None, max_examples=100)
    @given(st.binary(max_size=200))
    def test_of_any_bytes_are_no_index(self, data: bytes) -> None:
        with pytest.raises(ValueError):
            Index(data)

    def test_that_are_directories_empty_or_missing_are_none(self, tmp_path: Path) -> None:
        (tmp_path / "empty").touch()
        (tmp_path / "folder").mkdir()
        assert [load(tmp_path / name) for name in ("empty", "folder", "none")] == [None] * 3


@settings(deadline=None, max_examples=100)
@given(
    st.one_of(
        st.binary(max_size=80),
        st.sampled_from(
            [b"null", b"{}", b"[1]", b'{"check": 1}', b'"x"', b"\xff\xfe", b"[" * 100_000]
        ),
    )
)
def test_any_manifest_is_read_or_corrupt(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "manifest"
    path.write_bytes(data)
    with pytest.raises(Corrupt) as damage:
        Manifest.read(path)
    assert damage.value.path == str(path)


@pytest.mark.parametrize(
    "segments", [[], [0], [-1], [3, 3], [1 << 70], [10**8], [None], ["1"], [True], [[1]]]
)
def test_a_manifest_that_verifies_must_name_segments(tmp_path: Path, segments: list[Any]) -> None:
    path = tmp_path / "MANIFEST"
    path.write_bytes(Manifest(1, tuple(segments)).encode())
    with pytest.raises(Corrupt):
        Manifest.read(path)


def test_an_index_that_verifies_leads_nowhere_outside_of_what_it_covers() -> None:
    cover = Cover(1, 0, 300, 2, bytes(16), bytes(8))
    far, near = (1 << 64) - 1, 200
    moves = {ref_key("a", 1): far, ref_key("b", 1): near}
    index = Index(build(cover, Entries([], moves, {ref_key("a"): far, ref_key("b"): near})))
    assert index.sound()
    assert [index.move(ref_key(name, 1)) for name in "ab"] == [None, near]
    assert [index.tip(ref_key(name)) for name in "ab"] == [None, near]
    assert list(index.tips()) == [near]


def test_a_store_with_any_flipped_byte_raises_nothing_unexpected(root: Path) -> None:
    """Wherever the byte lies; what was acknowledged is read as it was, or refused."""
    engine = LogEngine(root, disk=QuickDisk(), seal_at=500)
    moves = [turn(engine, "a", f"turn {i}") for i in range(5)]
    engine.close()
    wanted = {m.new: snapshot(f"snapshot of turn {i}".encode()) for i, m in enumerate(moves)}
    paths = [p for p in sorted(root.rglob("*")) if p.is_file() and p.stat().st_size]
    for path in paths:
        whole = path.read_bytes()
        for at in range(0, len(whole), 3):
            flip(path, at, 1 << at % 8)
            try:
                reader = LogEngine(root, disk=QuickDisk())
            except SnapstoreError:
                put(path, whole)
                continue
            for new, snap in wanted.items():
                try:
                    assert new is not None and reader.read(new) == snap
                except SnapstoreError:
                    continue
            list(reader.verify())
            reader.close()
            put(path, whole)


def test_a_run_of_contents_that_does_not_start_where_it_is_said_to_is_corrupt() -> None:
    opened = Batch(sample(), WHERE)
    assert opened.run(0, opened.id_at(0) + opened.id_at(1)) == [b"part one", b"two" * 100]
    assert opened.run(0, opened.id_at(0) + bytes(32)) == [b"part one"]
    with pytest.raises(Corrupt):
        opened.run(0, bytes(32))
