"""Threads of LangGraph in a store: each is a session, each checkpoint a turn of its line.

The line holds the checkpoints of all branches and namespaces in the order in which they came in;
which one follows which is said by their parent ids. So going back to a turn of the line, or a fork
made there, is a thread that ends with what had come in until then.

    put         a turn, with what the thread shows as history and scratchpad
    writes      become part of the last turn: the ref moves to a snapshot with the same parent
    copy        a ref to the same snapshot
    delete      the ref goes; undo brings it back, until gc takes what nothing else reaches
    keep        the turns that stay are laid out as a line of their own

A writer never fails because another was faster: what it has goes on top of what came in meanwhile,
for neither checkpoints nor writes are found by their position.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from snapstore import refs
from snapstore.engine import Move, Update
from snapstore.errors import NotFound, RefMoved
from snapstore.integrations.langgraph import turns
from snapstore.integrations.langgraph.bodies import Bodies
from snapstore.integrations.langgraph.index import Held, Index
from snapstore.integrations.langgraph.lines import Turn, laid_anew, laid_on_top
from snapstore.integrations.langgraph.shown import Shown, shown_by
from snapstore.integrations.langgraph.turns import Checkpoint, Key, Place, Stored, Typed, Write
from snapstore.integrations.names import facts, outside_id, session_name
from snapstore.model.maps import Link
from snapstore.objects import Stage
from snapstore.store import Store

_REMEMBERED = 1024


@dataclass(frozen=True, slots=True)
class Given:
    """A checkpoint as it is put: its values serialised, or those of its parent."""

    key: Key
    parent: str | None
    label: str
    rest: Typed
    metadata: Typed
    versions: Mapping[str, str | int | float]
    changed: Mapping[str, Typed]
    unchanged: frozenset[str] = frozenset()
    """Channels whose value is that of the parent."""


@dataclass(slots=True)
class _Thread:
    index: Index
    lock: threading.RLock = field(default_factory=threading.RLock)


class Threads:
    """The threads of a store. Several threads of the process may use one."""

    def __init__(self, kept_in: Store) -> None:
        self._store = kept_in
        self._objects = kept_in.objects
        self._engine = kept_in.engine
        self._bodies = Bodies(kept_in.objects)
        self._threads: OrderedDict[str, _Thread] = OrderedDict()
        self._mutex = threading.Lock()

    @contextmanager
    def _at(self, thread: str) -> Iterator[tuple[Index, Move | None]]:
        """The index of a thread as it is now, and the last move of its ref, for one to use.

        Of two indexes of one thread, should it be forgotten in between, each stands by itself:
        whether a ref may move is decided by the engine.
        """
        name = session_name(thread)
        with self._mutex:
            found = self._threads.setdefault(name, _Thread(Index(self._objects)))
            self._threads.move_to_end(name)
            while len(self._threads) > _REMEMBERED:
                self._threads.popitem(last=False)
        with found.lock:
            tip = refs.live(self._engine, refs.SESSIONS + name)
            found.index.follow(tip.new if tip else None)
            yield found.index, tip

    # --- reading ----------------------------------------------------------------------------------

    def ids(self) -> list[str]:
        """Every session, as a thread is called; one without checkpoints is an empty thread."""
        return [
            outside_id(self._engine, tip, tip.ref.removeprefix(refs.SESSIONS))
            for tip in self._engine.tips(refs.SESSIONS)
            if tip.new
        ]

    def latest(self, thread: str, namespace: str) -> Key | None:
        """The checkpoint with the greatest id of a namespace."""
        with self._at(thread) as (index, _):
            name = index.latest.get(namespace)
            return None if name is None else Key(namespace, name)

    def keys(self, thread: str) -> list[Key]:
        """All checkpoints, the greatest id first."""
        with self._at(thread) as (index, _):
            return sorted(index.checkpoints, key=lambda key: key.checkpoint, reverse=True)

    def checkpoint(self, thread: str, key: Key) -> Checkpoint | None:
        """A checkpoint of a thread. Raises ObjectMissing or Corrupt."""
        with self._at(thread) as (index, _):
            return index.checkpoint(key)

    def ancestors(self, thread: str, key: Key) -> Iterator[Checkpoint]:
        """The checkpoints before one, the nearest first. Chains that were put in a circle end."""
        seen = {key}
        here = self.checkpoint(thread, key)
        while here is not None and here.parent:
            key = Key(here.key.namespace, here.parent)
            if key in seen:
                return
            seen.add(key)
            here = self.checkpoint(thread, key)
            if here is not None:
                yield here

    def writes(self, thread: str, key: Key) -> list[tuple[Place, Write]]:
        """The writes to a checkpoint, in the order in which LangGraph applies them."""
        with self._at(thread) as (index, _):
            found = index.writes_to(key)
        return sorted(found.items(), key=lambda item: (item[1].path, *item[0]))

    def load(self, stored: Stored) -> Typed:
        """A serialised value. Raises ObjectMissing or Corrupt."""
        return turns.load(stored, self._bodies)

    # --- writing ----------------------------------------------------------------------------------

    def put(self, thread: str, given: Given) -> None:
        """Keep a checkpoint, in place of one with the same key; durable when it returns."""

        def attempt(index: Index, tip: Move | None, stage: Stage) -> None:
            entries, shown = self._staged(given, index, stage)
            covered = len(index.turns)
            page = index.put_page(stage) if index.page_due() else None
            if page is not None:
                entries[turns.INDEX] = Link(page)
            turn = Turn(given.label, self._store.clock(), shown, entries)
            head = turn.put(index.head, self._objects, stage)
            self._commit(thread, head, "save", tip, stage)
            index.added(head, Held(given.key, frozenset()))
            if page is not None:
                index.page_kept(page, covered)

        self._until_granted(thread, attempt)

    def put_writes(
        self, thread: str, key: Key, path: str, given: Mapping[Place, tuple[str, Typed]]
    ) -> None:
        """Keep writes of a task to channels, of a checkpoint that may be yet to come.

        At an index from 0 up the first write stays, at one below 0 the last; durable when it
        returns.
        """

        def attempt(index: Index, tip: Move | None, stage: Stage) -> None:
            known = index.writes_to(key)
            new = {
                place: Write(path, channel, turns.store(value, self._bodies, stage))
                for place, (channel, value) in given.items()
                if place.at < 0 or place not in known
            }
            if new:
                self._add_writes(thread, key, new, index, tip, stage)

        self._until_granted(thread, attempt)

    def _add_writes(
        self,
        thread: str,
        key: Key,
        writes: Mapping[Place, Write],
        index: Index,
        tip: Move | None,
        stage: Stage,
    ) -> None:
        last = index.last()
        entries = index.entries(last) if last else {}
        turns.add_writes(entries, key, writes, stage)
        if tip is None or last is None or last.state is None:
            shown = Shown(last.history, last.scratchpad) if last else Shown()
            turn = Turn("writes", self._store.clock(), shown, entries)
            head = turn.put(index.head, self._objects, stage)
            self._commit(thread, head, "save", tip, stage)
            index.added(head, Held(None, frozenset([key])))
            return
        state = self._objects.maps.update(last.state, entries, stage.put_node)
        head = stage.put_snapshot(last._replace(state=state).encode())
        self._commit(thread, head, "save", tip, stage, base=tip.base)
        held = index.turns[-1]
        index.amended(head, Held(held.checkpoint, held.writes | {key}))

    def copy(self, source: str, target: str) -> None:
        """Give a thread all that another holds; nothing happens when that does not exist.

        A target that is not there yet is the same line. One that is gets the other's turns on top.
        """
        with self._at(source) as (_, found):
            if found is None or found.new is None or source == target:
                return
            info = {"forked_from": found.new, **facts(target, session_name(target))}
            update = Update(self._ref(target), found.new, None, "fork", self._store.clock(), info)
            with contextlib.suppress(RefMoved):
                self._engine.commit([], update)
                return

        def attempt(index: Index, tip: Move | None, stage: Stage) -> None:
            other = Index(self._objects)
            other.follow(found.new)
            head = laid_on_top(index.head, other, self._objects, stage)
            self._commit(target, head, "fork", tip, stage)

        self._until_granted(target, attempt)

    def delete(self, thread: str) -> None:
        """End a thread; nothing happens when it does not exist."""
        with contextlib.suppress(NotFound):
            refs.delete(self._engine, self._ref(thread), self._store.clock())

    def keep(self, thread: str, choose: Callable[[Sequence[Key]], set[Key]]) -> None:
        """Drop all checkpoints but those that are chosen, with the writes to them.

        Choose may read the thread. Writes to checkpoints that have not come yet stay.
        """

        def attempt(index: Index, tip: Move | None, stage: Stage) -> None:
            head, keys = index.head, list(index.checkpoints)
            kept = choose(keys)
            if tip is None or index.head != head:
                raise RefMoved(thread, head, index.head)
            if len(kept) < len(keys):
                new = laid_anew(index, kept, self._objects, stage)
                self._commit(thread, new, "prune" if new else "delete", tip, stage)

        if self.keys(thread):
            self._until_granted(thread, attempt)

    # --- how a write is granted -------------------------------------------------------------------

    def _until_granted(
        self, thread: str, attempt: Callable[[Index, Move | None, Stage], None]
    ) -> None:
        """Try until no other writer was faster."""
        while True:
            with (
                self._at(thread) as (index, tip),
                Stage(self._objects) as stage,
                contextlib.suppress(RefMoved),
            ):
                attempt(index, tip, stage)
                return

    def _commit(
        self,
        thread: str,
        head: bytes | None,
        op: str,
        tip: Move | None,
        stage: Stage,
        base: int | None = None,
    ) -> None:
        expect = tip.new if tip else None
        info = facts(thread, session_name(thread)) if tip is None else {}
        stage.commit(
            Update(self._ref(thread), head, expect, op, self._store.clock(), info, base=base)
        )

    def _staged(self, given: Given, index: Index, stage: Stage) -> tuple[turns.Entries, Shown]:
        """Stage the values of a checkpoint: the entries of its turn, and what it shows."""
        parent_key = Key(given.key.namespace, given.parent or "")
        parent = index.checkpoint(parent_key)
        before = parent.values if parent is not None else {}
        kept = {name: before[name] for name in given.unchanged if name in before}
        for name, value in given.changed.items():
            kept[name] = turns.store(value, self._bodies, stage, before.get(name))
        rest, metadata = (
            turns.store(value, self._bodies, stage, inline=turns.INLINE_REST)
            for value in (given.rest, given.metadata)
        )
        checkpoint = Checkpoint(given.key, given.parent, rest, metadata, given.versions, kept)
        showing = index.last() if given.key.namespace or parent is None else index.at(parent_key)
        showed = Shown(showing.history, showing.scratchpad) if showing else Shown()
        if not given.key.namespace:
            showed = shown_by(
                checkpoint, given.changed, (parent, showed), self._bodies, self._objects, stage
            )
        entries: turns.Entries = {}
        turns.add_checkpoint(entries, checkpoint, stage)
        return entries, showed

    def _ref(self, thread: str) -> str:
        return refs.SESSIONS + session_name(thread)
