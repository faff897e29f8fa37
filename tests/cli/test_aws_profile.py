"""Credentials from the files of the AWS tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from snapstore import AccessDenied
from snapstore_cli.aws_profile import options


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """An environment with a home that has two profiles."""
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "credentials").write_text(
        "[default]\naws_access_key_id = AKID\naws_secret_access_key = se%cret\n"
        "[work]\naws_access_key_id = WORK\naws_secret_access_key = other\naws_session_token = t\n"
    )
    (tmp_path / ".aws" / "config").write_text(
        "[default]\nregion = eu-west-1\n[profile work]\nregion = us-west-2\n"
        "endpoint_url = https://s3.example.org\n[profile sso]\nsso_session = company\n"
    )
    return {"HOME": str(tmp_path)}


def test_the_default_profile_is_used_without_any_variables(home: dict[str, str]) -> None:
    assert options(home) == {
        "access_key_id": "AKID",
        "secret_access_key": "se%cret",
        "region": "eu-west-1",
    }


def test_a_named_profile_brings_its_endpoint_and_token(home: dict[str, str]) -> None:
    assert options(home | {"AWS_PROFILE": "work"}) == {
        "access_key_id": "WORK",
        "secret_access_key": "other",
        "session_token": "t",
        "region": "us-west-2",
        "endpoint": "https://s3.example.org",
    }


def test_variables_come_first(home: dict[str, str]) -> None:
    assert options(home | {"AWS_ACCESS_KEY_ID": "from a variable"}) == {}
    more = {"AWS_PROFILE": "work", "AWS_REGION": "x", "AWS_ENDPOINT_URL": "y"}
    assert not {"region", "endpoint"} & options(home | more).keys()


def test_files_may_be_elsewhere(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("[default]\naws_access_key_id = MINE\n")
    more = {"AWS_SHARED_CREDENTIALS_FILE": str(tmp_path / "mine")}
    assert options(home | more)["access_key_id"] == "MINE"


def test_no_files_are_no_profile(tmp_path: Path) -> None:
    assert options({"HOME": str(tmp_path)}) == {}


@pytest.mark.parametrize("name", ["sso", "missing"])
def test_a_named_profile_without_keys_is_an_error(home: dict[str, str], name: str) -> None:
    with pytest.raises(AccessDenied, match=name):
        options(home | {"AWS_PROFILE": name})


def test_a_file_of_another_form_is_an_error_that_tells_nothing_of_it(home: dict[str, str]) -> None:
    Path(home["HOME"], ".aws", "credentials").write_text("aws_secret_access_key = topsecret")
    with pytest.raises(AccessDenied) as refused:
        options(home)
    assert "topsecret" not in str(refused.value)
