"""What changed goes to the remotes that ask for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from between import filled, heads, is_whole

import snapstore
from snapstore import Store, Unreachable
from snapstore.transfer.auto import behind, is_under_way, last_pushes, push_changes, take_lock
from snapstore.transfer.carry import Outcome
from snapstore.transfer.remotes import add_remote, remove_remote, set_auto_push

HOLD = """
import sys, snapstore
from snapstore.transfer import auto
lock = auto.take_lock(snapstore.open(sys.argv[1]).local)
print(lock is not None, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Where the remote is to be."""
    return tmp_path / "other"


@pytest.fixture
def here(tmp_path: Path, other: Path) -> Store:
    """A store with two sessions and a remote that asks for pushes."""
    store = snapstore.open(tmp_path / "here", durable=False)
    filled(filled(store, "a", 1, 2), "b", 1)
    add_remote(store, "origin", str(other), auto_push=True)
    return store


def there(other: Path) -> Store:
    return snapstore.open(other, create=False)


def offline(place: str, *, create: bool) -> Store:
    raise Unreachable("nobody answers")


def test_everything_goes_over_at_first_and_then_what_changed(
    here: Store, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert behind(here) == ["origin"]
    assert push_changes(here)["origin"].error == ""
    assert heads(there(other)) == heads(here)
    assert behind(here) == []
    from snapstore.transfer import carry

    real, carried = carry.carry, []

    def watched(*args: object, **how: object) -> object:
        done = real(*args, **how)  # type: ignore[arg-type]
        carried.extend(done)
        return done

    monkeypatch.setattr(carry, "carry", watched)
    filled(here, "b", "more")
    here.tag("kept", here.resolve("a@1"))
    push_changes(here)
    assert [(one.name, one.outcome) for one in carried] == [
        ("kept", Outcome.NEW),
        ("b", Outcome.MOVED),
    ]
    assert heads(there(other)) == heads(here)
    assert is_whole(there(other))


def test_a_remote_that_does_not_ask_is_left_alone(here: Store, other: Path) -> None:
    set_auto_push(here, "origin", False)
    assert (behind(here), push_changes(here), other.exists()) == ([], {}, False)
    set_auto_push(here, "origin", True)
    push_changes(here)
    assert heads(there(other)) == heads(here)


def test_what_was_saved_offline_goes_over_when_the_remote_is_back(here: Store, other: Path) -> None:
    push_changes(here)
    filled(here, "a", "offline")
    failed = push_changes(here, offline)["origin"]
    assert (failed.error, failed.offline) == ("nobody answers", True)
    assert last_pushes(here)["origin"] == failed
    filled(here, "b", "still offline")
    push_changes(here, offline)
    push_changes(here)
    assert heads(there(other)) == heads(here)
    assert last_pushes(here)["origin"].error == ""


def test_a_remote_that_fails_does_not_keep_another_from_its_push(here: Store, other: Path) -> None:
    (other.parent / "file").write_text("no directory")
    add_remote(here, "broken", str(other.parent / "file"), auto_push=True)
    done = push_changes(here)
    assert done["broken"].error
    assert not done["broken"].offline
    assert heads(there(other)) == heads(here)
    assert behind(here) == ["broken"]


def test_a_remote_that_is_gone_is_not_made_again(here: Store, other: Path) -> None:
    push_changes(here)
    other.rename(other.with_name("taken away"))
    filled(here, "a", "more")
    assert push_changes(here)["origin"].offline
    assert not other.exists()
    other.with_name("taken away").rename(other)
    push_changes(here)
    assert heads(there(other)) == heads(here)


def test_another_place_under_the_same_name_gets_everything(here: Store, other: Path) -> None:
    push_changes(here)
    remove_remote(here, "origin")
    add_remote(here, "origin", str(other.with_name("new")), auto_push=True)
    push_changes(here)
    assert heads(there(other.with_name("new"))) == heads(here)


def test_a_save_during_a_push_goes_over_before_it_ends(here: Store, other: Path) -> None:
    def saved_meanwhile(place: str, *, create: bool) -> Store:
        if len(here.session("a").history) == 2:
            filled(here, "a", "meanwhile")
        return snapstore.open(place, create=create)

    push_changes(here, saved_meanwhile)
    assert len(there(other).session("a").history) == 3
    assert behind(here) == []


def test_one_process_pushes_at_a_time(here: Store, other: Path) -> None:
    assert here.local is not None
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(here.local.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdin is not None and holder.stdout is not None
    with holder:
        assert holder.stdout.readline() == "True\n"
        assert is_under_way(here)
        assert push_changes(here) == {}
        assert not other.exists()
        os.kill(holder.pid, signal.SIGKILL)
    assert not is_under_way(here)
    push_changes(here)
    assert heads(there(other)) == heads(here)


def test_a_lock_that_was_taken_before_is_given_back(here: Store, other: Path) -> None:
    assert here.local is not None
    lock = take_lock(here.local)
    assert take_lock(here.local) is None
    push_changes(here, lock=lock)
    assert heads(there(other)) == heads(here)
    assert not is_under_way(here)


def test_without_what_is_kept_of_the_last_push_everything_is_looked_at_again(
    here: Store, other: Path
) -> None:
    push_changes(here)
    assert here.local is not None
    (here.local.root / "cache" / "pushed").write_bytes(b"\xc1 nonsense")
    filled(here, "a", "more")
    push_changes(here)
    assert heads(there(other)) == heads(here)
    assert behind(here) == []


def test_a_store_without_a_directory_pushes_too(other: Path) -> None:
    store = filled(snapstore.open("memory://"), "a", 1)
    add_remote(store, "origin", str(other), auto_push=True)
    assert push_changes(store)["origin"].error == ""
    assert heads(there(other)) == heads(store)
