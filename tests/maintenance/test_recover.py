"""Turns that nothing leads to become sessions again."""

from __future__ import annotations

from snapstore import Store, values
from snapstore.engine import Kind
from snapstore.maintenance.recover import recover
from snapstore.objects import Stage


def lost_line(store: Store, turns: int) -> bytes:
    """A line of turns that no ref and no move ever led to."""
    head: bytes | None = None
    with Stage(store.objects) as stage:
        for n in range(turns):
            message = stage.put_content(values.encode(f"said {turns} {n}", path="m"))
            history = store.objects.lists.append(None, [message], stage.put_node)
            head, _ = store.objects.snapshots.create(
                head, stage.put_snapshot, time=store.clock(), history=history
            )
        stage.commit()
    assert head is not None
    return head


def test_nothing_is_lost_in_a_store_that_was_only_used(store: Store) -> None:
    session = store.session("a")
    for n in range(3):
        session.history.append(n)
        session.save()
    session.rewind(1)
    store.session("b").save()
    store.delete("b")
    assert recover(store) == []


def test_the_end_of_a_lost_line_becomes_a_session(store: Store) -> None:
    head = lost_line(store, 3)
    (found,) = recover(store)
    assert (found.name, found.id, found.turn) == ("recovered/1", head, 3)
    assert store.session("recovered/1").turn == 3
    assert recover(store) == []


def test_a_dry_run_makes_no_session(store: Store) -> None:
    lost_line(store, 2)
    assert [found.turn for found in recover(store, dry_run=True)] == [2]
    assert store.sessions() == []


def test_two_lost_lines_are_two_sessions(store: Store) -> None:
    heads = {lost_line(store, 1), lost_line(store, 4)}
    found = recover(store)
    assert {one.id for one in found} == heads
    assert {one.name for one in found} == {"recovered/1", "recovered/2"}
    kinds = {store.engine.read(one.id).kind for one in found}
    assert kinds == {Kind.SNAPSHOT}
