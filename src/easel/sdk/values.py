"""Values of examples as JSON: arrays, pictures and dataclasses beside numbers and words."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from easel.errors import InvalidInput

PICTURES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp")


def to_wire(value: Any) -> Any:
    """NumPy arrays and their like as `$array`; bytes, and paths of picture files, as `$picture`."""
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, bytes | bytearray):
        return {"$picture": base64.b64encode(bytes(value)).decode()}
    if isinstance(value, Path):
        if value.suffix.lower() not in PICTURES:
            raise InvalidInput(f"{value} is not a picture; known endings are {', '.join(PICTURES)}")
        return {"$picture": base64.b64encode(value.read_bytes()).decode()}
    if isinstance(value, Mapping):
        return {str(key): to_wire(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_wire(part) for part in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: to_wire(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if hasattr(value, "dtype") and hasattr(value, "tobytes") and len(value.shape) > 0:
        return _array(value)
    if hasattr(value, "tolist"):
        return to_wire(value.tolist())
    raise InvalidInput(f"{type(value).__name__} cannot be part of an example")


def _array(value: Any) -> Any:
    """Without importing NumPy: what has a dtype can turn itself into little-endian bytes."""
    if value.dtype.kind not in "fiub":
        return to_wire(value.tolist())
    kind = "<u1" if value.dtype.itemsize == 1 and value.dtype.kind in "ub" else "<f4"
    return {
        "$array": base64.b64encode(value.astype(kind).tobytes()).decode(),
        "kind": kind,
        "shape": list(value.shape),
    }
