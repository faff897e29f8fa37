"""What errors tell: what happened, and what to do next."""

from __future__ import annotations

import pickle
import traceback

from snapstore import NotFound, Refused, SnapstoreError, StoreNotFound


def last_line(error: SnapstoreError) -> str:
    return "".join(traceback.format_exception(error)).splitlines()[-1]


def test_a_traceback_ends_with_the_hint() -> None:
    error = Refused("there is one already", hint="choose another name")
    assert str(error) == "there is one already"
    assert last_line(error) == "hint: choose another name"
    error.hint = "wait"
    assert last_line(error) == "hint: wait"
    assert last_line(pickle.loads(pickle.dumps(error))) == "hint: wait"
    assert last_line(StoreNotFound("none")) == f"hint: {StoreNotFound.hint}"
    assert last_line(NotFound("there is none")).endswith("NotFound: there is none")
