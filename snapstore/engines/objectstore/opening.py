"""Opening an engine on an address, where the package that speaks to object stores is installed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from snapstore.engine import Engine
from snapstore.errors import SnapstoreError

if TYPE_CHECKING:
    from snapstore.engines.objectstore.lookup import Links


def engine_at(
    url: str, links: Links, cache: str | Path | bool, options: Mapping[str, str] | None
) -> Engine:
    """The engine on the store at a URL; see ``snapstore.store.open_store``."""
    try:
        from snapstore.engines.objectstore.client import Bucket
        from snapstore.engines.objectstore.engine import ObjectStoreEngine
    except ModuleNotFoundError as error:
        raise SnapstoreError(
            f"stores like {url} need the package {error.name}",
            hint="install it with `pip install 'snapstore[s3]'`",
        ) from error
    if cache is True:
        import platformdirs

        cache = platformdirs.user_cache_path("snapstore", appauthor=False) / "packs"
    folder = Path(cache) if cache else None
    return ObjectStoreEngine(Bucket.at(url, options), links=links, cache=folder)
