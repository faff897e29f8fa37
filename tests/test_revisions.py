"""How a turn is named: every form, what wins over what, and what is said when nothing fits."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stores import Place, ticking

from snapstore import Ambiguous, InvalidInput, NotFound, SnapstoreError, Store
from snapstore import open as open_store
from snapstore.engine import Kind


@pytest.fixture
def lines(store: Store) -> Store:
    """Session a of five turns; b, forked from its third, with one of its own; tag v1 on a@2."""
    a = store.session("a")
    for n in range(1, 6):
        a.history.append(f"a{n}")
        a.save(f"label {n}")
    b = a.fork("b", at=3)
    b.history.append("b4")
    b.save("other")
    store.tag("v1", a.at(2))
    store.switch("a")
    return store


@pytest.mark.parametrize(
    ("revision", "session", "turn"),
    [
        ("a", "a", 5), ("a@1", "a", 1), ("a@5", "a", 5), ("a~", "a", 4), ("a~0", "a", 5),
        ("a~4", "a", 1), ("a@{0}", "a", 5), ("a@{4}", "a", 1), ("a@{1}~2", "a", 2),
        ("a@{1}@1", "a", 1), ("a~1~1", "a", 3), ("a@4~1", "a", 3), ("a~1@2", "a", 2),
        ("b", "b", 4), ("b@3", "b", 3), ("b~3", "b", 1), ("b@{1}", "b", 3),
        ("@", "a", 5), ("@~1", "a", 4), ("@@2", "a", 2), ("@@{2}", "a", 3), ("@~1~1", "a", 3),
        ("v1", None, 2), ("v1~1", None, 1), ("v1@1", None, 1),
    ],
)  # fmt: skip
def test_every_form_names_its_turn(
    lines: Store, revision: str, session: str | None, turn: int
) -> None:
    found = lines.revision(revision)
    assert (found.session, found.snapshot.turn, found.path) == (session, turn, None)
    line = lines.session(session or "a").log()
    assert found.snapshot in list(line)


def test_every_id_and_its_unique_prefixes_name_their_snapshot(lines: Store) -> None:
    turns = [*lines.session("a").log(), *lines.session("b").log()]
    for snapshot in turns:
        for digits in (64, 40, 12):
            found = lines.revision(snapshot.id[:digits])
            assert (found.snapshot, found.session) == (snapshot, None)
        if snapshot.parent:
            assert lines.resolve(f"{snapshot.id[:12]}~1").id == snapshot.parent


def test_what_follows_a_colon_is_a_path(lines: Store) -> None:
    found = lines.revision("a@2:src/main.py:1~2@3")
    assert (found.snapshot.turn, found.path) == (2, "src/main.py:1~2@3")
    assert lines.revision("@:x").path == "x"
    assert lines.revision("a:").path == ""


def test_at_is_the_session_that_the_caller_says_is_current(lines: Store) -> None:
    assert lines.resolve("@", current="b").history[-1] == "b4"
    lines.switch("b")
    assert lines.resolve("@").history[-1] == "b4"


def test_turns_that_were_rewound_away_are_reached_by_id_and_by_moves(lines: Store) -> None:
    session = lines.session("a")
    head = session.head
    assert head is not None
    session.rewind(2)
    assert lines.resolve("a@{1}") == lines.resolve(head.id) == head
    with pytest.raises(NotFound, match="turns 1 to 2") as missing:
        lines.resolve("a@5")
    assert "rewound" in missing.value.hint


@pytest.mark.parametrize(
    "text",
    ["", "@5", "@{1}", "a@", "a@x", "a@-1", "a@{}", "a@{-1}", "a@{x}", "a~x", "a~-1", "a@1.5",
     "a~1@{1}", "a@@2", "@@", "@@@2", "~1", ":path", "a@{1", "a@1}", "a@{1}@{1}",
     "a@" + "9" * 5000, "a@١"],
)  # fmt: skip
def test_what_is_no_revision_is_refused_with_the_forms_there_are(lines: Store, text: str) -> None:
    with pytest.raises(InvalidInput, match="is no revision") as refusal:
        lines.resolve(text)
    assert "NAME@12" in refusal.value.hint


@pytest.mark.parametrize(
    "text", ["a@0", "a@6", "a~5", "a@{5}", "b@5", "v1@3", "v1@{1}", "c@{0}", "a@" + "9" * 18]
)
def test_a_turn_that_is_not_there_is_not_found(lines: Store, text: str) -> None:
    with pytest.raises(NotFound):
        lines.resolve(text)


@given(st.text("ab@~{}:019é ", max_size=12))
@settings(deadline=None, max_examples=200)
def test_any_text_is_a_turn_or_an_error_of_ours(text: str) -> None:
    store = open_store("memory://", clock=ticking())
    store.session("a").save()
    store.switch("a")
    try:
        assert store.resolve(text).turn == 1
    except SnapstoreError as error:
        assert error.hint


def test_near_names_are_suggested(lines: Store) -> None:
    lines.session("a").fork("fix-login")
    with pytest.raises(NotFound) as missing:
        lines.resolve("fix-logn~2")
    assert missing.value.hint == "did you mean fix-login?"
    with pytest.raises(NotFound) as missing:
        lines.resolve("quite-different")
    assert "sessions" in missing.value.hint


def test_a_name_that_is_gone_says_how_it_went(lines: Store) -> None:
    lines.delete("b")
    with pytest.raises(NotFound, match="b was deleted") as gone:
        lines.resolve("b@1")
    assert "undo -s b" in gone.value.hint
    assert lines.resolve("b@{1}").turn == 4
    lines.rename("a", "c")
    with pytest.raises(NotFound, match="a was renamed to c"):
        lines.resolve("a")
    assert lines.resolve("@") == lines.resolve("c")
    young = lines.session("young")
    young.save()
    young.undo()
    with pytest.raises(NotFound, match="undone") as gone:
        lines.resolve("young")
    assert "redo -s young" in gone.value.hint


def test_without_a_current_session_at_means_nothing(store: Store) -> None:
    with pytest.raises(NotFound, match="no current session"):
        store.resolve("@")


@pytest.mark.parametrize("digits", ["ffffffff", "f" * 64, "0" * 4])
def test_an_id_that_is_not_there_is_not_found(lines: Store, digits: str) -> None:
    with pytest.raises(NotFound):
        lines.resolve(digits)


# --- abbreviations ---------------------------------------------------------------------------


@pytest.fixture
def crowded(store: Store) -> tuple[Store, str, list[str]]:
    """A store with two snapshots whose ids begin with the same four digits: these, and the ids."""
    session = store.session("s")
    seen: dict[str, list[str]] = defaultdict(list)
    while True:
        snapshot = session.save(f"label {session.turn}")
        alike = seen[snapshot.id[:4]]
        alike.append(snapshot.id)
        if len(alike) > 1:
            return store, snapshot.id[:4], sorted(alike)


def test_an_ambiguous_prefix_lists_its_candidates(
    crowded: tuple[Store, str, list[str]],
) -> None:
    store, prefix, alike = crowded
    with pytest.raises(Ambiguous, match=f"{prefix} fits 2 snapshots") as ambiguous:
        store.resolve(prefix)
    assert sorted(ambiguous.value.candidates) == alike
    for snapshot_id in alike:
        snapshot = store.resolve(snapshot_id)
        described = f"{snapshot_id[:12]} turn {snapshot.turn} {snapshot.label}"
        assert described in str(ambiguous.value)


def test_names_win_over_a_hex_prefix_and_sessions_over_tags(
    crowded: tuple[Store, str, list[str]],
) -> None:
    store, prefix, alike = crowded
    first = store.resolve("s@1")
    store.tag(prefix, first)
    assert store.resolve(prefix) == first
    hiding = store.session(prefix)
    hiding.save("1")
    hiding.save("2")
    assert store.resolve(prefix).turn == 2
    assert store.revision(prefix).session == prefix
    assert store.resolve(alike[0]).id == alike[0]


def test_only_snapshots_count_for_an_abbreviation(store: Store, place: Place) -> None:
    session = store.session("s")
    taken = set()
    for n in range(60):
        session.history.append(f"message {n}")
        taken.add(session.save().id[:4])
    others = {i.hex() for i, kind in store.engine.ids(bytes(32), 0) if kind != Kind.SNAPSHOT}
    assert others
    for other in others:
        if other[:4] not in taken:
            with pytest.raises(NotFound):
                place.open().resolve(other)


def test_three_digits_are_too_few_for_an_abbreviation(lines: Store) -> None:
    head = lines.resolve("a")
    with pytest.raises(NotFound):
        lines.resolve(head.id[:3])


def test_a_name_typed_in_another_normal_form_is_the_name(store: Store) -> None:
    session = store.session("café")
    session.save()
    assert store.resolve("cafe\u0301@1") == session.head
    with pytest.raises(InvalidInput) as refused:
        store.session("cafe\u0301")
    assert "looks the same" in refused.value.hint
