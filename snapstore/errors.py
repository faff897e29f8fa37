"""Every error that snapstore raises on purpose: one tree, one sentence a class.

The message says what happened; ``hint`` says what to do next, and a traceback ends with it.
Attributes carry the facts, so that a program need not read the text. Exit codes and rendering
belong to the command line.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence


class SnapstoreError(Exception):
    """The root of all errors that snapstore raises on purpose."""

    hint: str = ""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint or self.hint

    def __setattr__(self, name: str, value: object) -> None:
        """As usual; the hint is also the note that a traceback ends with (PEP 678)."""
        super().__setattr__(name, value)
        if name == "hint":
            super().__setattr__("__notes__", [f"hint: {value}"] if value else [])


# --- what was asked for is not there ---------------------------------------------------------


class StoreNotFound(SnapstoreError):
    """There is no store at this place."""

    hint = "`snapstore init` makes one, and so does the first save unless opened with create=False"


class NotFound(SnapstoreError):
    """No session, turn, snapshot or path of this name exists."""


class Ambiguous(SnapstoreError):
    """An abbreviation fits more than one thing; the candidates are listed."""

    def __init__(self, message: str, candidates: Sequence[str], *, hint: str = "") -> None:
        super().__init__(message, hint=hint or "use more digits, or one of the candidates")
        self.candidates = tuple(candidates)


class NothingToDo(SnapstoreError):
    """The step that was asked for has nowhere to go (nothing to undo, nothing to redo)."""


# --- what was given cannot be used -----------------------------------------------------------


class InvalidInput(SnapstoreError, ValueError):
    """An argument is not of the form it must have (a session name, a revision, a file format)."""


class UnsupportedValue(InvalidInput, TypeError):
    """A value is not JSON (nor bytes where these are allowed); ``path`` says where it stands."""

    def __init__(self, path: str, reason: str, *, hint: str = "") -> None:
        super().__init__(
            f"{path}: {reason}",
            hint=hint
            or "store JSON values: dict with str keys, list, str, int, finite float, bool, None",
        )
        self.path = path
        self.reason = reason


class NotATranscript(InvalidInput):
    """A file is no session of a program that is known."""

    hint = "Claude Code and Codex transcripts and JSON or JSON Lines of messages are read"


class ReadOnlyValue(SnapstoreError, TypeError):
    """A value that came out of a session was changed in place; assign the new value instead."""


# --- somebody else was faster, or must not be run over ---------------------------------------


class RefMoved(SnapstoreError):
    """The ref is not where the caller expected it: another writer moved it first."""

    def __init__(self, name: str, expected: bytes | None, actual: bytes | None) -> None:
        def short(head: bytes | None) -> str:
            return head.hex()[:12] if head else "nothing"

        super().__init__(
            f"{name} moved: expected at {short(expected)}, found at {short(actual)}",
            hint="nothing was lost: save with on_conflict='fork' to keep both, or reload and redo",
        )
        self.name = name
        self.expected = expected
        self.actual = actual


class Refused(SnapstoreError):
    """Doing it would overwrite or reach something that nothing else holds; force goes on."""


class Locked(SnapstoreError):
    """Another process has held the store's lock for too long."""

    hint = "it is freed when its holder ends; see which process uses the store, then try again"


# --- a task cannot go on ---------------------------------------------------------------------


class PhaseTimedOut(SnapstoreError, TimeoutError):
    """A phase of a task took longer than it may."""


class UncertainEffect(SnapstoreError):
    """An effect was begun and its outcome was never recorded: it may or may not have taken place.

    ``key`` is what the task calls it, ``idempotency_key`` what it was begun under.
    """

    def __init__(self, key: str, idempotency_key: str) -> None:
        super().__init__(
            f"whether the effect {key!r} took place is unknown: the run that began it was cut off",
            hint="find out, then run the task with on_uncertain='skip' if it did, 'retry' if not",
        )
        self.key = key
        self.idempotency_key = idempotency_key


# --- the store or the disk is not well -------------------------------------------------------


class Corrupt(SnapstoreError):
    """Bytes on disk are not what was written; ``path`` and ``offset`` say where."""

    hint = "run `snapstore verify` to see what it touches; nothing was changed"

    def __init__(self, message: str, *, path: str | None = None, offset: int | None = None) -> None:
        at = "" if offset is None else f" at {offset}"
        super().__init__(message if path is None else f"{message} ({path}{at})")
        self.path = path
        self.offset = offset


class ObjectMissing(SnapstoreError):
    """An object that something refers to is not in the store."""

    hint = "run `snapstore verify` to see which sessions and turns it touches"

    def __init__(self, object_id: bytes) -> None:
        super().__init__(f"object {object_id.hex()} is not in the store")
        self.id = object_id


class UnsupportedFormat(SnapstoreError):
    """The store was written by a version whose format this one does not know; it is left alone."""

    hint = "use a newer snapstore"


_FULL = "free some space, then repeat; nothing was lost"
_DENIED = "see whose it is and what its mode allows (`ls -ld`), then repeat; nothing was lost"
_NO_WAY = "see what stands there; a directory on the way is missing or is none"
_HINTS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "the file system or a limit (`ulimit -f`) allows no larger file; nothing was lost",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: "it lies on a file system that is mounted read-only; nothing was lost",
    errno.ENOENT: _NO_WAY,
    errno.ENOTDIR: _NO_WAY,
    errno.EISDIR: _NO_WAY,
    errno.EMFILE: "too many files are open (`ulimit -n`); close some, then repeat",
    errno.ENFILE: "too many files are open on this machine; close some, then repeat",
}
"""What to do about what the operating system said."""


class DiskError(SnapstoreError, OSError):
    """The operating system refused a write (disk full, I/O error); the store is as it was."""

    hint = "look after the disk, then repeat; nothing was lost"

    def __init__(self, message: str, errno: int | None = None, *, hint: str = "") -> None:
        SnapstoreError.__init__(self, message, hint=hint or _HINTS.get(errno or 0, ""))
        self.errno = errno


class UnknownOutcome(SnapstoreError):
    """A sync failed, so whether the last save is durable is unknown; this handle takes no more."""

    hint = "open the store again: it holds the state before or after the save, both complete"


# --- an object store does not do what it is asked --------------------------------------------


class Unreachable(SnapstoreError):
    """The object store does not answer, or keeps saying that it is busy; nothing was changed."""

    hint = "check the network and AWS_ENDPOINT_URL, then repeat; nothing was lost"


class AccessDenied(SnapstoreError):
    """The object store refused the credentials, or what they may not do; nothing was changed."""

    hint = "check the credentials (AWS_* variables, AWS_PROFILE) and what they are allowed"


class UnsuitableServer(SnapstoreError):
    """The object store does not keep the one promise that saves rest on; nothing was kept on it."""

    hint = "use a server that honours `PUT` with `If-None-Match: *`, as S3, R2, GCS and Ceph do"
