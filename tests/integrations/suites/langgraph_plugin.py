"""pytest plug-in: LangGraph's own tests, with our saver where they would use SqliteSaver.

It takes the place of the savers that the parameters ``sqlite``, ``sqlite_aes`` (an encrypting
serialiser) and ``sqlite_aio`` of tests/conftest.py stand for; the ids of the tests stay.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

KEY = b"0123456789abcdef"


@contextmanager
def _saver(serde: Any = None) -> Iterator[Any]:
    from snapstore.integrations.langgraph import SnapstoreSaver

    with (
        tempfile.TemporaryDirectory() as folder,
        SnapstoreSaver.from_conn_string(Path(folder) / "store", serde=serde) as saver,
    ):
        yield saver


@contextmanager
def _encrypted() -> Iterator[Any]:
    from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

    with _saver(EncryptedSerializer.from_pycryptodome_aes(key=KEY)) as saver:
        yield saver


@asynccontextmanager
async def _async() -> AsyncIterator[Any]:
    with _saver() as saver:
        yield saver


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Put our saver in place of theirs."""
    for name in ("tests.conftest", "conftest"):
        found: Any = sys.modules.get(name)
        if found is not None and hasattr(found, "_checkpointer_sqlite"):
            found._checkpointer_sqlite = _saver
            found._checkpointer_sqlite_aes = _encrypted
            found._checkpointer_sqlite_aio = _async
            return
    raise pytest.UsageError("the tests of LangGraph are not as this plug-in knows them")
