"""What is known of a log may be left half changed by what can come at any place in the code.

An error of our own is raised where all is in order. Ctrl-C, and what another thread or a lack of
memory throws in, is not: then an object or a segment may be missing from what is known although it
is in the log. So a handle that saw that happen believes nothing and reads the log anew.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from snapstore.errors import SnapstoreError

P = ParamSpec("P")
R = TypeVar("R")


class Tearing(Protocol):
    """What may be left half changed."""

    torn: bool


T = TypeVar("T", bound=Tearing)


def may_tear(method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[T, P], R]:
    """A method that changes what is known; when it is cut off in the middle, ``torn`` says so."""

    @functools.wraps(method)
    def noted(self: T, /, *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(self, *args, **kwargs)
        except SnapstoreError:
            raise
        except BaseException:
            self.torn = True
            raise

    return noted
