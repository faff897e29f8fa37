"""Writer processes under test, seen from outside; see writer.py for what they do."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

from given import holds_turn

from snapstore.engines.log.engine import LogEngine

WRITER = Path(__file__).parent / "writer.py"


class WriterProcess:
    """A writer process, and what it acknowledged before its end."""

    def __init__(self, root: Path, name: str, seal_at: int, *, lazy: bool = False) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WRITER), str(root), name, str(seal_at), *["lazy"] * lazy],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,  # when its disk goes away it says so
            text=True,
        )
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(line for line in self.process.stdout if line.endswith("\n"))

    def said(self) -> list[tuple[str, str]]:
        """(ref, text) of every turn that it has said was saved."""
        pairs = [line.rstrip("\n").split(" ", 1) for line in list(self.lines)]
        return [(ref, text) for ref, text in pairs]

    def kill(self) -> list[tuple[str, str]]:
        """End it; what it had said by then."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return self.said()


def check_kept(root: Path, acknowledged: list[tuple[str, str]]) -> None:
    """Every acknowledged turn is there, in its ref's moves; nothing is damaged."""
    engine = LogEngine(root)
    saved = {(move.ref, move.info.get("text")) for move in engine.reflog()}
    assert [pair for pair in acknowledged if pair not in saved] == []
    assert [text for _, text in acknowledged if not holds_turn(engine, text)] == []
    for tip in engine.tips():
        assert all(engine.move(tip.ref, gen) is not None for gen in range(1, tip.gen + 1))
    assert [p for p in engine.verify() if not p.harmless] == []
    engine.close()
