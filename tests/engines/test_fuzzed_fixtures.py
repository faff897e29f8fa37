"""Whatever bytes a store holds: SnapstoreError at worst, little memory, and nothing is started."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fuzzing import KINDS
from given import content

from snapstore.engines.log.batch import HEADER_SIZE
from snapstore.engines.objectstore import packs
from snapstore.errors import Corrupt


def run(kind: str, first: int, count: int) -> None:
    script = Path(__file__).with_name("fuzzing.py")
    command = [sys.executable, str(script), kind, str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("kind", "cases"), [("store", 8), ("bucket", 8), ("bundle", 30)])
def test_mutated_fixtures_raise_nothing_else(kind: str, cases: int) -> None:
    run(kind, 0, cases)


def test_a_pack_that_ends_within_its_directory_is_corrupt() -> None:
    data = packs.make([content(b"a message")], tier=0).data
    for end in range(HEADER_SIZE + 4):
        with pytest.raises(Corrupt):
            packs.front_length(data[:end])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nor_do_many_more(kind: str) -> None:
    run(kind, 1000, 1500)
