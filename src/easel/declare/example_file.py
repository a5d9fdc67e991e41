"""Where a picture that is an example lies in the lake: below its app, in a folder called like its class, named by its
content and by the name that it came with. Another picture of the same name never takes its place.
"""

from __future__ import annotations

import re

_LONGEST = 200
"""Bytes of the given name that are kept, its end: with the rest they are one segment of a path."""
_NAMED = re.compile(r"[0-9a-f]{24}-(?=.)")


def home_of(folder: str, path: str, digest: bytes) -> str:
    """Returns a path below the app's `folder` for a picture at `path`, whose parent is its class."""
    parent, _, name = path.rpartition("/")
    label = parent.rpartition("/")[2]
    kept = name.encode()[-_LONGEST:].decode(errors="ignore")
    return f"{folder}files/{label}/{digest.hex()[:24]}-{kept}"


def given_name(path: str) -> str:
    """The name that the picture came with."""
    return _NAMED.sub("", path.rpartition("/")[2], count=1)
