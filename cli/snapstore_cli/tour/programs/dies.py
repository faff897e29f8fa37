"""The same agent on a disk that dies: half of a turn is written, then SIGKILL."""

import os
import signal
from pathlib import Path

from snapstore import Store
from snapstore.disk import Disk
from snapstore.engines.log.engine import LogEngine


class DyingDisk(Disk):
    def write_at(self, fd: int, data: bytes, offset: int) -> None:
        super().write_at(fd, data[: len(data) // 2], offset)
        os.kill(os.getpid(), signal.SIGKILL)


session = Store(LogEngine(Path(".snapstore"), disk=DyingDisk())).session("fix-login")
session.history.append({"role": "user", "content": "Change the changelog."})
print("saving turn", session.turn + 1, flush=True)
session.save("Change the changelog.")
print("this is never printed")
