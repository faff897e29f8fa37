"""A directory that sessions are bound to, as one store knows it."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from snapstore.errors import Refused
from snapstore.objects import Objects, Stage
from snapstore.worktree import statcache
from snapstore.worktree.capture import Capture, Captured, Limits
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
        self._local = local
        self._mutex = threading.RLock()
        self._cache: StatCache | None = None

    def capture(self, stage: Stage, limits: Limits | None = None) -> Captured:
        """What is in the directory now; new objects are staged, or in the store already.

        Once the stage is committed, hand the result to ``remember``. Raises NotFound, Refused over
        the limits, Locked.
        """
        engine = self._objects.engine
        self._keep_out_of_the_store()
        with self.exclusive():
            outbox = Outbox(engine)
            try:
                captured = self._capture(stage, outbox, limits)
                for o in outbox.finish():
                    stage.put(o)
            finally:
                outbox.close()
        return captured

    def _capture(self, stage: Stage, outbox: Outbox, limits: Limits | None) -> Captured:
        own = self._local.identity if self._local else None
        return Capture(
            self._objects.maps, stage.put_node, outbox, self._known(), own=own, limits=limits
        ).run(self.path)

    def changes(self, tree: bytes | None, limits: Limits | None = None) -> list[Change]:
        """How the directory differs from a tree, from the tree to what is there; nothing is kept."""
        with Stage(self._objects) as stage, self._mutex:
            now = self._capture(stage, Outbox(None), limits)
            return Trees(self._objects).changes(tree, now.tree)

    def remember(self, captured: Captured) -> None:
        """Let the next capture go on from this one, whose tree is in the store now."""
        with self._mutex:
            if self._cache is not None and self._cache.seen == captured.cache.seen:
                return
            self._cache = captured.cache
            if self._local is not None:
                path = self._local.stat_cache(self.path)
                statcache.store(self._local.disk, path, self.path, captured.cache)

    @contextlib.contextmanager
    def exclusive(self) -> Iterator[None]:
        """Keep other threads and, with a local store, other processes from this directory."""
        with self._mutex:
            if self._local is None or not self._objects.engine.exists():
                yield
                return
            with self._local.locked(self.path):
                yield

    def _known(self) -> StatCache:
        if self._cache is None:
            self._cache = StatCache()
            if self._local is not None:
                self._cache = statcache.load(self._local.stat_cache(self.path), self.path)
        if self._cache.tree is not None and not self._objects.engine.contains(self._cache.tree):
            self._cache = StatCache()
        return self._cache

    def _keep_out_of_the_store(self) -> None:
        if self._local is None:
            return
        store = Path(os.path.realpath(self._local.root))
        if self.root == store or store in self.root.parents:
            raise Refused(f"{self.root} is the store itself, or lies in it")
        if self.root in store.parents:
            # Made before the walk, so that the walk can tell it from what is to be captured.
            self._objects.engine.create()
