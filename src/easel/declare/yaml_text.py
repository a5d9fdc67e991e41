"""YAML that strangers wrote: bounded in length and depth, and without aliases, before anything is built of it.

A few hundred characters of aliases stand for gigabytes, a thousand brackets end a reader's recursion, and PyYAML's own
scanner takes seconds for what libyaml takes milliseconds for.
"""

from __future__ import annotations

from typing import Any

import yaml

from easel.declare.unicode import check_unicode
from easel.errors import InvalidInput

MAX_LENGTH = 1_000_000
MAX_DEPTH = 100
_LONG = 20_000
"""From here on libyaml builds the values too: PyYAML's own reader says better what is wrong, and is slow."""


def load_yaml(text: str, loader: Any, fast_loader: Any, what: str) -> Any:
    """Returns what the text says; raises yaml.YAMLError where it is not YAML, InvalidInput where it is too much."""
    if len(text) > MAX_LENGTH:
        raise InvalidInput(f"{what} has {len(text):,} characters; {MAX_LENGTH:,} are the most")
    check_unicode(text, what)
    _check_shape(text, what)
    return yaml.load(text, loader if len(text) < _LONG else fast_loader)  # noqa: S506 - the callers' are safe ones


def _check_shape(text: str, what: str) -> None:
    """Look at the events alone: nothing is built, and nothing recurses. What is not YAML is said by the loader."""
    depth = 0
    try:
        for event in yaml.parse(text, getattr(yaml, "CBaseLoader", yaml.BaseLoader)):
            if isinstance(event, yaml.AliasEvent):
                raise InvalidInput(f"{what} has YAML aliases (*name): write the values out")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    raise InvalidInput(f"{what} nests too deeply: {MAX_DEPTH} levels are the most")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError:
        return
