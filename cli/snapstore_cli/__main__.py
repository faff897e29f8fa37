"""The command ``snapstore``, and what ``python -m snapstore_cli`` runs.

Harnesses wait for ``snapstore hook`` at every step, so it does not come by way of click.
"""

from __future__ import annotations

import gc
import sys


def run() -> int:
    """Run the command line and return its exit code; never raises."""
    try:
        return _run(sys.argv[1:])
    except KeyboardInterrupt as interrupted:  # before there was anything that could report it
        from snapstore_cli.errors import report

        return report(interrupted, sys.argv[1:])


def _run(words: list[str]) -> int:
    if words[:1] == ["hook"] and not {"-h", "--help"}.intersection(words):
        from snapstore_cli.hooking.main import Arguments
        from snapstore_cli.hooking.main import run as hook

        gc.disable()  # a transcript is a million containers and no cycle
        return hook(Arguments.of(words[1:]))
    from snapstore_cli.main import run as command

    return command(words)


if __name__ == "__main__":
    sys.exit(run())
