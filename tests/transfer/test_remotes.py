"""Other stores by name."""

from __future__ import annotations

import pytest
from stores import Place

from snapstore import InvalidInput, NotFound, Refused, Store
from snapstore.transfer.remotes import (
    Remote,
    add_remote,
    remote,
    remotes,
    remove_remote,
    set_auto_push,
)


def test_a_store_has_none_at_first(store: Store) -> None:
    assert remotes(store) == {}
    with pytest.raises(NotFound, match="no remote origin"):
        remote(store, "origin")


def test_they_are_kept_in_the_store(store: Store, place: Place) -> None:
    add_remote(store, "origin", "/somewhere")
    add_remote(store, "cloud", "s3://bucket/prefix", auto_push=True)
    assert remotes(place.open()) == {
        "origin": Remote("/somewhere"),
        "cloud": Remote("s3://bucket/prefix", auto_push=True),
    }


def test_adding_one_again_writes_nothing_and_another_place_is_refused(store: Store) -> None:
    add_remote(store, "origin", "/somewhere")
    moves = len(list(store.engine.reflog()))
    add_remote(store, "origin", "/somewhere")
    assert len(list(store.engine.reflog())) == moves
    with pytest.raises(Refused, match="origin already"):
        add_remote(store, "origin", "/elsewhere")


def test_one_is_removed_by_name(store: Store) -> None:
    add_remote(store, "origin", "/somewhere")
    remove_remote(store, "origin")
    assert remotes(store) == {}
    with pytest.raises(NotFound):
        remove_remote(store, "origin")


def test_whether_one_is_pushed_to_can_be_changed(store: Store) -> None:
    add_remote(store, "origin", "/somewhere")
    set_auto_push(store, "origin", True)
    assert remote(store, "origin") == Remote("/somewhere", auto_push=True)
    set_auto_push(store, "origin", False)
    assert remote(store, "origin") == Remote("/somewhere")
    with pytest.raises(NotFound):
        set_auto_push(store, "cloud", True)


def test_a_place_with_a_password_in_it_is_not_kept(store: Store) -> None:
    with pytest.raises(InvalidInput, match="password"):
        add_remote(store, "origin", "s3://me:secret@bucket/prefix")


def test_they_are_not_sessions(store: Store) -> None:
    add_remote(store, "origin", "/somewhere")
    assert store.sessions() == []
    assert store.verify() == []
