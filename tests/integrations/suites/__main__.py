"""The frameworks' own test suites, run on our backends.

    python -m tests.integrations.suites [--whole] [--folder FOLDER] [SUITE ...]

    conformance   of langgraph-checkpoint
    langgraph     LangGraph's own tests, with our saver in place of SqliteSaver and its kin
    agents        the session tests of the OpenAI Agents SDK
    contract      what Pydantic AI asks of a store, on its own and on ours
    ours          our own tests of the other backends

The suites come with the source distributions of the frameworks, which are fetched at pinned
versions, with an environment of their own to run in (300 MB, kept in the user's cache directory,
see ``bench``); nothing of them is kept here. Prints a line for each suite and exits with 1 if one
does not reach its bar. Where one cannot be fetched the line says so, and nothing was judged. Of
LangGraph's suite those tests are run whose saver is replaced (a third of it); --whole runs all.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from .bench import Bench, NotFetchedError
from .judging import SUITES, judge


def main() -> int:
    """Run the suites and print what they say."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("suites", nargs="*", metavar="SUITE", default=list(SUITES))
    parser.add_argument("--whole", action="store_true", help="all of LangGraph's tests")
    parser.add_argument("--folder", type=Path, help="where to fetch to, instead of the cache")
    chosen = parser.parse_args()
    bench = Bench(chosen.folder)
    good = True
    for name in chosen.suites:
        begun = time.monotonic()
        try:
            judged = judge(bench, name, chosen.whole)
        except NotFetchedError as reason:
            print(f"{name}: could not be fetched, nothing was judged: {reason}", flush=True)
            continue
        good = good and judged.good
        line = f"{name}: {judged}, {time.monotonic() - begun:.0f} s"
        print(line, *judged.failed, sep="\n    ", flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
