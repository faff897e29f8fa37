"""A process that saves turns until it is killed, and says each time what is saved.

    writer.py STORE NAME SEAL_AT [lazy]

With ``lazy`` it does not wait for the disk. Prints one line ``REF TEXT`` after each commit has
returned. Every third turn goes to the ref ``shared``, which other writers want too; the others to
refs of its own.
"""

from __future__ import annotations

import os
import sys
from itertools import count
from pathlib import Path

from given import content, head, save, snapshot

from snapstore.engines.log.engine import LogEngine
from snapstore.errors import RefMoved


def main(root: str, name: str, seal_at: str, lazy: str = "") -> None:
    """Save turns for ever."""
    engine = LogEngine(Path(root), seal_at=int(seal_at), durable=not lazy)
    for i in count():
        ref = "shared" if i % 3 == 0 else f"own/{name}/{i % 2}"
        text = f"turn {i} of {name}"
        snap = snapshot(f"snapshot of {text}".encode())
        objects = [content(f"message of {text}".encode()), content(os.urandom(i % 7 * 100)), snap]
        while True:
            update = save(ref, snap.id, head(engine, ref), info={"text": text})
            try:
                engine.commit(objects, update)
            except RefMoved:
                continue
            break
        os.write(1, f"{ref} {text}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
