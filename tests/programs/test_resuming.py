"""The real programs go on from what was exported: what they then send is what was exported.

They run when ``SNAPSTORE_CLAUDE`` and ``SNAPSTORE_CODEX`` name them (npm packages
``@anthropic-ai/claude-code`` and ``@openai/codex``), against a stand-in for the APIs of models.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from standin import StandIn, standing_in
from transcripts import ROLLOUT, TALK, said, text, user, written

from snapstore import Store, formats
from snapstore.store import open_store
from snapstore.transfer.exports import Wish, export
from snapstore.transfer.imports import import_transcript
from snapstore.transfer.install import install

PROGRAMS = {"claude-code": "SNAPSTORE_CLAUDE", "codex": "SNAPSTORE_CODEX"}
CONFIG = """
model = "m"
model_provider = "standin"
approval_policy = "never"
[model_providers.standin]
name = "standin"
base_url = "{url}/v1"
wire_api = "responses"
"""

pytestmark = pytest.mark.programs


@pytest.fixture
def api() -> Iterator[StandIn]:
    with standing_in() as server:
        yield server


@pytest.fixture
def store() -> Store:
    """A session of each program, one of which was rewound."""
    store = open_store("memory://")
    rewound = [*TALK, user("u3", "a3", "another way"), said("a5", "u3", text("yes"))]
    for name, rows in (("claude", rewound), ("codex", ROLLOUT)):
        import_transcript(store, formats.read(written(rows), "t.jsonl"), name=name)
    return store


def sent_after(
    api: StandIn, store: Store, revision: str, program: str, folder: Path
) -> dict[str, Any]:
    """What the program sends when it goes on from an export of this turn."""
    command = os.environ.get(PROGRAMS[program])
    if not command:
        pytest.skip(f"{PROGRAMS[program]} does not name the program")
    work, home = folder / "work", folder / "home"
    work.mkdir()
    home.mkdir()
    found = store.revision(revision)
    wish = Wish(program, cwd=str(work), fresh=True)
    made = export(store, found.snapshot, found.session, wish)
    install(made, home)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home),
        "CODEX_HOME": str(home),
        "ANTHROPIC_BASE_URL": api.url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }
    (home / "config.toml").write_text(CONFIG.format(url=api.url))
    going_on = (
        ["-p", "go on", "--resume", made.session_id]
        if program == "claude-code"
        else ["exec", "--skip-git-repo-check", "resume", made.session_id, "go on"]
    )
    done = subprocess.run(
        [command, *going_on],
        cwd=work,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert "all is well" in done.stdout, done.stderr
    return api.asked[-1]


@pytest.mark.parametrize(
    ("revision", "there", "gone"),
    [
        ("claude@1", ["count the files", "2 and none"], ["second", "another way"]),
        ("claude", ["2 and none", "another way", "yes"], ["second"]),
        ("claude/branch-1", ["2 and none", "the second answer"], ["another way"]),
        ("codex", ["count the files", "there are two", "the second answer"], []),
    ],
)
def test_claude_code_goes_on(
    api: StandIn, store: Store, tmp_path: Path, revision: str, there: list[str], gone: list[str]
) -> None:
    asked = json.dumps(sent_after(api, store, revision, "claude-code", tmp_path)["messages"])
    assert all(words in asked for words in [*there, "go on"])
    assert not any(words in asked for words in gone)
    if revision.startswith("claude"):
        assert asked.count('"tool_use"') == asked.count('"tool_result"') == 2


@pytest.mark.parametrize(
    ("revision", "there", "gone"),
    [
        ("codex@1", ["count the files", "there are two", "ZW5j"], ["second"]),
        ("codex", ["there are two", "the second answer"], []),
        ("claude@1", ["count the files", "2 and none"], ["second", "another way"]),
    ],
)
def test_codex_goes_on(
    api: StandIn, store: Store, tmp_path: Path, revision: str, there: list[str], gone: list[str]
) -> None:
    asked = json.dumps(sent_after(api, store, revision, "codex", tmp_path)["input"])
    assert all(words in asked for words in [*there, "go on"])
    assert not any(words in asked for words in gone)
