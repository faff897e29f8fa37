"""Segments that are not the store's any more: set aside under the time at which that was done.

A collection puts what it replaced into trash/, where it stays for a grace time, so that a mistake
can be taken back by hand. Repair puts what it replaced into damaged/, and nothing ever removes it
from there but a purge, whose promise is that no copy is left anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from snapstore.disk import Disk
from snapstore.engines.log.layout import UNFINISHED, Layout


def set_aside(layout: Layout, disk: Disk, numbers: Iterable[int], folder: Path, now: int) -> None:
    """Move segments to a folder; now is in microseconds since the epoch. The lock must be held."""
    disk.make_dir(folder)
    move_aside(layout, disk, numbers, folder, now)
    settle(layout, disk, folder)


def move_aside(layout: Layout, disk: Disk, numbers: Iterable[int], folder: Path, now: int) -> None:
    """As set_aside, to a folder that is there; durable only after ``settle``, which needs no lock.
    What a crash undoes of it is a stray again."""
    for number in numbers:
        disk.rename(layout.segment(number), folder / f"{now}-{number:08d}.seg")
        disk.remove(layout.index(number))
        for run in layout.cache.glob(f"{number:08d}.*.idx"):
            disk.remove(run)


def settle(layout: Layout, disk: Disk, folder: Path) -> None:
    """Make durable what was moved aside."""
    disk.sync_dir(folder)
    disk.sync_dir(layout.segment(0).parent)


def empty_trash(layout: Layout, disk: Disk, before: int) -> None:
    """Remove for good what was put into trash/ before a time."""
    for path in layout.trash.glob("*.seg"):
        since, _, _ = path.name.partition("-")
        if since.isascii() and since.isdecimal() and int(since) < before:
            disk.remove(path)


def remove_copies(layout: Layout, disk: Disk) -> None:
    """Remove every copy of what the store once held: trash, torn tails, damaged segments."""
    for folder in (layout.trash, layout.torn, layout.damaged):
        for path in folder.glob("*"):
            disk.remove(path)


def stray(layout: Layout, named: Iterable[int]) -> list[int]:
    """The segments on disk that the manifest does not name: a rewriting was cut off before the
    manifest named them, or before it had set them aside. Seen with the lock held."""
    return sorted(set(layout.segments_on_disk()) - set(named))


def unfinished(layout: Layout) -> Iterator[Path]:
    """What a rewriting that was cut off had begun. Seen by who alone may rewrite."""
    return layout.segment(0).parent.glob(f"*{UNFINISHED}")
