"""Being an ordinary user for a while, where tests run as root, whom no mode keeps out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import snapstore

NOBODY = 65534


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Act with the rights of a user who has none of their own, but over what they made."""
    _load_everything()
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def _load_everything() -> None:
    """Import what is imported when first needed: that user may not be able to read it."""
    with TemporaryDirectory() as folder, snapstore.open("memory://") as store:
        session = store.session("warm")
        session.worktree = folder
        Path(folder, ".gitignore").write_text("x")
        Path(folder, "f").write_bytes(bytes(100_000))
        session.save("one")
        Path(folder, "f").write_text("two")
        session.save("two")
        session.rewind(1, files=True)
        session.undo()
