"""Local stores over any disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from frail import QuickDisk

from snapstore import Store
from snapstore.disk import Disk
from snapstore.engines.log.engine import LogEngine
from snapstore.worktree.local import Local

OpenStore = Callable[..., Store]
"""Opens the one store of a test over the disk that it is given."""


def store_at(root: Path, disk: Disk | None = None) -> Store:
    """The store at root, over this disk or a quick one."""
    disk = disk or QuickDisk()
    return Store(LogEngine(root, disk=disk), local=Local(root, disk))
