"""Threads out of a file that LangGraph's SqliteSaver wrote.

The file is opened to be read only, and nothing in it is deserialised: a packed checkpoint is taken
apart at the places where its values begin and end.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgpack

from snapstore.errors import InvalidInput, Refused
from snapstore.integrations.langgraph.threads import Given, Threads
from snapstore.integrations.langgraph.turns import PACKED, Key, Place, Typed
from snapstore.integrations.names import session_name
from snapstore.store import Store

MAGIC = b"SQLite format 3\x00"
"""How such a file begins."""
