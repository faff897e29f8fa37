"""What a turn costs, counted in bytes and objects: the same at every length.

Bytes are what the engine says that it holds. Bookkeeping is the growth less the messages, each
counted as long as its encoding is: they are random and shorter than what pays to compress, so
that is what they take.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import zstandard
from stores import Place

from snapstore import Session, Store, values

MOST_A_TURN = 400
LENGTHS = (100, 1000, 5000)
WINDOW = 50


_random = random.Random(1)


def messages() -> list[dict[str, str]]:
    """The two messages of a turn: random characters of seven bits, which nothing compresses."""
    return [
        {"role": role, "content": "".join(map(chr, _random.choices(range(128), k=length)))}
        for role, length in (("user", 60), ("assistant", 100))
    ]


def test_what_is_measured_with_does_not_compress() -> None:
    turn = b"".join(map(values.encode, messages()))
    assert len(zstandard.ZstdCompressor(level=3).compress(turn)) >= len(turn)


def grow(session: Session, turns: int) -> int:
    """Save turns of two messages each; the bytes of their messages."""
    size = 0
    for _ in range(turns):
        new = messages()
        session.history.extend(new)
        session.save(f"turn {session.turn}")
        size += sum(len(values.encode(message)) for message in new)
    return size


def held(store: Store) -> int:
    """Bytes that the engine holds."""
    return store.engine.stats().bytes


@pytest.fixture(scope="module")
def long_place(new_place: Callable[[], Place]) -> Place:
    """A place with a session `long` of 5,000 turns, and one `line<n>` forked at each length."""
    place = new_place()
    session = place.open().session("long")
    grow(session, max(LENGTHS))
    for length in LENGTHS:
        session.fork(f"line{length}", at=length)
    return place


@pytest.mark.parametrize("length", LENGTHS)
def test_bookkeeping_of_a_turn_is_small_at_every_length(long_place: Place, length: int) -> None:
    if long_place.kind == "object store":
        pytest.skip("an object store keeps what was merged until it is collected")
    store = long_place.open()
    session = store.session("long").fork(f"measured{length}", at=length)
    before = held(store)
    spoken = grow(session, WINDOW)
    a_turn = (held(store) - before - spoken) / WINDOW
    assert 0 < a_turn <= MOST_A_TURN


@pytest.mark.parametrize("length", LENGTHS)
def test_a_save_writes_two_messages_a_node_and_a_snapshot(long_place: Place, length: int) -> None:
    store, engine = long_place.counted()
    session = store.session("long").fork(f"written{length}", at=length)
    for _ in range(WINDOW):
        engine.forget()
        grow(session, 1)
        assert len(engine.committed) == 4
        assert engine.commits == 1


@pytest.mark.parametrize("length", LENGTHS)
def test_what_a_save_reads_does_not_grow(long_place: Place, length: int) -> None:
    store, engine = long_place.counted()
    session = store.session(f"line{length}")
    session.history.append("after a cold start")
    session.save()
    assert len(engine.read_ids) <= 6  # HEAD, the last node, and what their jumps are found from
    engine.forget()
    grow(session, WINDOW)
    assert len(engine.read_ids) <= 2 * WINDOW


@pytest.mark.parametrize("length", LENGTHS)
def test_editing_the_end_reads_and_writes_as_little(long_place: Place, length: int) -> None:
    store, engine = long_place.counted()
    session = store.session("long").fork(f"edited{length}", at=length)
    engine.forget()
    session.history[-2] = "edited"
    del session.history[-1]
    session.save()
    assert len(engine.committed) <= 3
    assert len(engine.read_ids) <= 8


def test_one_key_of_many_costs_a_path_of_the_map(place: Place) -> None:
    store, engine = place.counted()
    session = store.session("s")
    session.scratchpad.update({f"key {n}": n for n in range(10_000)})
    session.save()
    engine.forget()
    before = held(store)
    session.scratchpad["key 5000"] = "changed"
    session.save()
    assert len(engine.committed) <= 5
    assert held(store) - before < 4096


def test_a_fork_costs_less_than_a_kilobyte(long_place: Place) -> None:
    store = long_place.open()
    before = held(store)
    store.session("long").fork("one-more", at=2345)
    assert held(store) - before < 1024


def test_a_hundred_forks_of_a_large_session_share_its_history(place: Place) -> None:
    store = place.open()
    session = store.session("large")
    session.history.extend(_random.randbytes(40_000).hex() for _ in range(100))
    session.save()
    before = held(store)
    assert before > 2 << 20
    for n in range(100):
        fork = session.fork(f"fork{n}")
        fork.history.append(n)
        fork.save()
    most = 150 if place.kind == "object store" else 100  # there each record is an object of its own
    assert held(store) - before < most << 10


def test_an_unchanged_save_and_going_nowhere_cost_nothing(place: Place) -> None:
    store = place.open()
    session = store.session("s")
    grow(session, 3)
    store.switch("s")
    before = held(store)
    session.save()
    place.open().session("s").save()
    store.switch("s")
    assert not session.unsaved
    assert held(store) == before
