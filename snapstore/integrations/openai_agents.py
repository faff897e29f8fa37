"""SnapstoreSession: the session memory of the OpenAI Agents SDK on a snapstore store.

Needs the extra ``snapstore[openai-agents]``. Each call that changes the session is one turn of it,
so ``snapstore log``, ``show``, ``diff`` and ``undo`` work on what an agent kept, and no pop or
clear destroys anything. ``turns``, ``rewind`` and ``fork`` count questions of the user; a *branch*
is a session beside the first one, named SESSION/BRANCH.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from snapstore import refs
from snapstore.engine import Update
from snapstore.errors import InvalidInput, NotFound, RefMoved, Refused
from snapstore.frozen import thaw
from snapstore.integrations.names import session_name
from snapstore.integrations.opening import open_place
from snapstore.integrations.questions import DAMAGE, ConversationTurn, end_of, label, turns
from snapstore.objects import Stage
from snapstore.session import Session
from snapstore.store import Store

try:
    from agents.memory.session_settings import SessionSettings, coerce_session_settings
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        f"{missing}: install snapstore[openai-agents]", name=missing.name
    ) from missing

try:
    # What the SDK compacts a session by. It is not public: without it, sessions are not compacted
    # by themselves.
    from agents.memory.session import _CompactionSnapshot
except ImportError:
    _CompactionSnapshot = None  # type: ignore[assignment, misc]

if TYPE_CHECKING:
    from agents import TResponseInputItem

T = TypeVar("T")

MAIN = "main"
"""What the branch that a session begins on is called."""

_BRANCH_REFS = "state/branch/"


class SnapstoreSession:
    """A session of the OpenAI Agents SDK: give it to ``Runner.run(..., session=...)``.

    Objects for the same session, in one process or several, may be used at once; each call is
    atomic. Every method raises RuntimeError once it is closed, and what the store raises.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        db_path: str | Path | Store = ":memory:",
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        """The session of this id; db_path is a store, or where one is or will be."""
        self.session_id = session_id
        self.session_settings = _settings(session_settings)
        self._owns = not isinstance(db_path, Store)
        self._store = db_path if isinstance(db_path, Store) else open_place(db_path)
        self._lock = threading.RLock()
        self._closed = False

    # --- the protocol -----------------------------------------------------------------------------

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The items, oldest first: the last ``limit`` of them, else as many as the settings say,
        else all. 0 is none, a negative limit is all.

        Items that are damaged in the store are left out, and are not counted.
        """
        wanted = self._limit(limit)
        return await self._run(lambda: _last(self._session(), wanted))

    async def add_items(self, items: Sequence[TResponseInputItem]) -> None:
        """Add items at the end, all or none; durable when it returns."""
        self._check_open()
        if items:
            added = [_as_json(item) for item in items]
            await self._shielded(lambda: self._change(lambda s: s.history.extend(added), added))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the last item off; None when there is none. Damaged items are passed over."""
        return await self._pop_item_with_validation()

    async def clear_session(self) -> None:
        """Take all items off. The turns before stay: see ``rewind`` of the store's session."""
        await self._shielded(lambda: self._change(lambda session: session.history.clear()))

    def close(self) -> None:
        """Give back what this object opened; closing twice is allowed."""
        with self._lock:
            if not self._closed and self._owns:
                self._store.close()
            self._closed = True

    # --- going back and forth ---------------------------------------------------------------------

    async def turns(self) -> list[ConversationTurn]:
        """The turns of the conversation on this branch."""
        return await self._run(lambda: turns(_in_place(self._session())))

    async def rewind(self, turn: int) -> None:
        """Go back to where this turn of the conversation ended; 0 is before the first.

        Nothing is lost: ``snapstore undo`` takes it back. Raises NotFound.
        """

        def rewound() -> None:
            session = self._session()
            end = end_of(_in_place(session), turn)
            saved = _turn_of_length(session, end)
            if saved is not None:
                session.rewind(saved)
            else:
                self._change(lambda again: again.history.__delitem__(slice(end, None)))

        await self._shielded(rewound)

    async def fork(self, name: str, at: int | None = None) -> SnapstoreSession:
        """A branch that goes on from where a turn of the conversation ended, or from now.

        What is returned is on the branch, this object stays where it is. Raises Refused when there
        is a branch of this name, NotFound when there is no such turn.
        """

        def forked() -> None:
            session = self._session()
            end = None if at is None else end_of(_in_place(session), at)
            saved = None if end is None else _turn_of_length(session, end)
            branch = session.fork(self._branch_session(name), at=saved)
            if end is not None and saved is None:
                del branch.history[end:]
                branch.save()

        await self._shielded(forked)
        return _OnBranch(self, name)

    async def switch(self, name: str) -> None:
        """Be on another branch from now on, also when the session is opened again; ``main`` is the
        first. Raises NotFound."""

        def switched() -> None:
            if name != MAIN and not self._store.exists(self._branch_session(name)):
                raise NotFound(f"session {self.session_id} has no branch {name}")
            self._remember(name)

        await self._shielded(switched)

    @property
    def branch(self) -> str:
        """The branch that this session is on."""
        tip = refs.live(self._store.engine, _BRANCH_REFS + session_name(self.session_id))
        if tip is None or tip.new is None:
            return MAIN
        return self._store.objects.content(tip.new).decode()

    def _remember(self, name: str) -> None:
        ref = _BRANCH_REFS + session_name(self.session_id)
        with Stage(self._store.objects) as stage:
            chosen = stage.put_content(name.encode())
            while True:
                tip = refs.live(self._store.engine, ref)
                expect = tip.new if tip else None
                # Of two who switch at once the last has its way.
                with contextlib.suppress(RefMoved):
                    stage.commit(Update(ref, chosen, expect, "switch", self._store.clock()))
                    return

    # --- what the SDK looks for -------------------------------------------------------------------

    async def _pop_item_with_validation(
        self, validate: Callable[[TResponseInputItem], None] | None = None
    ) -> TResponseInputItem | None:
        """As pop_item. When validate raises, the item stays."""
        popped: list[Any] = []

        def pop(session: Session) -> None:
            popped.clear()
            kept = len(session.history)
            while kept and not popped:
                kept -= 1
                with contextlib.suppress(*DAMAGE):
                    popped.append(thaw(session.history[kept]))
            if popped and validate is not None:
                validate(popped[0])
            del session.history[kept:]

        await self._shielded(lambda: self._change(pop))
        return cast("TResponseInputItem", popped[0]) if popped else None

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[TResponseInputItem], bool] | None = None
    ) -> Any:
        """The last items, and how to put others in their place if nobody changed them meanwhile."""
        if _CompactionSnapshot is None or type(self) not in (SnapstoreSession, _OnBranch):
            return None  # a subclass may have changed what get_items and add_items do
        session = await self._run(self._session)
        ids = session.history.ids()
        expected = ids[max(0, len(ids) - limit) :]
        items = await self._run(lambda: _last(session, limit))
        if len(items) != len(expected):
            return None

        async def replace_suffix(start: int, output: list[TResponseInputItem]) -> bool:
            added = [_as_json(item) for item in output]
            return await self._shielded(
                lambda: self._replace(expected[start:], added, prune_prefix)
            )

        return _CompactionSnapshot(items, len(expected) == len(ids), replace_suffix)

    def _replace(
        self,
        expected: list[bytes],
        added: list[Any],
        prune_prefix: Callable[[TResponseInputItem], bool] | None,
    ) -> bool:
        replaced = False

        def replace(session: Session) -> None:
            nonlocal replaced
            start = len(session.history) - len(expected)
            replaced = bool(expected) and start >= 0 and session.history.ids(start) == expected
            if replaced:
                stale = 0
                while prune_prefix and stale < start and prune_prefix(thaw(session.history[stale])):
                    stale += 1
                session.history[start:] = added
                del session.history[:stale]

        self._change(replace)
        return replaced

    # --- how it is done ---------------------------------------------------------------------------

    def _session(self) -> Session:
        self._check_open()
        name = self.branch
        return self._store.session(
            session_name(self.session_id) if name == MAIN else self._branch_session(name)
        )

    def _branch_session(self, name: str) -> str:
        if name == MAIN:
            raise Refused(f"every session has a branch {MAIN}", hint="choose another name")
        return session_name(f"{self.session_id}/{name}")

    def _change(self, change: Callable[[Session], None], added: Sequence[Any] = ()) -> None:
        """Change the session and save it, upon what others may have saved meanwhile.

        Added is what comes to its end, when that is all that changes: then the last question is
        among these, or else the one that the turn before was called by.
        """
        while True:
            session = self._session()
            change(session)
            if not session.unsaved or (session.head is None and not session.history):
                return
            asked = label(added or session.history)
            if asked is None and added and session.head is not None:
                asked = session.head.label
            with contextlib.suppress(RefMoved):
                session.save(asked or "")
                return

    def _check_open(self) -> None:
        if self._closed:
            # Programs tell a closed session by the words of the SDK's own.
            raise RuntimeError("SQLiteSession is closed, and this is a SnapstoreSession")

    def _limit(self, limit: int | None) -> int | None:
        if limit is None and self.session_settings is not None:
            limit = _settings(self.session_settings).limit
        return None if limit is None or limit < 0 else limit

    async def _run(self, work: Callable[[], T]) -> T:
        def locked() -> T:
            with self._lock:
                self._check_open()
                return work()

        return await asyncio.to_thread(locked)

    async def _shielded(self, work: Callable[[], T]) -> T:
        """Run work to its end even if the caller is cancelled, who then hears of that."""
        return await _to_its_end(self._run(work))


