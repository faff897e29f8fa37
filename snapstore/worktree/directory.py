"""A directory that sessions are bound to, as one store knows it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from snapstore.errors import DiskError, Refused
from snapstore.objects import Objects, Stage
from snapstore.worktree import statcache
from snapstore.worktree.capture import Capture, Captured, Limits
from snapstore.worktree.listing import STAGING
from snapstore.worktree.local import Local
from snapstore.worktree.reading import Outbox
from snapstore.worktree.statcache import StatCache
from snapstore.worktree.tree import Change, Trees


class Worktree:
    """Captures of one directory. Threads may share it; they take turns."""

    def __init__(self, objects: Objects, root: Path, local: Local | None) -> None:
        self.root = root
        self.path = os.fsencode(root)
        self._objects = objects
        self.local = local
        self._mutex = threading.RLock()
        self._cache: StatCache | None = None
        self._held = False

    def capture(self, stage: Stage, limits: Limits | None = None, *, keep: bool = True) -> Captured:
        """What is in the directory now; new objects are staged, or in the store already.

        Once the stage is committed, hand the result to ``remember``. With keep=False no content
        is stored: to look only. Raises NotFound, Refused over the limits, Locked.
        """
        self._keep_out_of_the_store()
        with self.exclusive():
            self._refuse_half_restored()
            outbox = Outbox(self._objects.engine if keep else None)
            try:
                captured = self._capture(stage, outbox, limits)
                for o in outbox.finish():
                    stage.put(o)
            finally:
                outbox.close()
        return captured

    def _refuse_half_restored(self) -> None:
        """What was interrupted here is settled by now, so what is left belongs elsewhere.

        A restore that was killed leaves the files it moved out in a directory of its own. When the
        tree was moved since, or another store was at work, nobody here can put them back, and a
        turn without them would look whole.
        """
        left = self.staged()
        if left:
            raise Refused(
                f"{left[0]} holds files of a restore that was interrupted",
                hint="run any command with the store and at the place it was started, which takes "
                "it back; or move that directory away",
            )

    def staged(self) -> list[Path]:
        """The directories in this one that hold files of restores, at work or interrupted."""
        try:
            return sorted(p for p in self.root.iterdir() if p.name.startswith(os.fsdecode(STAGING)))
        except OSError:
            return []  # the capture itself says what is wrong

    def _capture(self, stage: Stage, outbox: Outbox, limits: Limits | None) -> Captured:
        own = self.local.identity if self.local else None
        return Capture(
            self._objects.maps, stage.put_node, outbox, self._known(), own=own, limits=limits
        ).run(self.path)

    def changes(self, tree: bytes | None, limits: Limits | None = None) -> list[Change]:
        """How the directory differs from a tree: what was there, and what is. Nothing is kept."""
        with self._mutex, Stage(self._objects) as stage:
            now = self._capture(stage, Outbox(None), limits)
            return Trees(self._objects).changes(tree, now.tree)

    def remember(self, captured: Captured) -> None:
        """Let the next capture go on from this one, whose tree is in the store now."""
        with self._mutex:
            if self._cache is not None and self._cache.seen == captured.cache.seen:
                return
            self._cache = captured.cache
            if self.local is not None:
                path = self.local.stat_cache(self.path)
                with contextlib.suppress(DiskError):
                    self.local.disk.make_dir(path.parent)
                statcache.store(self.local.disk, path, self.path, captured.cache)

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads and, with a local store, other processes from this directory.

        A restore that was interrupted is finished or taken back first. Raises Locked.
        """
        with self._mutex:
            if self.local is None or self._held or not self._objects.engine.exists():
                yield
                return
            with self.local.locked(self.path):
                self._held = True
                try:
                    self._settle()
                    yield
                finally:
                    self._held = False

    def _settle(self) -> None:
        if self.local is not None and self.local.journal(self.path).exists():
            from snapstore.worktree.restore import settle  # seldom needed, and builds on this

            settle(self._objects, self)

    def _known(self) -> StatCache:
        if self._cache is None:
            self._cache = StatCache()
            if self.local is not None:
                self._cache = statcache.load(self.local.stat_cache(self.path), self.path)
        if self._cache.tree is not None and not self._objects.engine.contains(self._cache.tree):
            self._cache = StatCache()
        return self._cache

    def _keep_out_of_the_store(self) -> None:
        if self.local is None:
            return
        store = Path(os.path.realpath(self.local.root))
        if self.root == store or store in self.root.parents:
            raise Refused(f"{self.root} is the store itself, or lies in it")
        if self.root in store.parents:
            # Made before the walk, so that the walk can tell it from what is to be captured.
            self._objects.engine.create()
