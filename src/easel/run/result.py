"""The result that a command leaves in `.easel-result.json`: written by user code, read by the agent, never trusted."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from easel.declare.unicode import storable
from easel.errors import InvalidInput
from easel.run.untrusted_files import read_regular

NAME = ".easel-result.json"
MAX_BYTES = 1 << 20
MAX_DEPTH = 32
REFUSED = "easel_result_refused"
"""The key under which a refused result says why."""


def read_result(folder: Path) -> dict[str, Any] | None:
    """The result as an object; None where there is none. One that cannot be kept becomes the reason for it."""
    try:
        text = read_regular(folder / NAME, MAX_BYTES)
        if text is None:
            return None
        value = plain_json(json.loads(text.decode(), parse_constant=lambda _: None))
    except InvalidInput as error:
        return {REFUSED: f"{error.message}: leave large results in the output folder"}
    except (ValueError, RecursionError) as error:
        return {REFUSED: f"{NAME} is not JSON: {str(error)[:200] or 'nested too deeply'}"}
    return value if isinstance(value, dict) else {"value": value}


def plain_json(value: Any, depth: int = 0) -> Any:
    """What databases and JSON can hold: finite numbers (others become None), valid Unicode, bounded nesting."""
    if depth > MAX_DEPTH:
        raise InvalidInput(f"{NAME} is nested more than {MAX_DEPTH} deep")
    if isinstance(value, dict):
        return {storable(key): plain_json(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list):
        return [plain_json(each, depth + 1) for each in value]
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**63:
        return float(value) if abs(value) < 2**1023 else None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
