"""The global options of one run, as values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = ".snapstore"
"""The directory that makes the directories below it belong to a store."""


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

    def store_place(self) -> str:
        """Where the store is, or would be made.

        ``--store``, else ``$SNAPSTORE_STORE``, else the nearest ``.snapstore/`` from the working
        directory upwards, else the user's data directory.
        """
        named = self.store or os.environ.get("SNAPSTORE_STORE")
        if named:
            return named
        try:
            here = Path.cwd()
        except FileNotFoundError:  # the working directory was deleted below us
            here = Path("/")
        for folder in (here, *here.parents):
            if (folder / HERE).is_dir():
                return str(folder / HERE)
        import platformdirs

        return platformdirs.user_data_dir("snapstore", appauthor=False)
