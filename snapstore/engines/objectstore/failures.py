"""What an object store answered, as one of snapstore's errors.

The text of obstore's errors holds the server's answer, which is the only place where a missing
bucket can be told from a missing key, or an expired credential from a wrong one. Only the code and
the status are taken from it: an answer may repeat what was signed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from snapstore.errors import AccessDenied, SnapstoreError, StoreNotFound, Unreachable

_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,60})</Code>")
_STATUS = re.compile(r"status code: (\d{3})")

_DENIED = {
    "AccessDenied": "these credentials may not do that",
    "AllAccessDisabled": "access to it is disabled",
    "AuthenticationFailed": "the account key or token is wrong, or has expired",
    "AuthorizationFailure": "these credentials may not do that",
    "AuthorizationPermissionMismatch": "these credentials may not do that",
    "AuthorizationHeaderMalformed": "the region is another one",
    "ExpiredToken": "the credentials have expired",
    "InvalidAccessKeyId": "the access key is not known there",
    "InvalidToken": "the session token is not valid",
    "RequestTimeTooSkewed": "the clock of this machine is too far off",
    "SignatureDoesNotMatch": "the secret key is wrong",
    "TokenRefreshRequired": "the credentials have expired",
}
_HINTS = {
    "AccessDenied": "a store needs rights to list, get and put, and for gc to delete",
    "AuthorizationHeaderMalformed": "set AWS_REGION to the region of the bucket",
    "RequestTimeTooSkewed": "set the clock (NTP), then repeat; nothing was written",
}


_NO_BUCKET = ("NoSuchBucket", "ContainerNotFound")


class _Variables(NamedTuple):
    """What a provider is told by the environment."""

    endpoint: str
    credentials: str
    http: str


_AWS = _Variables(
    "AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "AWS_ALLOW_HTTP",
)  # fmt: skip
_AZURE = _Variables(
    "AZURE_STORAGE_ENDPOINT", "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_ALLOW_HTTP",
)  # fmt: skip
_GOOGLE = _Variables("the endpoint", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_ALLOW_HTTP")


def _variables(bucket: str) -> _Variables:
    if bucket.startswith(("az:", "abfs")):
        return _AZURE
    return _GOOGLE if bucket.startswith("gs:") else _AWS


class Answer(Exception):
    """An answer that the callers of a bucket deal with; none of them leaves the engine."""


class Absent(Answer):
    """There is nothing under this key."""


class Taken(Answer):
    """There is something under this key already."""


class Unclear(Answer):
    """No answer settles it: the request may have been carried out, or may be yet."""

    def __init__(self, error: SnapstoreError) -> None:
        super().__init__(str(error))
        self.error = error


def explain(error: BaseException, doing: str, bucket: str) -> SnapstoreError:
    """The error to raise when a call to the object store failed for good."""
    text = str(error).partition("\n\nDebug source")[0]
    code = _match(_CODE, text)
    status = _match(_STATUS, text)
    variables = _variables(bucket)
    if code in _NO_BUCKET:
        return StoreNotFound(
            f"there is no bucket {bucket}",
            hint=f"make it, or check its name and {variables.endpoint}",
        )
    if "169.254.169.254" in text or "169.254.170.2" in text or "metadata" in text.lower():
        return AccessDenied(
            f"{doing} failed: no credentials were found",
            hint=f"set {variables.credentials}",
        )
    name = type(error).__name__
    if code in _DENIED or name in ("PermissionDeniedError", "UnauthenticatedError"):
        reason = _DENIED.get(code) or "access was refused"
        hint = _HINTS.get(code) or f"check {variables.credentials}, and what they are allowed"
        return AccessDenied(f"{doing} failed: {reason} ({bucket})", hint=hint)
    if "BadScheme" in str(error):
        return Unreachable(
            f"{doing} failed: the endpoint is plain http, which is off by default",
            hint=f"use https, or set {variables.http}=true",
        )
    return Unreachable(
        f"{doing} failed: {_reason(text, status, code)} ({bucket})",
        hint=f"check the network and {variables.endpoint}, then repeat; nothing was lost",
    )


def is_final(error: BaseException, explained: SnapstoreError) -> bool:
    """Whether the server refused: the request was not carried out and never will be."""
    if not isinstance(explained, Unreachable):
        return True
    text = str(error)
    status = _match(_STATUS, text.partition("\n\nDebug source")[0])
    passing = ("408", "409", "425", "429")
    return "BadScheme" in text or (status.startswith("4") and status not in passing)


def _match(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found.group(1) if found else ""


def _reason(text: str, status: str, code: str) -> str:
    if status in ("429", "503") or code in ("SlowDown", "Throttling", "RequestLimitExceeded"):
        return f"the server is asking for fewer requests ({status or code})"
    if status:
        return f"the server answered {status}" + (f" {code}" if code else "")
    return "the server cannot be reached, or does not answer in time"
