"""LangGraph: checkpoints of graphs in a store. Needs the extra ``snapstore[langgraph]``.

Only ``saver`` knows the framework. What is below it keeps serialised values and reads files of
SqliteSaver without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from snapstore.integrations.langgraph.saver import SnapstoreSaver

__all__ = ["SnapstoreSaver"]


def __getattr__(name: str) -> Any:
    """SnapstoreSaver, imported when it is asked for."""
    if name != "SnapstoreSaver":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from snapstore.integrations.langgraph.saver import SnapstoreSaver
    except ModuleNotFoundError as missing:
        raise ModuleNotFoundError(
            f"{missing}: install snapstore[langgraph]", name=missing.name
        ) from missing
    return SnapstoreSaver
