"""Answers that a browser saves under a name of its own."""

from __future__ import annotations

from urllib.parse import quote


def saved_as(name: str) -> dict[str, str]:
    """Headers that make a browser save the answer as `name`, whatever characters are in it (RFC 6266)."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "_" for c in name)
    return {
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"
    }
