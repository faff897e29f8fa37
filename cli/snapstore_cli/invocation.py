"""One run of one command: its settings, its store, its output."""

from __future__ import annotations

import contextlib
import sys
import warnings
from shlex import quote
from typing import Any

from snapstore import (
    InvalidInput,
    NotFound,
    RefMoved,
    Session,
    Snapshot,
    SnapstoreError,
    Store,
    StoreNotFound,
    refs,
    revisions,
)
from snapstore.revisions import Revision
from snapstore_cli.opening import open_store
from snapstore_cli.output import Output
from snapstore_cli.prefixes import Shortest
from snapstore_cli.settings import Settings

DEFAULT_SESSION = "main"
"""The session that is saved to when none was ever named."""


class Invocation:
    """What a command is given to work with. Opens the store when first asked for it."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.out = Output(settings)
        self._store: Store | None = None
        self._told: set[str] = set()

    def __enter__(self) -> Invocation:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._store is not None:
            self._tell_warnings(self._store)
            self._tell_settled(self._store)
            self._store.close()

    # --- store and session ------------------------------------------------------------------------

    @property
    def place(self) -> str:
        """Where the store is, or would be made."""
        return self.settings.store_place()

    @property
    def store(self) -> Store:
        """The store. Raises StoreNotFound."""
        return self._store or self._open(create=False)

    @property
    def writable_store(self) -> Store:
        """The store, which the first save makes."""
        return self._store or self._open(create=True)

    def _open(self, *, create: bool) -> Store:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the engine's warnings are told below, and only once
            try:
                self._store = open_store(self.place, create=create)
            except StoreNotFound as error:
                if not self.settings.names_store:
                    error.hint = (
                        "`snapstore init` makes one here, and --store or $SNAPSTORE_STORE names "
                        "one; without them it is the nearest .snapstore/ here or upwards, else the "
                        "user data directory"
                    )
                elif error.hint == StoreNotFound.hint:
                    error.hint = f"`snapstore init --store {quote(self.place)}` makes one"
                raise
        if self.out.look.style.on and self._store.local is not None:
            # Each id costs a look into the index, which is quick only where that is at hand.
            self.out.look.style.shortest = Shortest(self._store)
        self._tell_warnings(self._store)
        if self.settings.verbose:
            self.out.note(f"store {self.place}")
        return self._store

    @property
    def chosen_session(self) -> str | None:
        """The session named with -s, else the current one; None when nobody chose any."""
        return self.settings.session or self.store.current

    @property
    def session_to_move(self) -> str:
        """The session to move: a chosen one, else that which saves go to; never one by guess.

        Raises NotFound.
        """
        name = self.chosen_session
        if name is None and self.store.exists(DEFAULT_SESSION):
            return DEFAULT_SESSION
        if name is None:
            last = self.store.last_saved()
            like = f"-s {last}" if last else "-s NAME"
            raise NotFound(
                "there is no current session",
                hint=f"name one with {like}, or `snapstore switch` to one of `snapstore sessions`",
            )
        return name

    def _tell_warnings(self, store: Store) -> None:
        """What came up while the store was read is told too, and nothing twice."""
        for text in store.engine.warnings:
            if text not in self._told:
                self._told.add(text)
                self.out.warn(text)

    def _tell_settled(self, store: Store) -> None:
        """Files that this command found half restored are no longer as they were found."""
        for one in store.here.settled if store.here else ():
            self.out.warn(one.ended)

    def tell_of_damage(self, met: SnapstoreError) -> None:
        """Say, once, that not all could be read. An engine that knows says it by itself."""
        self._tell_warnings(self.store)
        if not self._told:
            self._told.add(str(met))
            self.out.warn(f"not all can be read: {met}")

    def require_newest(self) -> None:
        """Before work goes on from a turn. Raises Corrupt when later ones are hidden by damage."""
        damage = self.writable_store.engine.cut_off
        if damage is not None:
            raise damage

    @property
    def session_name(self) -> str:
        """The session to look at: a chosen one, else the one saved last. Raises NotFound."""
        name = self.session_name_or_none
        if name is None:
            raise NotFound("there are no sessions yet", hint="`snapstore save -s NAME` makes one")
        return name

    @property
    def session_name_or_none(self) -> str | None:
        """As session_name; None when there are no sessions."""
        return self.chosen_session or self.store.last_saved()

    @property
    def session_to_save(self) -> Session:
        """The session that a save goes to, made by it if need be.

        Raises NotFound when the current session was deleted or renamed: going on under a name that
        was taken away must be asked for; and Refused for a new session with the name of a tag.
        """
        store = self.writable_store
        if self.settings.session is not None:
            return self.session_of(self.settings.session)
        name = store.current or DEFAULT_SESSION
        tip = store.engine.tip(refs.SESSIONS + name)
        if tip is not None and tip.op in ("delete", "rename") and tip.new is None:
            raise revisions.unknown(store, name)
        return self.session_of(name)

    def session_of(self, name: str) -> Session:
        """A session to save to. Raises Refused for a new one that would hide a tag."""
        session = self.writable_store.session(name)
        if session.head is None:
            refs.refuse_namesake(self.store.engine, refs.SESSIONS + name)
        return session

    def existing_session(self, name: str | None = None) -> Session:
        """A session that has a turn; the one to act on when no name is given. Raises NotFound."""
        name = name or self.session_name
        session = self.store.session(name)
        if session.head is None:
            error = revisions.unknown(self.store, name)
            if self.settings.session is None and name == self.store.current:
                error.hint += "; `snapstore switch` makes another session the current one"
            raise error
        return session

    def make_current(self, name: str) -> None:
        """Let @ stand for a session from now on."""
        # Refused only when somebody else chose a session in the same instant: theirs is the later.
        with contextlib.suppress(RefMoved):
            self.store.switch(name)

    # --- revisions --------------------------------------------------------------------------------

    def revision(self, text: str | None) -> Revision:
        """What a revision names; HEAD of the session to act on when there is no text.

        Raises InvalidInput, NotFound or Ambiguous.
        """
        if text is None:
            session = self.existing_session()
            assert session.head is not None
            return Revision(session.head, session.name, None)
        current = self.session_name_or_none
        try:
            return self.store.revision(text, current=current)
        except NotFound as error:
            if text.isdigit() and len(text) < 4:
                error.hint = f"turn {text} of the current session is @@{text}"
            raise

    def turn(self, text: str | None) -> Snapshot:
        """The turn that a revision names. Raises InvalidInput for one with a path."""
        found = self.revision(text)
        if found.path is not None:
            raise InvalidInput(f"{text}: a turn is asked for here, not a file")
        return found.snapshot

    def acted_on(self, revision: Revision) -> Session:
        """The session that a command given this revision acts on."""
        named = self.settings.session or revision.session
        return self.existing_session(named or self.session_to_move)

    # --- asking -----------------------------------------------------------------------------------

    @property
    def may_ask(self) -> bool:
        """Whether somebody is there to answer a question."""
        terminal = sys.stdin.isatty() and self.out.look.terminal
        return terminal and not self.settings.no_input and not self.settings.json

    def result(self, document: dict[str, Any], text: str) -> None:
        """Tell what was done: the document with --json, else the text."""
        if self.out.json:
            self.out.document(document)
        else:
            self.out.say(text)
