"""The global options of one run, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from snapstore_cli.place import named_in_environment, store_place


@dataclass(frozen=True, slots=True)
class Settings:
    """The global options; a field that was not given has its default here."""

    store: str | None = None
    session: str | None = None
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    color: str = "auto"
    no_pager: bool = False
    no_input: bool = False

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Settings:
        """The settings that these options make."""
        return cls(**given)

    @property
    def names_store(self) -> bool:
        """Whether the user named a store, rather than have it looked for."""
        return bool(self.store or named_in_environment())

    def store_place(self) -> str:
        """Where the store is, or would be made: see place."""
        return store_place(self.store)
