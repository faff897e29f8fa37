"""Files on their way into a store, one by one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from snapstore import InvalidInput, RefMoved, Store, formats
from snapstore.engine import Progress
from snapstore.formats import Transcript
from snapstore.transfer.beside import agents_beside, files_beside
from snapstore.transfer.bundle import MAGIC, is_bundle, open_bundle
from snapstore.transfer.carry import Carried, Outcome, carry
from snapstore.transfer.imports import Imported, import_transcript, suffixed
from snapstore.transfer.origins import Origins

SQLITE = b"SQLite format 3\x00"
"""How a file of LangGraph's SqliteSaver begins."""


class Reader:
    """Brings files into one store."""

    def __init__(self, store: Store, name: str | None, without_secrets: bool) -> None:
        self._store = store
        self._name = name
        self._without_secrets = without_secrets
        self._origins = Origins(store.engine)

    def read(self, path: Path, progress: Progress | None = None) -> list[Imported]:
        """The sessions of a file, then those of the agents that it called.

        Raises InvalidInput for no session, Corrupt for a damaged bundle.
        """
        try:
            with path.open("rb") as file:
                start = file.read(max(len(MAGIC), len(SQLITE)))
            if is_bundle(start[: len(MAGIC)]):
                return self._bundle(path)
            if start.startswith(SQLITE):
                return self._checkpoints(path)
            return list(self._session(path, progress))
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            hint = "name a transcript, or a folder of them: ~/.claude/projects" if missing else ""
            raise InvalidInput(f"{path}: {error.strerror or error}", hint=hint) from None

    def _session(self, path: Path, progress: Progress | None) -> Iterator[Imported]:
        transcript = self._transcript(path)
        is_claude = transcript.harness == "claude-code" and not self._without_secrets
        beside = files_beside(path) if is_claude else {}
        found = self._import(path, transcript, self._name, beside, progress)
        yield from found
        for agent in agents_beside(path) if transcript.harness == "claude-code" else ():
            try:
                told = self._transcript(agent)
            except InvalidInput:
                continue  # an empty file, say: the agent has said nothing yet
            name = suffixed(found[0].name, f"/{agent.stem}")
            yield from self._import(agent, told, name, {}, None)

    def _import(
        self,
        path: Path,
        transcript: Transcript,
        name: str | None,
        beside: dict[str, bytes],
        progress: Progress | None,
    ) -> list[Imported]:
        def attempt() -> list[Imported]:
            return import_transcript(
                self._store,
                transcript,
                name=name,
                source=str(path.resolve()),
                origins=self._origins,
                progress=progress,
                beside=beside,
            )

        try:
            return attempt()
        except RefMoved:  # another one took the name, or brought in the same session
            self._origins = Origins(self._store.engine)
            return attempt()

    def _transcript(self, path: Path) -> Transcript:
        if not self._without_secrets:
            return formats.read_file(path)
        from snapstore.transfer.redaction import without_secrets

        return formats.read(without_secrets(path.read_bytes()), path.name)

    def _bundle(self, path: Path) -> list[Imported]:
        if self._name is not None or self._without_secrets:
            raise InvalidInput(f"{path} is a bundle: its sessions come in as they are called")
        with open_bundle(path, self._store) as found:
            done = carry(found, self._store, op="import bundle", described=str(path.resolve()))
        return [self._arrived(one, path) for one in done if one.kind == "session"]

    def _checkpoints(self, path: Path) -> list[Imported]:
        """The threads of a file of LangGraph's SqliteSaver."""
        from snapstore.integrations.langgraph.sqlite_file import import_sqlite

        if self._name is not None or self._without_secrets:
            raise InvalidInput(f"{path} holds threads: they come in as they are called")
        return [
            self._thread(found.session, found.added, path)
            for found in import_sqlite(self._store, path)
        ]

    def _thread(self, name: str, added: int, path: Path) -> Imported:
        session = self._store.session(name)
        return Imported(
            name=name,
            source=str(path.resolve()),
            rows=0,
            turns=session.turn,
            messages=len(session.history),
            branches=1,
            warnings=(),
            created=added > 0,
            added=added,
        )

    def _arrived(self, one: Carried, path: Path) -> Imported:
        head = self._store.snapshot(one.head)
        return Imported(
            name=one.name,
            source=str(path.resolve()),
            rows=0,
            turns=one.turn,
            messages=len(head.history),
            branches=1,
            warnings=(),
            created=one.outcome not in (Outcome.SAME, Outcome.AHEAD),
        )
