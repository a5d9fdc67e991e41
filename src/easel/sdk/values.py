"""Values of examples as JSON: arrays, pictures and dataclasses beside numbers and words."""

from __future__ import annotations

import base64
import dataclasses
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from easel.errors import InvalidInput

LARGEST_PICTURE = 1_400_000
"""What one request holds, in base64."""
LARGEST_SIDE = 768
"""More than three times of what any network of the zoo looks at."""
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


def light(value: Any) -> Any:
    """A photograph too large for a request, shrunk to more than any network looks at; every other one as it is."""
    if not isinstance(value, Path | bytes | bytearray):
        return value
    size = value.stat().st_size if isinstance(value, Path) else len(value)
    if size <= LARGEST_PICTURE or (isinstance(value, Path) and value.suffix.lower() not in PICTURES):
        return value
    try:
        from PIL import Image, ImageOps
    except ImportError:
        return value
    try:
        with Image.open(value if isinstance(value, Path) else io.BytesIO(value)) as opened:
            opened.draft(None, (2 * LARGEST_SIDE, 2 * LARGEST_SIDE))
            picture = ImageOps.exif_transpose(opened)
            picture.thumbnail((LARGEST_SIDE, LARGEST_SIDE))
            out = io.BytesIO()
            picture.save(out, "PNG" if picture.mode in ("L", "LA", "P", "RGBA") else "JPEG", quality=92)
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        name = value if isinstance(value, Path) else "the picture"
        raise InvalidInput(f"{name} cannot be read as a picture: {error}") from None
    return out.getvalue()


def _array(value: Any) -> Any:
    """Writes an array without importing NumPy: what has a dtype can turn itself into little-endian bytes."""
    if value.dtype.kind not in "fiub":
        return to_wire(value.tolist())
    kind = "<u1" if value.dtype.itemsize == 1 and value.dtype.kind in "ub" else "<f4"
    return {
        "$array": base64.b64encode(value.astype(kind).tobytes()).decode(),
        "kind": kind,
        "shape": list(value.shape),
    }
