"""Many files read by several processes at once, each with a store of its own.

Reading is Python's work and takes one processor; writing is short, and the store's lock puts it in
order. Two that want one name find out by it, and the second takes the next.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from snapstore import InvalidInput, NotATranscript
from snapstore.transfer.imports import Imported
from snapstore_cli.opening import open_store
from snapstore_cli.reading import Reader
from snapstore_cli.sources import Source

_FEW_FILES = 4
_FEW_BYTES = 32 << 20
"""Below this, to start processes costs more than they save."""
_MOST_PROCESSES = 8

_reader: Reader | None = None


def worth_it(found: Sequence[Source], place: str) -> bool:
    """Whether so many files should be read side by side."""
    large = len(found) >= _FEW_FILES and sum(source.size for source in found) >= _FEW_BYTES
    return large and not place.startswith("memory:") and (os.cpu_count() or 1) > 1


def read_all(
    place: str, paths: Sequence[Path], without_secrets: bool
) -> Iterator[list[Imported] | InvalidInput]:
    """What became of each file, in their order."""
    processes = min(os.cpu_count() or 1, _MOST_PROCESSES, len(paths))
    # Not a fork of this process: it has the store open.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, _begin, (place, without_secrets)) as pool:
        yield from pool.map(_read, paths)


def _begin(place: str, without_secrets: bool) -> None:
    global _reader
    gc.disable()  # a transcript is a million containers and no circle
    _reader = Reader(open_store(place, create=False), None, without_secrets)


def _read(path: Path) -> list[Imported] | InvalidInput:
    assert _reader is not None
    try:
        return _reader.read(path)
    except NotATranscript as error:
        return error
    except InvalidInput as error:  # of a class that may not be told between processes
        return InvalidInput(str(error), hint=error.hint)
    finally:
        gc.collect()
