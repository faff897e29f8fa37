"""The few calls that the engine makes to an object store, through obstore's synchronous interface.

    get, get_range    Absent when there is nothing
    put               overwrites; repeating it is harmless
    create            writes only where nothing is: Taken when there is something, Unclear when no
                      answer says what happened
    every, page, delete

Other failures are snapstore's errors (see failures). Tries are bounded: obstore repeats what failed
on the way, was throttled (429, 503) or met a server error, with pauses that grow, and never a
create that ran out of time. A call gives up within about half a minute.

obstore reads the usual AWS_*, GOOGLE_* and AZURE_* variables itself. Options that are given here
come before them. Its asynchronous interface is not used: it can abort the interpreter at exit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, PreconditionError
from obstore.store import MemoryStore, from_url

from snapstore.engines.objectstore.failures import Absent, Taken, Unclear, explain, is_final
from snapstore.errors import InvalidInput, StoreNotFound

if TYPE_CHECKING:
    from obstore.store import ObjectStore

PAUSE = timedelta(milliseconds=100)
RETRIES: Any = {
    "max_retries": 8,
    "retry_timeout": timedelta(seconds=15),
    "backoff": {
        "init_backoff": PAUSE,
        "max_backoff": timedelta(seconds=3),
        "base": 2,
    },
}
PAGE = 1000
"""Keys in one answer to a listing."""

_OF_CLIENT = ("allow_http", "timeout", "connect_timeout")
_FAILURES = (BaseError, OSError)


class Found(NamedTuple):
    """A key in a listing."""

    key: str
    size: int
    modified: datetime
    """When it was written, by the server's clock."""


class Bucket:
    """The keys below one prefix of a bucket. Several threads may use it."""

    def __init__(self, store: ObjectStore, name: str) -> None:
        self._store = store
        self.name = name
        """Its address, for messages."""

    @classmethod
    def at(cls, url: str, options: Mapping[str, str] | None = None) -> Bucket:
        """The bucket and prefix of a URL. Nothing is sent yet.

        Options are obstore's (``endpoint``, ``region``, ``access_key_id``, ...), among them those
        of its client: ``allow_http``, ``timeout``, ``connect_timeout``. Raises InvalidInput for an
        address that is none.
        """
        config: Any = dict(options or {})
        client: Any = {name: config.pop(name) for name in _OF_CLIENT if name in config}
        if config.get("endpoint", "").startswith("http://"):
            client["allow_http"] = True  # whoever writes that means it
        # Any options of the client, even none, would hide those in the environment.
        more: Any = {"client_options": client} if client else {}
        try:
            return cls(from_url(url, config=config, retry_config=RETRIES, **more), url)
        except (BaseError, ValueError, TypeError) as error:
            reason = str(error).partition("\n")[0]
            raise InvalidInput(f"{url} cannot be opened: {reason}") from error

    @classmethod
    def in_memory(cls) -> Bucket:
        """A bucket that is gone with the process: for tests."""
        return cls(MemoryStore(), "a bucket in memory")

    # --- reading ------------------------------------------------------------------------------

    def get(self, key: str) -> bytes:
        """What is under a key. Raises Absent."""
        try:
            return bytes(obstore.get(self._store, key).bytes())
        except _FAILURES as error:
            raise self._absent_or(error, f"reading {key}") from error

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """The bytes from start to before end, fewer at the end of the object. Raises Absent."""
        try:
            return bytes(obstore.get_range(self._store, key, start=start, end=end))
        except _FAILURES as error:
            raise self._absent_or(error, f"reading {key}") from error

    def _absent_or(self, error: BaseException, doing: str) -> Exception:
        explained = explain(error, doing, self.name)
        missing = isinstance(error, FileNotFoundError) and not isinstance(explained, StoreNotFound)
        return Absent() if missing else explained

    def every(self, prefix: str) -> Iterator[Found]:
        """Every key below a prefix of whole path segments, in order; a request for each 1,000."""
        for page in self._pages(prefix):
            yield from page

    def page(self, prefix: str, after: str | None = None) -> list[Found]:
        """The first PAGE keys below a prefix and after a key, in order: one request."""
        return next(self._pages(prefix, after), [])

    def _pages(self, prefix: str, after: str | None = None) -> Iterator[list[Found]]:
        try:
            for page in obstore.list(self._store, prefix, offset=after, chunk_size=PAGE):
                yield [Found(m["path"], m["size"], m["last_modified"]) for m in page]
        except _FAILURES as error:
            raise explain(error, f"listing {prefix}", self.name) from error

    # --- writing ------------------------------------------------------------------------------

    def put(self, key: str, data: bytes) -> None:
        """Write, whatever was there. When it raises, the data may be there all the same."""
        try:
            obstore.put(self._store, key, data, mode="overwrite")
        except _FAILURES as error:
            raise explain(error, f"writing {key}", self.name) from error

    def create(self, key: str, data: bytes) -> None:
        """Write where nothing is. Raises Taken or Unclear; other errors mean it was refused."""
        try:
            obstore.put(self._store, key, data, mode="create")
        except (AlreadyExistsError, PreconditionError) as error:
            raise Taken() from error
        except _FAILURES as error:
            explained = explain(error, f"writing {key}", self.name)
            raise (explained if is_final(error, explained) else Unclear(explained)) from error

    def delete(self, keys: Iterable[str]) -> None:
        """Delete these keys; one that is not there is no error."""
        waiting = list(keys)
        for at in range(0, len(waiting), PAGE):
            self._delete(waiting[at : at + PAGE])

    def _delete(self, keys: Sequence[str]) -> None:
        try:
            obstore.delete(self._store, keys)
        except FileNotFoundError:
            return
        except _FAILURES as error:
            raise explain(error, f"deleting {len(keys)} keys", self.name) from error
