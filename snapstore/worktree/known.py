"""Which paths a restore may delete: those that some saved turn of the directory holds.

The turns are those that a ref reaches, or that the reflog says it once reached. Captures that were
made by the way, before a restore or by a hook, make nothing known: nobody asked for them.

Nearly always the turn that the session stands on knows every path in question, and no other is
looked at. Where one is not known, all turns are, but of their trees only directories that were not
met before, on the way to the paths that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from snapstore import refs
from snapstore.engine import Engine
from snapstore.model.snapshot import Record, Snapshots
from snapstore.objects import Objects
from snapstore.worktree.tree import HELD, Trees, decode_entry, join


def known_paths(
    objects: Objects, worktree: str, first: Iterable[bytes], candidates: set[bytes]
) -> set[bytes]:
    """Those of the candidates that a saved turn of this directory holds; first: trees to try."""
    search = _Search(objects, candidates)
    for tree in _trees(objects, worktree, first):
        if not search.left:
            break
        search.look_in(tree)
    return candidates - search.left


def _trees(objects: Objects, worktree: str, first: Iterable[bytes]) -> Iterator[bytes]:
    yield from first
    for record in _turns(objects.engine, objects.snapshots):
        if record.worktree == worktree and record.files is not None:
            yield record.files


def _turns(engine: Engine, snapshots: Snapshots) -> Iterator[Record]:
    """Every saved turn, once."""
    seen: set[bytes] = set()
    for move in engine.reflog():
        if move.new is None or not move.ref.startswith((refs.SESSIONS, refs.TAGS)):
            continue
        for snapshot_id, record in snapshots.line(move.new):
            if snapshot_id in seen:
                break
            seen.add(snapshot_id)
            yield record


class _Search:
    """Looks for paths in one tree after another, and nowhere twice."""

    def __init__(self, objects: Objects, paths: set[bytes]) -> None:
        self._maps = objects.maps
        self._trees = Trees(objects)
        self.left = set(paths)
        self._met: set[tuple[bytes, bytes]] = set()
        self._in: dict[bytes, set[bytes]] = {}
        """Directory -> the names in it that are looked for, or that lead on to some."""
        for path in paths:
            while path:
                folder, _, name = path.rpartition(b"/")
                self._in.setdefault(folder, set()).add(name)
                path = folder

    def look_in(self, tree: bytes) -> None:
        """Cross off the paths that this tree holds."""
        todo = [(b"", self._trees.root(tree).entries)]
        while todo:
            folder, entries = todo.pop()
            if entries is None or (folder, entries) in self._met:
                continue
            self._met.add((folder, entries))
            for name in self._in.get(folder, ()):
                value = self._maps.get(entries, name)
                if value is None:
                    continue
                entry, path = decode_entry(value, name), join(folder, name)
                if entry.kind in HELD:
                    self.left.discard(path)
                if path in self._in:
                    todo.append((path, entry.children))
