"""What the model tests stand on: objects in a dict, with a count of what was read and put."""

from __future__ import annotations

import pytest

from snapstore.errors import ObjectMissing
from snapstore.ids import object_id


class Memory:
    """Objects in a dict."""

    def __init__(self) -> None:
        self.objects: dict[bytes, bytes] = {}
        self.reads = 0
        self.puts = 0

    def read(self, wanted: bytes) -> bytes:
        self.reads += 1
        try:
            return self.objects[wanted]
        except KeyError:
            raise ObjectMissing(wanted) from None

    def put(self, content: bytes) -> bytes:
        self.puts += 1
        self.objects[object_id(content)] = content
        return object_id(content)


@pytest.fixture(scope="session")
def new_memory() -> type[Memory]:
    """Makes empty memories; a class, so that each hypothesis example can have its own."""
    return Memory
