"""What is counted is the same on every engine, read at one go or by following lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from stores import Place

from snapstore import Store
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout
from snapstore.values import encode

COUNTED = ("logical_bytes", "sessions", "turns")


def counted(store: Store) -> tuple[Any, ...]:
    found = store.stats()
    return tuple(found[name] for name in COUNTED)


def saved(store: Store, name: str, *messages: Any) -> None:
    session = store.session(name)
    for message in messages:
        session.history.append(message)
        session.save()


def test_each_turn_counts_its_whole_history_and_shared_ones_once(
    store: Store, place: Place
) -> None:
    messages = ["one", {"role": "user", "content": "two"}, "large " * 30_000]
    saved(store, "a", *messages)
    store.session("a").fork("b", at=2)
    saved(store, "b", "four")
    store.session("a").fork("c")
    sizes = [len(encode(message)) for message in (*messages, "four")]
    one, two, three, four = sizes
    logical = one + (one + two) + (one + two + three) + (one + two + four)
    assert counted(place.open()) == (logical, 3, 4)


def test_what_was_deleted_or_rewound_is_not_counted(store: Store, place: Place) -> None:
    saved(store, "a", "one", "two")
    saved(store, "gone", "three")
    store.delete("gone")
    store.session("a").rewind(1)
    assert counted(place.open()) == (len(encode("one")), 1, 1)


def test_a_line_that_breaks_off_is_counted_as_far_as_it_goes(store: Store, place: Place) -> None:
    saved(store, "a", "one", "two", "three")
    lost = store.session("a").at(2).raw_id
    size = sum(len(encode(message)) for message in ("one", "two", "three"))
    assert counted(place.lacking(lost)) == (size, 1, 1)


def test_a_collected_store_counts_the_same(tmp_path: Path) -> None:
    with Store(LogEngine(tmp_path / "store")) as store:
        saved(store, "a", *(f"message {n} " * 40 for n in range(50)))
        before = counted(store)
        store.gc(apply=True)
        assert counted(store) == before


@pytest.mark.parametrize("what", ["stats", "verify"])
def test_progress_is_told_in_bytes_up_to_all_of_them(tmp_path: Path, what: str) -> None:
    root = tmp_path / "store"
    with Store(LogEngine(root, seal_at=8_000)) as store:
        saved(store, "a", *(f"message {n} " * 200 for n in range(60)))
        told: list[tuple[int, int]] = []
        getattr(store, what)(lambda done, total: told.append((done, total)))
    size = sum(p.stat().st_size for p in Layout(root).segment(1).parent.glob("*.seg"))
    assert told == sorted(told) and told[-1] == (size, size)
    assert len(told) > 1
