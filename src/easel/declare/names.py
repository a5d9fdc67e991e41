"""Names that people give things. Two kinds: a slug stands in addresses, a label is only shown."""

from __future__ import annotations

import re
import unicodedata

from easel.errors import InvalidInput

_SLUG = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?")


def slug(value: str, what: str) -> str:
    """A name that may stand in a URL and in a folder: 1 to 64 of letters, digits, `.`, `_` and `-`."""
    if not _SLUG.fullmatch(value) or ".." in value:
        raise InvalidInput(
            f"{what} {_shown(value)} is not a valid name: use 1 to 64 letters, digits, '.', '_' or '-', "
            "beginning with a letter or digit, without '..' and without a '.' at the end"
        )
    return value


def label(value: str, what: str) -> str:
    """A name that is only shown: 1 to 100 printable characters of any script, no slash, no control character.

    Returned in NFC, so that two spellings of one name are one name.
    """
    text = unicodedata.normalize("NFC", value).strip()
    if not 1 <= len(text) <= 100:
        raise InvalidInput(f"{what} must have 1 to 100 characters, not {len(text)}")
    bad = next((c for c in text if unicodedata.category(c)[0] == "C" or c in "/\\"), None)
    if bad is not None:
        raise InvalidInput(f"{what} {_shown(value)} contains {bad!r}: use no slash or control character")
    return text


def _shown(value: str) -> str:
    return ascii(value if len(value) <= 40 else value[:40] + "…")
