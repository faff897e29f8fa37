"""A process that puts checkpoints and writes, and says each time what is kept.

    langgraph_writer.py STORE NAME COUNT

Prints one line of JSON, the id of the checkpoint and its value, after each has been kept.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6

from snapstore.integrations.langgraph import SnapstoreSaver


def main(where: str, me: str, count: str) -> None:
    """Put so many checkpoints, each upon the last."""
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    said: list[str] = []
    with SnapstoreSaver.from_conn_string(where) as saver:
        for n in range(int(count)):
            said.append(f"{n} of {me}")
            made = empty_checkpoint()
            made["id"] = str(uuid6())
            made["channel_values"] = {"said": said}
            made["channel_versions"] = {"said": n + 1}
            config = saver.put(config, made, {}, {"said": n + 1})
            saver.put_writes(config, [("said", said[-1])], f"task {me}")
            os.write(1, (json.dumps([made["id"], said]) + "\n").encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
