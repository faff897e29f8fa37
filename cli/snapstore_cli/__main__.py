"""``python -m snapstore_cli`` is the command ``snapstore``."""

from __future__ import annotations

import sys

from snapstore_cli.main import run

if __name__ == "__main__":
    sys.exit(run())
