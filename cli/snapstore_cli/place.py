"""Where the store is. Hooks wait for this: pathlib would take longer to load than all the rest."""

from __future__ import annotations

import os

HERE = ".snapstore"
"""The directory that makes the directories below it belong to a store."""

_MARK = "FORMAT"
"""A file by which a directory is known to be a store itself."""


def named_in_environment() -> str | None:
    """The store that ``$SNAPSTORE_STORE`` names, if it does."""
    return os.environ.get("SNAPSTORE_STORE")


def store_place(named: str | None = None) -> str:
    """Where the store is, or would be made.

    The one that is named, else ``$SNAPSTORE_STORE``, else the nearest ``.snapstore/`` from the
    working directory upwards, else the user's data directory. Raises StoreNotFound where that
    ``.snapstore`` is a link that leads nowhere or a file: another store than the one that was
    meant must not be taken for it.
    """
    named = named or named_in_environment()
    if named:
        return store_at(named)
    try:
        folder = os.getcwd()
    except FileNotFoundError:  # the working directory was deleted below us
        folder = "/"
    found = nearest(folder)
    if found is not None:
        return found
    import platformdirs

    return platformdirs.user_data_dir("snapstore", appauthor=False)


def nearest(folder: str) -> str | None:
    """The ``.snapstore/`` of an absolute directory, or of the first one above that has one."""
    while True:
        found = os.path.join(folder, HERE)
        if os.path.isdir(found):
            return found
        if os.path.lexists(found):
            raise _no_store(found)
        folder, below = os.path.dirname(folder), folder
        if folder == below:
            return None


def store_at(place: str) -> str:
    """Where to open a store: a directory that belongs to a store stands for that store."""
    below = os.path.join(place, HERE)
    if "://" in place or is_store(place) or not os.path.isdir(below):
        return place
    return below


def is_store(directory: str) -> bool:
    """Whether a directory is a store itself."""
    return os.path.exists(os.path.join(directory, _MARK))


def _no_store(found: str) -> Exception:
    from snapstore.errors import StoreNotFound  # only needed to say so

    if os.path.islink(found):
        what = f"is a link to {os.readlink(found)}, where there is no directory"
        return StoreNotFound(
            f"{found} {what}",
            hint="bring back what it leads to, or remove the link, or name a store with --store",
        )
    hint = "move it away, or name a store with --store"
    return StoreNotFound(f"{found} is a file, not a store", hint=hint)
