"""What a look at the files of a local store tells of its state, without reading all of it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from snapstore.disk import Disk
from snapstore.engines.log import trash
from snapstore.engines.log.layout import Layout, Manifest
from snapstore.engines.log.log import Log
from snapstore.engines.log.tail import examine
from snapstore.errors import DiskError
from snapstore.sizes import told

_TRASH = (
    "snapstore gc --apply removes what is older than a day; with --grace 0 all of it, and with it "
    "what only undo and recover could bring back"
)


class Sign(NamedTuple):
    """One thing that was looked at."""

    well: bool
    text: str
    advice: str = ""
    """What to do, when it is not well; or about what is well and takes room."""


def signs(layout: Layout, disk: Disk, log: Log) -> Iterator[Sign]:
    """The signs of a store whose log was just followed."""
    yield _manifest(layout, log)
    yield _tail(log)
    if log.hurt is not None:
        yield Sign(False, str(log.hurt), log.hurt.hint)
    yield _room(layout, disk)
    yield _modes(layout.root)
    yield _lock(layout, disk)
    yield from _put_aside(layout)


def _manifest(layout: Layout, log: Log) -> Sign:
    if log.damaged is not None:
        return Sign(False, str(log.damaged), "snapstore repair --apply")
    strays = trash.stray(layout, Manifest.read(layout.manifest).segments)
    left = [*layout.leftovers(), *trash.unfinished(layout)]
    if strays or left:
        return Sign(True, "files of a process that was cut off; the next save removes them")
    number = len(log.segments)
    segments = "1 segment" if number == 1 else f"{number} segments"
    return Sign(True, f"format and manifest are in order ({segments})")


def _tail(log: Log) -> Sign:
    active = log.active
    if log.cut_short is not None:
        return Sign(False, str(log.cut_short), log.cut_short.hint)
    if active.size() == active.end > 0:
        return Sign(True, "the end of the log is as it was written")
    data = os.pread(active.fd, active.size() - active.end, active.end)
    tail = examine(data, active.name, active.end, active.next_number)
    if tail.acknowledged:
        text = f"acknowledged data is damaged ({active.name} at {active.end}); nothing is saved"
        return Sign(False, text, "snapstore verify, then snapstore repair --apply")
    return Sign(True, f"a torn tail of {told(tail.length)}; the next save sets it aside")


def _room(layout: Layout, disk: Disk) -> Sign:
    free, held = disk.free(layout.root), layout.bytes_on_disk()
    if free < max(held, 64 << 20):
        text = f"{told(free)} are free on this disk, and the store takes {told(held)}"
        return Sign(False, text, "make room: a collection needs as much again for a moment")
    return Sign(True, f"the store takes {told(held)}, {told(free)} are free")


def _modes(root: Path) -> Sign:
    for path in [root, *root.rglob("*")]:
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
        except OSError:
            continue
        if mode & 0o077:
            text = f"others may read {path} (mode {mode:04o})"
            return Sign(False, text, f"chmod -R go= {root}")
    return Sign(True, "nobody else may read it")


def _lock(layout: Layout, disk: Disk) -> Sign:
    if not layout.lock.exists():
        return Sign(True, "nobody has saved yet")
    try:
        fd = disk.open_lock(layout.lock)
    except DiskError as error:
        return Sign(False, str(error), "see who owns the files of the store")
    try:
        if disk.try_lock(fd):
            return Sign(True, "no process holds the lock")
    finally:
        os.close(fd)
    return Sign(True, "a process is saving at this moment")


def _put_aside(layout: Layout) -> Iterator[Sign]:
    for folder, what in (
        (layout.trash, _TRASH),
        (layout.torn, "it may be removed once nobody misses anything"),
        (layout.damaged, "it may be removed once nobody misses anything"),
    ):
        held = sum(path.stat().st_size for path in folder.glob("*"))
        if held:
            yield Sign(True, f"{folder.name}/ holds {told(held)}", what)
