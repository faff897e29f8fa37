"""Stores that were made once, byte for byte: every later version reads them, and goes on in them.

How they were made is in make_fixtures.py. When a test here fails, the stores of users cannot be
read any more: it is the code that has to change.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from make_fixtures import FIXTURES, VERSION, told, unpacked

from snapstore import Store
from snapstore.engines.log.batch import DICT
from snapstore.engines.log.codec import ZSTD_DICT
from snapstore.engines.log.engine import LogEngine
from snapstore.engines.log.layout import Layout, Manifest
from snapstore.engines.memory import MemoryEngine
from snapstore.engines.objectstore.client import Bucket
from snapstore.engines.objectstore.engine import ObjectStoreEngine
from snapstore.links import links
from snapstore.transfer.bundle import open_bundle
from snapstore.transfer.carry import carry

STATED: dict[str, Any] = json.loads((FIXTURES / f"told-{VERSION}.json").read_text())


def as_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


def laid_out(root: Path) -> Path:
    root.chmod(0o700)
    for name, data in unpacked(FIXTURES / f"store-{VERSION}.tar.gz").items():
        path = root / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o600)
    return root


def in_directory(root: Path) -> Store:
    return Store(LogEngine(laid_out(root), links=links))


def in_bucket(_: Path) -> Store:
    bucket = Bucket.in_memory()
    for key, data in unpacked(FIXTURES / f"bucket-{VERSION}.tar.gz").items():
        bucket.put(key, data)
    return Store(ObjectStoreEngine(bucket, links=links))


KINDS = pytest.mark.parametrize(
    ("kind", "opened"), [("store", in_directory), ("bucket", in_bucket)]
)


@KINDS
def test_all_of_it_is_read_as_it_was(
    kind: str, opened: Callable[[Path], Store], tmp_path: Path
) -> None:
    with opened(tmp_path) as store:
        assert as_json(told(store)) == STATED[kind]
        assert store.verify() == []


@KINDS
def test_it_can_be_gone_on_with_and_collected(
    kind: str, opened: Callable[[Path], Store], tmp_path: Path
) -> None:
    with opened(tmp_path) as store:
        session = store.session("fix-login")
        session.undo()
        session.redo()
        session.history.append({"role": "user", "content": "and on"})
        session.save()
        store.gc(apply=True, grace=timedelta(0))
        assert store.verify() == []
        now = as_json(told(store))["sessions"]
    was = STATED[kind]["sessions"]
    assert now["fix-login"][0][1:] == was["fix-login"][0]
    assert {**now, "fix-login": 0} == {**was, "fix-login": 0}


def test_a_bundle_brings_in_all_sessions_and_tags(tmp_path: Path) -> None:
    into = Store(MemoryEngine())
    with open_bundle(FIXTURES / f"bundle-{VERSION}", into) as found:
        carry(found, into)
    brought = as_json(told(into))
    assert brought["sessions"] == STATED["store"]["sessions"]
    assert brought["tags"] == STATED["store"]["tags"]


def test_the_store_has_a_segment_of_each_kind(tmp_path: Path) -> None:
    layout = Layout(laid_out(tmp_path))
    engine = LogEngine(tmp_path)
    packed, sealed, active = engine._log.segments
    assert (packed.number, sealed.number, active.number) == Manifest.read(layout.manifest).segments
    assert packed.is_packed() and not sealed.is_packed()
    codecs = {entry & 3 for _, batch in packed.scan(0) for entry, _ in batch._blocks}
    assert ZSTD_DICT in codecs and packed.batch(0).payloads(DICT)
    engine.close()


def test_no_fixture_is_large() -> None:
    assert sum(path.stat().st_size for path in FIXTURES.iterdir()) < 250_000
