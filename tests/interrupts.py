"""Ctrl-C at any place in the library, one place after the other."""

from __future__ import annotations

import opcode
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import snapstore

_LIBRARY = str(Path(snapstore.__file__).parent)
_LOOKS = {
    opcode.opmap.get(name)
    for name in ("CALL", "CALL_KW", "CALL_FUNCTION_EX", "RESUME", "JUMP_BACKWARD")
}
"""After these the interpreter looks whether a signal came, and raises what its handler raises."""


class CtrlC:
    """Raises KeyboardInterrupt at the n-th place in the library where a signal would."""

    def __init__(self, place: int) -> None:
        self.came = False
        """Whether there were so many places."""
        self._left = place
        self._before: dict[FrameType, int] = {}

    def __enter__(self) -> CtrlC:
        sys.settrace(self._entered)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: object, trace: TracebackType | None
    ) -> bool:
        sys.settrace(None)
        self._before.clear()
        return kind is KeyboardInterrupt

    def _entered(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any] | None:
        if frame.f_back is not None:
            self._before.pop(frame.f_back, None)  # nobody looks when a function in Python returns
        if not frame.f_code.co_filename.startswith(_LIBRARY):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self._before[frame] = opcode.opmap["RESUME"]  # which is not traced itself
        return self._going_on

    def _going_on(self, frame: FrameType, event: str, arg: Any) -> Callable[..., Any]:
        if event == "opcode":
            before = self._before.get(frame)
            self._before[frame] = frame.f_code.co_code[frame.f_lasti]
            if before is not None and before in _LOOKS:
                self._left -= 1
                if not self._left:
                    self.came = True
                    raise KeyboardInterrupt
        elif event == "return":
            self._before.pop(frame, None)
        return self._going_on


def everywhere(*, step: int = 1) -> Iterator[CtrlC]:
    """Ctrl-C at one place after the other, until the work has no more; use each in a ``with``."""
    for n in count(1, step):
        interrupt = CtrlC(n)
        yield interrupt
        if not interrupt.came:
            return
