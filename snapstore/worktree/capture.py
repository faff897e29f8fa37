"""Capturing a directory: what is in it now, as a stored tree.

Directories are visited from the root down, each opened from the one above it (see descent), and
their maps are made from the leaves up. What looks as it did at the capture before (see statcache)
is neither opened nor read, and a directory in which nothing changed keeps its map.

Nothing in the directory is written, and nothing of it is fatal: what cannot be read is listed in
the tree as unreadable, and the capture is marked as partial.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from snapstore.errors import NotFound, Refused
from snapstore.model.maps import Inline, Maps, Value
from snapstore.model.wire import Put
from snapstore.worktree import tree
from snapstore.worktree.descent import DIRECTORY, Descent
from snapstore.worktree.ignore import Rules
from snapstore.worktree.listing import READ_FILE, Lister, Parts, texts_in, trusted_look
from snapstore.worktree.reading import Outbox, store_file
from snapstore.worktree.statcache import Look, Seen, StatCache, look_of, to_trust
from snapstore.worktree.tree import Entry, Root, join

_GONE = (FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a capture may grow to before it is refused."""

    files: int = 1_000_000
    size: int = 20 << 30


class Captured(NamedTuple):
    """A directory as it was found."""

    tree: bytes
    partial: bool
    """Whether something could not be captured; the tree says what."""
    cache: StatCache
    """What the next capture should know, once this one is stored."""

    def ignored(self) -> Iterator[bytes]:
        """The paths that ignore rules left out; of a directory only its own."""
        for path, seen in self.cache.seen.items():
            for name in seen.ignored:
                yield join(path, name)


@dataclass(slots=True)
class _Visit:
    """A directory on the way from its listing to its map."""

    path: bytes
    before: Seen | None
    seen: Seen
    changes: dict[bytes, Value | None] = field(default_factory=dict)


