"""Profiles of the AWS tools: credentials that stand in files, not in variables.

The variables (``AWS_ACCESS_KEY_ID``, ...) are read where requests are signed, and come first. A
profile is looked up only without them, as the AWS tools do: ``AWS_PROFILE``, else ``default``, in
``~/.aws/credentials`` and ``~/.aws/config``. Nothing of it is kept or shown.
"""

from __future__ import annotations

import configparser
from collections.abc import Mapping
from pathlib import Path

from snapstore import AccessDenied

_NAMES = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
    "region": "region",
    "endpoint_url": "endpoint",
}
_VARIABLES = {
    "region": ("AWS_REGION", "AWS_DEFAULT_REGION"),
    "endpoint": ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT"),
}


def options(environment: Mapping[str, str]) -> dict[str, str]:
    """What the profile says that no variable does. Raises AccessDenied for one that is named and
    holds no keys."""
    if "AWS_ACCESS_KEY_ID" in environment:
        return {}
    named = environment.get("AWS_PROFILE") or environment.get("AWS_DEFAULT_PROFILE")
    found = _section(environment, named or "default")
    if named and "access_key_id" not in found:
        raise AccessDenied(
            f"the AWS profile {named!r} holds no access key",
            hint='for single sign-on and roles: eval "$(aws configure export-credentials '
            '--format env)"',
        )
    said = {option for option, names in _VARIABLES.items() if any(n in environment for n in names)}
    return {option: value for option, value in found.items() if option not in said}


def _section(environment: Mapping[str, str], profile: str) -> dict[str, str]:
    home = Path(environment.get("HOME", "/"), ".aws")
    files = configparser.RawConfigParser()
    for variable, name in (
        ("AWS_CONFIG_FILE", "config"),
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
    ):
        try:
            files.read(environment.get(variable) or home / name)
        except (configparser.Error, UnicodeDecodeError):
            # What went wrong would quote the line that it went wrong in.
            raise AccessDenied(f"the AWS file {name} is not of the form it must have") from None
    found: dict[str, str] = {}
    for section in (f"profile {profile}", profile):
        if files.has_section(section):
            found |= {_NAMES[key]: value for key, value in files.items(section) if key in _NAMES}
    return found
