"""A content-addressed snapshot store for AI-agent sessions.

    import snapstore

    store = snapstore.open("path/to/store")
    session = store.session("fix-login")
    session.history.append({"role": "user", "content": "hi"})
    session.save("first question")
    session.rewind(1)

See ``open_store`` for the places a store can be, and ``Session`` for what a session can do.
"""

from __future__ import annotations

from snapstore._version import __version__
from snapstore.errors import (
    AccessDenied,
    Ambiguous,
    Corrupt,
    DiskError,
    InvalidInput,
    Locked,
    NotATranscript,
    NotFound,
    NothingToDo,
    ObjectMissing,
    PhaseTimedOut,
    ReadOnlyValue,
    RefMoved,
    Refused,
    SnapstoreError,
    StoreNotFound,
    UncertainEffect,
    UnknownOutcome,
    Unreachable,
    UnsuitableServer,
    UnsupportedFormat,
    UnsupportedValue,
)
from snapstore.session import Session
from snapstore.snapshot import Snapshot
from snapstore.store import SessionInfo, Store
from snapstore.store import open_store as open  # the name that callers see: snapstore.open(...)

__all__ = [
    "AccessDenied",
    "Ambiguous",
    "Corrupt",
    "DiskError",
    "InvalidInput",
    "Locked",
    "NotATranscript",
    "NotFound",
    "NothingToDo",
    "ObjectMissing",
    "PhaseTimedOut",
    "ReadOnlyValue",
    "RefMoved",
    "Refused",
    "Session",
    "SessionInfo",
    "Snapshot",
    "SnapstoreError",
    "Store",
    "StoreNotFound",
    "UncertainEffect",
    "UnknownOutcome",
    "Unreachable",
    "UnsuitableServer",
    "UnsupportedFormat",
    "UnsupportedValue",
    "__version__",
    "open",
]
