"""The same commands on a store in a bucket."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from servers import s3
from shell import Shell


@pytest.fixture(scope="module")
def server() -> Iterator[s3.Server]:
    """An S3 server with a bucket."""
    with s3.moto() as running:
        yield running


@pytest.fixture
def away(shell: Shell, server: s3.Server, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Commands on a store in that bucket, of which nothing is kept on this machine."""
    for name, value in server.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_CACHE_HOME", str(shell.folder / "cache"))
    monkeypatch.setenv("SNAPSTORE_STORE", server.url())
    return shell


def test_saves_forks_rewinds_and_undoes(away: Shell) -> None:
    for n in range(1, 7):
        away.save("a", {"role": "user", "content": f"question {n}"})
    away.ok("fork", "a@3", "b")
    away.save("b", {"role": "user", "content": "another way"})
    away.ok("rewind", "a@2")
    assert away.ok("show", "a", "--json").json["turn"] == 2
    away.ok("undo", "-s", "a")
    assert away.ok("show", "a", "--json").json["turn"] == 6
    assert away.ok("diff", "a", "b", "--json").json["base"]["turn"] == 3
    assert [s["name"] for s in away.ok("sessions", "--json").json["sessions"]] == ["a", "b"]
    assert away.ok("verify", "--json").json["ok"]
    away.ok("delete", "b", "--yes")
    assert away.ok("gc", "--json").json["applied"] is False


def test_a_bucket_without_a_store_is_none(away: Shell) -> None:
    result = away("sessions", "--json")
    assert (result.code, result.error["code"]) == (10, "store_not_found")


def test_no_server_is_told_with_the_exit_code_of_a_disk_that_refuses(
    away: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from snapstore.engines.objectstore import client

    monkeypatch.setitem(client.RETRIES, "max_retries", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{s3.free_port()}")
    result = away("sessions", "--json")
    assert (result.code, result.error["code"]) == (12, "unreachable")
    assert result.error["hint"]


def test_a_profile_stands_in_for_the_variables(
    away: Shell, server: s3.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    keys = f"aws_access_key_id={server.access_key}\naws_secret_access_key={server.secret_key}\n"
    (away.folder / "credentials").write_text(f"[work]\n{keys}")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(away.folder / "credentials"))
    monkeypatch.setenv("AWS_PROFILE", "work")
    away.save("a", {"role": "user", "content": "with a profile"})
    assert away.ok("show", "a", "--json").json["turn"] == 1
    monkeypatch.setenv("AWS_PROFILE", "missing")
    assert away("sessions", "--json").error["code"] == "access_denied"
