"""Page tokens: where the next page begins. Opaque to clients."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import TypeVar

from easel.flow.mlflow.errors import invalid

T = TypeVar("T")


def token_of(offset: int) -> str:
    return base64.b64encode(json.dumps({"offset": offset}).encode()).decode()


def offset_of(token: str | None) -> int:
    if not token:
        return 0
    try:
        offset = json.loads(base64.b64decode(token, validate=True))["offset"]
    except (ValueError, TypeError, KeyError, binascii.Error, RecursionError) as error:
        raise invalid("Invalid page token, could not base64-decode") from error
    if not isinstance(offset, int) or isinstance(offset, bool) or not 0 <= offset < 2**31:
        raise invalid(f"Invalid page token, parsed offset {offset!r}")
    return offset


def page_of(items: Sequence[T], token: str | None, most: int) -> tuple[Sequence[T], str | None]:
    """A page of a list that is at hand."""
    start = offset_of(token)
    return items[start : start + most], token_of(start + most) if start + most < len(items) else None