class _OnBranch(SnapstoreSession):
    """A session that stays on one branch, on the store of another object."""

    def __init__(self, other: SnapstoreSession, name: str) -> None:
        super().__init__(other.session_id, other._store, session_settings=other.session_settings)
        self._name = name

    @property
    def branch(self) -> str:
        """The branch that this object is on."""
        return self._name

    def _remember(self, name: str) -> None:
        super()._remember(name)
        self._name = name


async def _to_its_end(work: Awaitable[T]) -> T:
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as cancel:
            cancelled = cancelled or cancel
    if cancelled is None:
        return task.result()
    task.exception()  # looked at, so that nobody warns that it never was
    raise cancelled


def _settings(settings: SessionSettings | dict[str, Any] | None) -> SessionSettings:
    return SessionSettings() if settings is None else coerce_session_settings(settings)


def _as_json(item: object) -> Any:
    """An item as it comes back from JSON, which is how the SDK's own sessions keep it.

    Raises InvalidInput for what is no JSON, TypeError as json.dumps does.
    """
    try:
        return json.loads(json.dumps(item, allow_nan=False))
    except ValueError as error:
        raise InvalidInput(f"an item is no JSON: {error}") from error


def _last(session: Session, limit: int | None) -> list[TResponseInputItem]:
    if limit == 0:
        return []
    try:
        whole = session.history[:] if limit is None else session.history[-limit:]
        return [thaw(item) for item in whole]
    except DAMAGE:
        return _undamaged(session, limit)


def _in_place(session: Session) -> list[Any]:
    """The items, None for one that is damaged."""
    try:
        return session.history[:]
    except DAMAGE:
        return [_item(session, at) for at in range(len(session.history))]


def _item(session: Session, at: int) -> Any:
    with contextlib.suppress(*DAMAGE):
        return session.history[at]
    return None


def _undamaged(session: Session, limit: int | None) -> list[TResponseInputItem]:
    """The last items that can be read, one by one."""
    found: list[Any] = []
    for at in range(len(session.history) - 1, -1, -1):
        if limit is not None and len(found) == limit:
            break
        with contextlib.suppress(*DAMAGE):
            found.append(thaw(session.history[at]))
    return found[::-1]


def _turn_of_length(session: Session, length: int) -> int | None:
    """The last turn of the session's line that held just the first so many items it has now."""
    lists, now = session._store.objects.lists, session.head.record.history if session.head else None
    for snapshot in session.log():
        tip = snapshot.record.history
        if lists.length(tip) == length and lists.common_prefix(tip, now) == length:
            return snapshot.turn
    return None
