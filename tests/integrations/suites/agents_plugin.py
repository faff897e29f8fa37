"""pytest plug-in: tests of the OpenAI Agents SDK, with our session where they use SQLiteSession.

Of the tests that make a SQLiteSession those are kept that do not reach into it. Without the option
``--their-session`` the name stands for our class in every module that imported it.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest

_MAKES_ONE = "SQLiteSession("
_REACHES_INTO_IT = re.compile(
    r"sqlite3\.|execute\(|_table\b|AdvancedSQLiteSession|AsyncSQLiteSession|\(SQLiteSession\)"
    r"|monkeypatch.setattr\(\s*SQLiteSession"
    r"|\._(get_connection|lock|shared|local|init_db|connections|file_lock|write_connection|insert"
    r"|connection|quarantined|await_mutation|locked_connection|get_compaction|pop_item_with)"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The same tests on the SDK's own class, to compare."""
    parser.addoption("--their-session", action="store_true")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests that judge a session."""
    kept = [item for item in items if _judges(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def _judges(item: pytest.Item) -> bool:
    try:
        source = inspect.getsource(getattr(item, "function"))  # noqa: B009
    except (OSError, TypeError, AttributeError):
        return False
    return _MAKES_ONE in source and not _REACHES_INTO_IT.search(source)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Put our session in place of theirs."""
    if session.config.getoption("--their-session"):
        return
    from agents import SQLiteSession

    from snapstore.integrations.openai_agents import SnapstoreSession

    modules: set[Any] = {getattr(item, "module") for item in session.items}  # noqa: B009
    for module in modules:
        if getattr(module, "SQLiteSession", None) is SQLiteSession:
            module.SQLiteSession = SnapstoreSession
