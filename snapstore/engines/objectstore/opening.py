"""Opening an engine on an address, where the package that speaks to object stores is installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from snapstore.engine import Engine
from snapstore.errors import InvalidInput

if TYPE_CHECKING:
    from snapstore.engines.objectstore.lookup import Links

SCHEMES = ("s3://", "s3a://", "gs://", "az://", "abfs://", "abfss://")
"""What the address of an object store begins with."""


def engine_at(
    url: str, links: Links, cache: str | Path | bool, options: Mapping[str, str] | None
) -> Engine:
    """The engine on the store at a URL; see ``snapstore.store.open_store``.

    Raises InvalidInput for an address that is none, or that needs a package that is not there.
    """
    if not url.startswith(SCHEMES):
        raise InvalidInput(
            f"{url} is no address of a store", hint=f"it begins with {', '.join(SCHEMES)}"
        )
    try:
        from snapstore.engines.objectstore.client import Bucket
        from snapstore.engines.objectstore.engine import ObjectStoreEngine
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"stores like {url} need the package {error.name}",
            hint="install it with `pip install 'snapstore[s3]'`",
        ) from error
    if cache is True:
        import platformdirs

        cache = platformdirs.user_cache_path("snapstore", appauthor=False) / "packs"
    folder = Path(cache) if cache else None
    return ObjectStoreEngine(Bucket.at(url, options), links=links, cache=folder)