class Capture:
    """One capture of one directory. To be used once."""

    def __init__(
        self,
        maps: Maps,
        put: Put,
        outbox: Outbox,
        before: StatCache,
        *,
        own: tuple[int, int] | None = None,
        limits: Limits | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Nodes go to put, contents to the outbox. own is (device, inode) of the store itself."""
        self._maps = maps
        self._put = put
        self._outbox = outbox
        self._before = before
        self._limits = limits
        self._now = clock()
        self._lister = Lister(own, self._now)
        self._visits: list[_Visit] = []
        self._left_out: dict[bytes, Entry] = {}
        self._partial = False
        self._files = self._size = 0

    def run(self, root: bytes) -> Captured:
        """Capture the directory at this path. Raises NotFound, and Refused over the limits."""
        try:
            fd = os.open(root, DIRECTORY & ~os.O_NOFOLLOW)
        except _GONE as error:
            raise NotFound(f"there is no directory {os.fsdecode(root)}") from error
        with Descent(fd) as self._descent:
            self._device = os.fstat(fd).st_dev
            self._walk()
        return self._assemble()

    # --- down: what is there ----------------------------------------------------------------------

    def _walk(self) -> None:
        todo: list[tuple[Parts, Rules]] = [((), Rules())]
        while todo:
            parts, above = todo.pop()
            try:
                fd = self._descent.open(parts)
                info = os.fstat(fd)
            except OSError as error:
                self._cannot_open(parts, error)
                continue
            if info.st_dev != self._device:
                self._leave_out(parts, Entry(tree.MOUNT, stat.S_IMODE(info.st_mode)))
                continue
            rules, seen = self._visit(parts, fd, info, above)
            todo += [((*parts, name), rules) for name in reversed(seen.dirs)]

    def _cannot_open(self, parts: Parts, error: OSError) -> None:
        if not parts:
            raise NotFound(f"the directory cannot be read: {error.strerror}") from error
        if isinstance(error, PermissionError):
            info = os.stat(parts[-1], dir_fd=self._descent.open(parts[:-1]), follow_symlinks=False)
            self._leave_out(parts, Entry(tree.UNREADABLE, stat.S_IMODE(info.st_mode)))
        # Else it went away, or became something else, since its parent was listed.

    def _leave_out(self, parts: Parts, entry: Entry) -> None:
        self._left_out[b"/".join(parts)] = entry
        self._partial = True

    def _visit(
        self, parts: Parts, fd: int, info: os.stat_result, above: Rules
    ) -> tuple[Rules, Seen]:
        path, look = b"/".join(parts), look_of(info)
        before = self._before.seen.get(path)
        if before is not None and before.look == look:
            unchanged = self._unchanged(parts, fd, above, before)
            if unchanged is not None:
                self._count(path, before)
                self._visits.append(_Visit(path, before, before))
                return unchanged, before
        listing = self._lister.list(parts, fd, above)
        names, looks, size, changes = self._look_at_files(fd, listing.names, before)
        seen = Seen(
            to_trust(info, self._now),
            stat.S_IMODE(info.st_mode),
            before.entries if before else None,
            above.digest,
            listing.rules.digest,
            listing.rule_files,
            names,
            looks,
            listing.dirs,
            listing.ignored,
            size,
        )
        if before is not None:
            for name in {*before.names, *before.dirs}.difference(names, listing.dirs):
                changes[name] = None
        self._count(path, seen)
        self._visits.append(_Visit(path, before, seen, changes))
        return listing.rules, seen

    def _unchanged(self, parts: Parts, fd: int, above: Rules, before: Seen) -> Rules | None:
        """The rules in a directory whose names are as before, if its files look as before too."""
        if above.digest != before.above:
            return None
        look_at = os.stat
        try:
            for name, look in before.rule_files:
                if look_of(look_at(name, dir_fd=fd, follow_symlinks=False)) != look:
                    return None
            looks = tuple(
                [
                    (i.st_mtime_ns, i.st_ctime_ns, i.st_size, i.st_ino, i.st_mode)
                    for i in [look_at(n, dir_fd=fd, follow_symlinks=False) for n in before.names]
                ]
            )
        except OSError:
            return None
        if looks != before.looks:
            return None
        names = [name for name, _ in before.rule_files]
        return above.unchanged(
            len(parts), before.rules, lambda: texts_in(self._descent.open(parts), names)
        )

    def _count(self, path: bytes, seen: Seen) -> None:
        self._files += len(seen.names)
        self._size += seen.size
        most = self._limits
        if most and (self._files > most.files or self._size > most.size):
            raise Refused(
                f"there are more than {most.files:,} files or {most.size >> 30} GiB to capture "
                f"(counted up to {os.fsdecode(path) or 'the top'})",
                hint="leave out what is not needed with a .snapstoreignore, or force it",
            )

    # --- one directory's files --------------------------------------------------------------------

    def _look_at_files(
        self, fd: int, names: tuple[bytes, ...], before: Seen | None
    ) -> tuple[tuple[bytes, ...], tuple[Look | None, ...], int, dict[bytes, Value | None]]:
        """The names that are still there, their looks, bytes in all, and the changed entries."""
        known = dict(zip(before.names, before.looks, strict=True)) if before else {}
        there: list[bytes] = []
        looks: list[Look | None] = []
        changes: dict[bytes, Value | None] = {}
        total = 0
        for name in names:
            was = known.get(name)
            if was is not None:
                look = trusted_look(fd, name, self._now)
                if look == was:
                    there.append(name)
                    looks.append(look)
                    total += was[2]
                    continue
            found = self._entry(fd, name)
            if found is None:
                continue
            entry, look = found
            there.append(name)
            looks.append(look)
            total += entry.size
            changes[name] = Inline(entry.packed())
        return tuple(there), tuple(looks), total, changes

    def _entry(self, fd: int, name: bytes) -> tuple[Entry, Look | None] | None:
        """An entry that is no directory, read now; None when it is gone."""
        try:
            file = os.open(name, READ_FILE, dir_fd=fd)
        except FileNotFoundError:
            return None
        except OSError:
            return self._no_file(fd, name)
        try:
            info = os.fstat(file)
            if not stat.S_ISREG(info.st_mode):
                return self._no_file(fd, name)
            content_id, size = store_file(file, info.st_size, self._outbox)
        except OSError:
            return self._unreadable(info)
        finally:
            os.close(file)
        entry = Entry(tree.FILE, stat.S_IMODE(info.st_mode), info.st_mtime_ns, size, content_id)
        return entry, to_trust(info, self._now)

    def _no_file(self, fd: int, name: bytes) -> tuple[Entry, Look | None] | None:
        try:
            info = os.stat(name, dir_fd=fd, follow_symlinks=False)
            mode = stat.S_IMODE(info.st_mode)
            if stat.S_ISLNK(info.st_mode):
                target = os.readlink(name, dir_fd=fd)
                entry = Entry(tree.SYMLINK, mode, info.st_mtime_ns, 0, target)
                return entry, to_trust(info, self._now)
        except OSError:
            return None
        if stat.S_ISREG(info.st_mode):
            return self._unreadable(info)
        kind = {stat.S_IFIFO: tree.FIFO, stat.S_IFSOCK: tree.SOCKET}.get(
            stat.S_IFMT(info.st_mode), tree.DEVICE
        )
        return Entry(kind, mode), to_trust(info, self._now)

    def _unreadable(self, info: os.stat_result) -> tuple[Entry, None]:
        self._partial = True
        return Entry(tree.UNREADABLE, stat.S_IMODE(info.st_mode)), None

    # --- up: what is stored -----------------------------------------------------------------------

    def _assemble(self) -> Captured:
        """Make the maps, those of the deepest directories first."""
        cache = StatCache()
        made: dict[bytes, Seen] = {}
        for visit in reversed(self._visits):
            made[visit.path] = self._assembled(visit, made)
        for visit in self._visits:  # in the order of the walk, as the cache had them before
            seen = made[visit.path]
            cache.seen[visit.path] = seen
            if seen is visit.before and visit.path in self._before.packed:
                cache.packed[visit.path] = self._before.packed[visit.path]
        top = made[b""]
        cache.tree = tree.put_root(Root(top.mode, top.entries), self._put)
        return Captured(cache.tree, self._partial, cache)

    def _assembled(self, visit: _Visit, made: dict[bytes, Seen]) -> Seen:
        before, seen, changes = visit.before, visit.seen, visit.changes
        known = set(before.dirs) if before else set()
        for name in seen.dirs:
            path = join(visit.path, name)
            child = made.get(path)
            if child is not None:
                was = self._before.seen.get(path) if name in known else None
                if was is None or was.entries != child.entries or was.mode != child.mode:
                    entry = Entry(tree.DIR, child.mode, target=child.entries)
                    changes[name] = Inline(entry.packed())
            else:
                left = self._left_out.get(path)
                changes[name] = Inline(left.packed()) if left else None
        if not changes:
            return seen
        entries = self._maps.update(seen.entries, changes, self._put)
        return seen if entries == seen.entries else seen._replace(entries=entries)
