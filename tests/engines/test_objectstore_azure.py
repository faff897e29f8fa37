"""On Azure Blob Storage, as Azurite speaks it: races, a whole store, and what goes wrong."""

from __future__ import annotations

import base64

import pytest
from buckets import engine_on, store_on
from servers.azure import ACCOUNT, Azurite
from test_objectstore_races import race

import snapstore
from snapstore import AccessDenied, StoreNotFound
from snapstore.engines.objectstore.client import Bucket
from snapstore.maintenance.purge import purge


def test_exactly_one_writer_wins(azurite: Azurite) -> None:
    url = azurite.url()
    race(lambda: engine_on(Bucket.at(url, azurite.options())), 20)


def test_a_store_is_saved_to_purged_collected_and_verified(azurite: Azurite) -> None:
    url = azurite.url()
    with snapstore.open(url, cache=False, options=azurite.options()) as store:
        session = store.session("s")
        for n in range(12):
            session.history.append(f"{n} the-leaked-key-42")
            session.save()
        session.fork("f", at=3)
        purge(store, "the-leaked-key-42", apply=True)
        assert store.resolve("f").history[-1] == "2 [purged]"
        engine = store_on(Bucket.at(url, azurite.options())).engine
        engine.collect(apply=True, grace=0)  # type: ignore[attr-defined]
        assert store.resolve("s").turn == 12
        assert store.verify() == []


def test_a_missing_container_is_told(azurite: Azurite) -> None:
    with pytest.raises(StoreNotFound, match="no bucket az://nowhere"):
        snapstore.open("az://nowhere/x", cache=False, options=azurite.options())


def test_a_wrong_key_is_told_with_the_variables_of_this_provider(azurite: Azurite) -> None:
    wrong = azurite.options() | {"account_key": base64.b64encode(b"wrong").decode()}
    with pytest.raises(AccessDenied) as refused:
        snapstore.open(azurite.url(), cache=False, options=wrong)
    assert "AZURE_STORAGE_ACCOUNT_KEY" in refused.value.hint
    assert "AWS" not in refused.value.hint + str(refused.value)
    assert ACCOUNT not in str(refused.value)
