"""A text that is to go, in all the forms in which it may have been saved."""

from __future__ import annotations

import json

from snapstore.errors import InvalidInput

SHORTEST = 4
"""Fewest bytes of a text that is taken out: a shorter one would be in everything."""

_MARKS = (b"[purged]", b"*****", b"-----")


class Unwanted:
    """A text in all the forms in which it may have been saved."""

    def __init__(self, text: str) -> None:
        """Raises InvalidInput for a text that is too short."""
        raw = text.encode("utf-8", "surrogatepass")
        if len(raw) < SHORTEST:
            raise InvalidInput(f"a text of fewer than {SHORTEST} bytes is in everything")
        forms = [raw]
        # As it stands in JSON, and in JSON that is a string in JSON: the arguments of tool calls.
        for _ in range(2):
            for plain in (True, False):
                escaped = [_escaped(form, plain) for form in forms]
                forms += [form for form in escaped if form not in forms]
        forms += [text.encode(code, "surrogatepass") for code in ("utf-16-le", "utf-16-be")]
        self._forms = sorted(forms, key=len, reverse=True)
        self._mark = next(mark for mark in _MARKS if not any(form in mark for form in forms))
        self.longest = len(self._forms[0])

    def is_in(self, content: bytes) -> bool:
        """Whether the text stands in these bytes, in whatever form."""
        return any(form in content for form in self._forms)

    def without(self, content: bytes) -> bytes:
        """The bytes with a mark in its place."""
        for form in self._forms:
            content = content.replace(form, self._mark)
        return content

    def masked(self, content: bytes) -> bytes:
        """The bytes with as many others in its place."""
        for form in self._forms:
            content = content.replace(form, b"*" * len(form))
        return content


def _escaped(form: bytes, plain: bool) -> bytes:
    text = form.decode("utf-8", "surrogatepass")
    return json.dumps(text, ensure_ascii=plain)[1:-1].encode("utf-8", "surrogatepass")
