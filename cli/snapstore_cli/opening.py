"""Opening a store as commands do: with the credentials that this user's files hold."""

from __future__ import annotations

import os

import snapstore
from snapstore import Store

_AWS = ("s3://", "s3a://")


def open_store(place: str, *, create: bool = True) -> Store:
    """The store at a place. Raises StoreNotFound when it is not there and is not to be made."""
    if not place.startswith(_AWS):
        return snapstore.open(place, create=create)
    from snapstore_cli.aws_profile import options

    return snapstore.open(place, create=create, options=options(os.environ))
