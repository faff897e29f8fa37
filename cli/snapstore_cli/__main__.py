"""The command ``snapstore``, and what ``python -m snapstore_cli`` runs.

Harnesses wait for ``snapstore hook`` at every step, so it does not come by way of click.
"""

from __future__ import annotations

import gc
import sys


def run() -> int:
    """Run the command line and return its exit code; never raises."""
    words = sys.argv[1:]
    if words[:1] == ["hook"] and not {"-h", "--help"}.intersection(words):
        from snapstore_cli.hooking.main import Arguments
        from snapstore_cli.hooking.main import run as hook

        gc.disable()  # a transcript is a million containers and no cycle
        return hook(Arguments.of(words[1:]))
    from snapstore_cli.main import run as command

    return command(words)


if __name__ == "__main__":
    sys.exit(run())
