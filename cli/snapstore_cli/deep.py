"""Room for values that are nested deeper than the interpreter's stack is meant for.

Messages may be nested to any depth, and Python's JSON module recurses once a level. What does not
fit the usual limits is done again on a thread with a large stack of its own.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from snapstore.errors import InvalidInput

_STACK = 512 << 20
_DEPTH = 200_000

T = TypeVar("T")


def with_room(work: Callable[[], T]) -> T:
    """What work returns, with more stack if it needs it. Raises InvalidInput if that is not enough.

    Work may be called twice, so it must do nothing but compute.
    """
    try:
        return work()
    except RecursionError:
        return _on_large_stack(work)


def _on_large_stack(work: Callable[[], T]) -> T:
    outcome: list[T] = []
    failure: list[BaseException] = []

    def attempt() -> None:
        try:
            outcome.append(work())
        except BaseException as error:
            failure.append(error)

    limit, size = sys.getrecursionlimit(), threading.stack_size(_STACK)
    sys.setrecursionlimit(_DEPTH)
    try:
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
        sys.setrecursionlimit(limit)
    if not failure:
        return outcome[0]
    if isinstance(failure[0], RecursionError):
        raise InvalidInput(f"nested deeper than {_DEPTH:,} levels") from None
    raise failure[0]
