"""The timeline of a store as one page for a browser: to mail, or served live to its owner.

``export`` makes the page, ``payload`` what it holds, ``page`` the document around that. The page's
own source, in ``page/``, is HTML, CSS and JavaScript as a browser takes them.
"""

from __future__ import annotations

from snapstore.formats.html.export import REDACTED, export
from snapstore.formats.html.held import collectable, held
from snapstore.formats.html.lines import Branches, Named, branches
from snapstore.formats.html.page import page, policy
from snapstore.formats.html.parts import Redaction
from snapstore.formats.html.payload import Payload

__all__ = [
    "REDACTED",
    "Branches",
    "Named",
    "Payload",
    "Redaction",
    "branches",
    "collectable",
    "export",
    "held",
    "page",
    "policy",
]
