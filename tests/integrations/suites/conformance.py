"""Runs langgraph-checkpoint-conformance on our saver; prints how many tests passed and failed."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from langgraph.checkpoint.conformance import checkpointer_test, validate

from snapstore.integrations.langgraph import SnapstoreSaver


@checkpointer_test(name="SnapstoreSaver")
async def _saver() -> AsyncIterator[SnapstoreSaver]:
    with tempfile.TemporaryDirectory() as folder:
        async with SnapstoreSaver.from_conn_string(Path(folder) / "store") as saver:
            yield saver


def main() -> None:
    """Run it. The level that the suite gives says nothing: it leaves out what a saver lacks."""
    results: dict[str, Any] = asyncio.run(validate(_saver)).to_dict()["results"]
    print(
        json.dumps(
            {
                "passed": sum(result["tests_passed"] for result in results.values()),
                "failed": [
                    failure for result in results.values() for failure in result["failures"]
                ],
            }
        )
    )


if __name__ == "__main__":
    main()
