"""The order in which objects are met: each after all that it refers to."""

from __future__ import annotations

import os
from pathlib import Path

from between import filled
from hypothesis import given, settings
from hypothesis import strategies as st

from snapstore import Store
from snapstore.engine import Obj
from snapstore.engines.memory import MemoryEngine
from snapstore.links import links
from snapstore.transfer.closure import Closure, Link, Type


def met(store: Store, head: bytes, known: set[bytes] = frozenset()) -> list[Obj]:  # type: ignore[assignment]
    return list(Closure(store.objects, known.__contains__).of(Link(Type.SNAPSHOT, head)))


def full(folder: Path) -> Store:
    """A store with one session of every kind of content."""
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "er" / "large").write_bytes(os.urandom(300_000))
    for n in range(80):
        (folder / f"file {n}").write_text(str(n))
    store = Store(MemoryEngine())
    session = store.session("s")
    session.worktree = folder
    for n in range(6):
        session.history += [n, "x" * 70_000 * (n % 2)]
        session.scratchpad.update({f"{n} {k}": "y" * 300 for k in range(40)})
        session.save()
    return store


def test_it_is_every_object_once_each_after_what_it_refers_to(tmp_path: Path) -> None:
    store = full(tmp_path)
    objects = met(store, store.resolve("s").raw_id)
    ids = [o.id for o in objects]
    everything = {i for i, _ in store.engine.ids(b"", 0)}
    assert len(ids) == len(set(ids))
    assert set(ids) == everything
    seen: set[bytes] = set()
    for o in objects:
        assert links([o]) & everything <= seen
        seen.add(o.id)


def test_what_is_known_and_all_behind_it_is_left_out(tmp_path: Path) -> None:
    store = full(tmp_path)
    middle = {o.id for o in met(store, store.resolve("s@3").raw_id)}
    rest = met(store, store.resolve("s").raw_id, {store.resolve("s@3").raw_id} | middle)
    assert not {o.id for o in rest} & middle
    assert rest[-1].id == store.resolve("s").raw_id


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.data())
def test_a_part_that_was_written_down_refers_to_nothing_that_was_not(
    messages: list[int], data: st.DataObject
) -> None:
    store = filled(Store(MemoryEngine()), "s", *messages)
    objects = met(store, store.resolve("s").raw_id)
    cut = data.draw(st.integers(0, len(objects)))
    written = {o.id for o in objects[:cut]}
    named = links(objects[:cut])
    assert named <= written


def test_a_long_line_and_a_deep_tree_do_not_exhaust_the_stack(tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(400):
        deep = deep / "d"
    deep.mkdir(parents=True)
    (deep / "file").write_text("x")
    store = Store(MemoryEngine())
    session = store.session("s")
    session.worktree = tmp_path
    for n in range(1500):
        session.history.append(n)
        session.save()
        session.worktree = None
    assert len(met(store, store.resolve("s").raw_id)) > 4500
