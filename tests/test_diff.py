"""What two sessions do not have in common, and that finding it costs little."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stores import Place, ticking

from snapstore import NotFound, Session, Snapshot, Store
from snapstore import open as open_store
from snapstore.diff import MapDiff


def add(session: Session, *messages: Any) -> Session:
    """One more turn for each message."""
    for message in messages:
        session.history.append(message)
        session.save(str(message)[:20])
    return session


def labels(turns: list[Snapshot]) -> list[str]:
    """What the turns are called."""
    return [turn.label for turn in turns]


NOTHING = MapDiff({}, {}, {})


def test_forks_differ_by_what_each_did_since_their_common_ancestor(store: Store) -> None:
    a = add(store.session("a"), "1", "2", "3")
    b = add(a.fork("b", at=2), "b3", "b4")
    diff = store.diff("a", "b")
    assert (diff.left_head, diff.right_head, diff.base) == (a.head, b.head, a.at(2))
    assert (labels(diff.left), labels(diff.right)) == (["3"], ["b3", "b4"])
    assert diff.history.shared == 2
    assert (diff.history.left, diff.history.right) == (["3"], ["b3", "b4"])
    assert (diff.scratchpad, diff.files, diff.equal) == (NOTHING, None, False)


def test_a_turn_and_its_ancestor_differ_on_one_side_only(store: Store) -> None:
    a = add(store.session("a"), "1", "2", "3")
    diff = store.diff("a@1", "a")
    assert diff.base == a.at(1)
    assert (labels(diff.left), labels(diff.right)) == ([], ["2", "3"])
    assert (diff.history.left, diff.history.right) == ([], ["2", "3"])


def test_a_turn_equals_itself(store: Store) -> None:
    a = add(store.session("a"), "1", "2")
    diff = store.diff(a, a.fork("b"))
    assert diff.equal
    assert (diff.base, diff.left, diff.right) == (a.head, [], [])


def test_two_lines_can_hold_the_same_and_still_have_turns_of_their_own(store: Store) -> None:
    a = add(store.session("a"), "1")
    b = a.fork("b")
    a.save("another label")
    add(b, "2")
    b.history.pop()
    b.save("back")
    diff = store.diff(a, b)
    assert diff.equal
    assert (labels(diff.left), labels(diff.right)) == (["another label"], ["2", "back"])


def test_forks_of_forks_part_where_their_lines_do(store: Store) -> None:
    a = add(store.session("a"), "a1", "a2", "a3", "a4")
    b = add(a.fork("b", at=3), "b4", "b5")
    c = add(b.fork("c", at=4), "c5")
    for left, right, base in (("b", "c", b.at(4)), ("a", "c", a.at(3)), ("a", "b", a.at(3))):
        diff = store.diff(left, right)
        assert diff.base == base
        assert diff.history.shared == base.turn
    assert store.diff("a", "c").history.right == ["b4", "c5"]
    assert c.turn == 5


def test_sessions_brought_in_apart_part_where_their_messages_do(store: Store) -> None:
    common = [f"message {n}" for n in range(10)]
    add(store.session("a"), *common, "a11", "a12")
    add(store.session("b"), *common, "b11")
    diff = store.diff("a", "b")
    assert diff.base is None
    assert diff.history.shared == 10
    assert (diff.history.left, diff.history.right) == (["a11", "a12"], ["b11"])
    assert (labels(diff.left), labels(diff.right)) == (["a11", "a12"], ["b11"])


def test_how_the_messages_were_cut_into_turns_does_not_matter(store: Store) -> None:
    messages = [f"message {n}" for n in range(30)]
    add(store.session("a"), *messages, "left")
    whole = store.session("b")
    whole.history.extend([*messages, "right"])
    whole.save("all at once")
    diff = store.diff("a", "b")
    assert diff.history.shared == 30
    assert (diff.history.left, diff.history.right) == (["left"], ["right"])
    assert (labels(diff.left), labels(diff.right)) == (["left"], ["all at once"])


def test_sessions_with_nothing_in_common_differ_in_everything(store: Store) -> None:
    add(store.session("a"), "1", "2")
    add(store.session("b"), "3")
    diff = store.diff("a", "b")
    assert (diff.base, diff.history.shared) == (None, 0)
    assert (diff.history.left, diff.history.right) == (["1", "2"], ["3"])
    assert (labels(diff.left), labels(diff.right)) == (["1", "2"], ["3"])


def test_a_trimmed_side_shares_its_line_and_no_beginning(store: Store) -> None:
    a = add(store.session("a"), *range(10))
    b = a.fork("b")
    b.trim(keep=3)
    b.save("trimmed")
    diff = store.diff("a", "b")
    assert diff.base == a.head
    assert (labels(diff.left), labels(diff.right)) == ([], ["trimmed"])
    assert diff.history.shared == 0
    assert (diff.history.left, diff.history.right) == (list(range(10)), [7, 8, 9])


def test_scratchpads_differ_by_key(store: Store) -> None:
    a = store.session("a")
    a.scratchpad.update({"same": 1, "gone": 2, "changed": {"old": 3}, "big": "x" * 1000})
    a.save()
    b = a.fork("b")
    b.scratchpad.update({"changed": {"new": 3}, "added": b"4", "big": "y" * 1000})
    del b.scratchpad["gone"]
    b.save()
    diff = store.diff("a", "b")
    assert diff.scratchpad == MapDiff(
        added={"added": b"4"},
        removed={"gone": 2},
        changed={"changed": ({"old": 3}, {"new": 3}), "big": ("x" * 1000, "y" * 1000)},
    )
    assert not diff.equal
    assert store.diff("b", "a").scratchpad.added == {"gone": 2}


def test_sides_are_sessions_snapshots_and_revisions(store: Store) -> None:
    a = add(store.session("a"), "1", "2")
    head = a.head
    assert head is not None
    for side in (a, head, head.id, "a", "a@2"):
        assert store.diff(side, "a@1").history.left == ["2"]
    with pytest.raises(NotFound, match="no turn yet"):
        store.diff(a, store.session("empty"))


MESSAGES = st.lists(st.integers(0, 2), max_size=12)


@given(
    common=MESSAGES, left=MESSAGES, right=MESSAGES, forked=st.booleans(), pieces=st.integers(1, 5)
)
@settings(deadline=None)
def test_what_is_shared_and_what_is_not_make_up_both_sides(
    common: list[int], left: list[int], right: list[int], forked: bool, pieces: int
) -> None:
    store = open_store("memory://", clock=ticking())
    a = store.session("a")
    a.history.extend(common)
    a.save()
    b = a.fork("b") if forked else store.session("b")
    if not forked:
        for start in range(0, len(common), pieces):
            b.history.extend(common[start : start + pieces])
            b.save()
        b.save("last")
    for session, more in ((a, left), (b, right)):
        for message in more:
            add(session, message)
    diff = store.diff(a, b)
    shared = list(a.history[: diff.history.shared])
    assert shared + diff.history.left == common + left
    assert shared + diff.history.right == common + right
    assert not (diff.history.left and diff.history.right) or (
        diff.history.left[0] != diff.history.right[0]
    )
    assert diff.equal == (common + left == common + right)
    assert (diff.base is not None) == forked


# --- the cost, counted -----------------------------------------------------------------------

LONG = 20_000
LOG = LONG.bit_length()


@pytest.fixture(scope="module")
def long_line() -> Store:
    """A session of 20,000 turns, one message each, and a fork that parts near its middle."""
    store = open_store("memory://", clock=ticking())
    session = add(store.session("long"), *range(LONG))
    add(session.fork("near", at=LONG - 3), "other", "way")
    add(session.fork("far", at=LONG // 2), "another")
    imported = store.session("imported")
    add(imported, *range(LONG), "more")
    return store


@pytest.mark.parametrize(
    ("revision", "differing"),
    [("long", 0), ("near", 5), (f"long@{LONG - 50}", 50)],
)
def test_a_diff_reads_as_much_as_differs_and_a_logarithm(
    long_line: Store, revision: str, differing: int
) -> None:
    place = Place(lambda: long_line.engine)
    store, engine = place.counted()
    diff = store.diff("long", revision)
    assert len(diff.history.left) + len(diff.history.right) == differing
    # Of what differs the turn, the list node and the message; twice the skip pointers of a line.
    assert len(engine.read_ids) <= 3 * differing + 2 * 4 * LOG


def test_a_diff_of_sessions_brought_in_apart_reads_little_too(long_line: Store) -> None:
    store, engine = Place(lambda: long_line.engine).counted()
    diff = store.diff("long", "imported")
    assert diff.base is None
    assert (diff.history.shared, diff.history.left, diff.history.right) == (LONG, [], ["more"])
    assert len(engine.read_ids) <= 3 + 3 * 4 * LOG


@pytest.mark.parametrize("turn", [1, LONG // 2, LONG - 1])
def test_a_turn_of_a_long_line_is_found_in_a_logarithm_of_reads(
    long_line: Store, turn: int
) -> None:
    store, engine = Place(lambda: long_line.engine).counted()
    assert store.resolve(f"long@{turn}").turn == turn
    assert len(engine.read_ids) <= 4 * LOG
    engine.forget()
    assert store.session("far").history[-1] == "another"
    assert len(engine.read_ids) <= 4


def test_a_difference_prints_as_its_numbers(store: Store) -> None:
    left = add(store.session("left"), "one", "two")
    right = left.fork("right", at=1)
    right.scratchpad["key"] = "secret"
    add(right, "other")
    shown = repr(store.diff("left", "right"))
    assert "base: turn 1" in shown and "1 added" in shown and "secret" not in shown
    assert len(shown) < 200
