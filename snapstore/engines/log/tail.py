"""What to make of bytes behind the verified end of the active segment.

A writer that holds the lock and meets them has two cases to tell apart:

    A torn tail. The machine or the process died while a batch was written. Nothing of it was
    acknowledged. The bytes are kept in torn/, the file is cut, and writing goes on.

    Damage. Bytes that were acknowledged have changed since. Cutting would destroy what lies
    behind them, so nothing is written any more until ``repair`` has been asked for.

Where cache/ knows that the log was durable further (see witness), nobody need ask. Nor where the
first batch of a segment does not verify: it was durable before the manifest named the segment, and
all refs stand in it. Else what tells them apart is what lies behind the first bad byte. A whole
batch there was written later, if its number is higher than that of the batch which is missing: what
has a lower one is a remnant of what the disk held before. If its ``durable end`` lies past the bad
byte, its writer knew that byte to be synced: damage. Writers sync what they build on, so this
decides nearly always. If two or more whole batches lie there whose writers waited for their syncs,
the second waited with the lock held until everything before it was synced: damage. One alone, with
no such claim, can be the survivor of several writes of one commit that were all in flight when the
power went: a torn tail.
"""

from __future__ import annotations

from dataclasses import dataclass

from snapstore.engines.log import batch as fmt
from snapstore.engines.log.batch import Batch, Header
from snapstore.errors import Corrupt, UnsupportedFormat


@dataclass(frozen=True, slots=True)
class Tail:
    """Bytes that do not verify, from offset to the end of the file."""

    path: str
    offset: int
    length: int
    acknowledged: bool
    """True: damage. False: a torn tail, nothing that was acknowledged is in it."""

    @property
    def place(self) -> tuple[str, int, int]:
        """Which bytes these are."""
        return self.path, self.offset, self.length

    def as_error(self) -> Corrupt:
        """The error that refuses to write on top of damage."""
        error = Corrupt(
            "acknowledged data is damaged; nothing is saved on top of it",
            path=self.path,
            offset=self.offset,
        )
        error.hint = (
            "copy the store away, then run `snapstore verify` to see what is touched and "
            "`snapstore repair --apply` to go on with what is whole"
        )
        return error


def examine(data: bytes, path: str, offset: int, number: int) -> Tail:
    """Judge the bytes from offset to the end of a segment, where batch number should begin."""
    if offset == 0:
        return Tail(path, 0, len(data), acknowledged=True)
    later = 0
    at = data.find(fmt.MAGIC, _claimed(data, path, offset))
    while at >= 0:
        opened = _whole_batch(data, at, path)
        if opened is None:
            at = data.find(fmt.MAGIC, at + 1)
            continue
        at = data.find(fmt.MAGIC, at + opened.header.size)
        if opened.header.number <= number:
            continue
        if opened.header.durable_end > offset:
            return Tail(path, offset, len(data), acknowledged=True)
        later += not opened.header.flags & fmt.LOOSE
    return Tail(path, offset, len(data), acknowledged=later >= 2)


def _claimed(data: bytes, path: str, offset: int) -> int:
    """Where the search begins: behind the bad batch, if its header still says how long it is.

    What looks like a batch within it is content: somebody saved the file of a store.
    """
    try:
        header = Header(data[: fmt.HEADER_SIZE], (path, offset))
    except (Corrupt, UnsupportedFormat):
        return 1
    return int(header.size)


def _whole_batch(data: bytes, at: int, path: str) -> Batch | None:
    try:
        size = Header(data[at : at + fmt.HEADER_SIZE], (path, at)).size
        return Batch(data[at : at + size], (path, at))
    except (Corrupt, UnsupportedFormat):
        return None
