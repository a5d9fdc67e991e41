"""Values as JSON carries them: beside numbers, words and lists, arrays and pictures.

{"$array": base64, "kind": "<f4", "shape": [28, 28, 1]}
{"$picture": base64 of a JPEG, PNG, …, "fit": "stretch"}
{"$file": "/apps/flowers/…/rose/1.jpg", "fit": "pad"}        a picture that lies in the lake
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from easel.declare.example_file import given_name
from easel.match.examples import ExampleError

Files = Callable[[str], bytes]
"""Reads the file of a path."""

_KINDS = ("<u1", "<f4", "<f8", "<i2", "<i4", "<i8", "|u1", "|i1", "|b1")
MAX_ARRAY = 2**28


@dataclass(frozen=True)
class Picture:
    """The bytes of a picture file. `path` says where it lies, if it need not be stored once more."""

    data: bytes
    fit: str = "stretch"
    path: str | None = None

    @cached_property
    def content(self) -> str:
        """The hash of its bytes."""
        return hashlib.blake2b(self.data, digest_size=16).hexdigest()


def no_files(path: str) -> bytes:
    raise ExampleError(f"{path}: files of the lake cannot be named here")


def open_value(value: Any, files: Files = no_files) -> Any:
    """JSON → arrays and pictures wherever it says so; everything else as it is."""
    if isinstance(value, Mapping):
        if "$array" in value:
            return _array(value)
        if "$picture" in value:
            return Picture(_bytes(value["$picture"], "$picture"), _fit(value))
        if "$file" in value:
            path = str(value["$file"])
            return Picture(files(path), _fit(value), path)
        return {str(key): open_value(part, files) for key, part in value.items()}
    if isinstance(value, bytes | bytearray | memoryview):
        raise _no_part(value)
    return [open_value(part, files) for part in value] if isinstance(value, list | tuple) else value


def _no_part(value: Any) -> ExampleError:
    return ExampleError(f"{type(value).__name__} cannot be part of an example")


def plain_value(value: Any) -> Any:
    """The inverse of `open_value`: arrays and pictures as JSON, spelled alike for equal values."""
    if isinstance(value, Picture):
        if value.path is not None:
            return {"$file": value.path, "fit": value.fit}
        return {"$picture": base64.b64encode(value.data).decode(), "fit": value.fit}
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value, dtype=np.float32)
        whole = (
            array.size and float(array.min()) >= 0 and float(array.max()) <= 255 and (array % 1 == 0).all()
        )
        kind = "<u1" if whole else "<f4"
        data = base64.b64encode(array.astype(kind).tobytes()).decode()
        return {"$array": data, "kind": kind, "shape": list(array.shape)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): plain_value(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(part) for part in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise _no_part(value)


def spelled(value: Any) -> Any:
    """Like `plain_value`, with a picture named by its content: what two pairs are compared by."""
    if isinstance(value, Picture):
        return {"$picture": value.content, "fit": value.fit}
    if isinstance(value, Mapping):
        return {str(key): spelled(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [spelled(part) for part in value]
    return plain_value(value)


def preview(value: Any, most: int = 200) -> str:
    """What a list shows of a value, in one line."""
    text = _shown(value).replace("\0", "␀")
    return text if len(text) <= most else text[: most - 1] + "…"


def _shown(value: Any) -> str:
    if isinstance(value, Picture):
        return given_name(value.path) if value.path else f"a picture of {len(value.data):,} bytes"
    if isinstance(value, np.ndarray) and value.size > 8:
        shape = " × ".join(str(side) for side in value.shape if side != 1)
        known = value[np.isfinite(value)]
        span = f" from {known.min():.3g} to {known.max():.3g}" if known.size else ""
        return f"{shape} numbers{span}"
    if isinstance(value, np.ndarray):
        return str(value.tolist())
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_shown(part)}" for key, part in list(value.items())[:20])
    if isinstance(value, list | tuple):
        if len(value) > 12:
            return f"{len(value)} values: {', '.join(_shown(part) for part in value[:4])}, …"
        return f"[{', '.join(_shown(part) for part in value)}]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _fit(value: Mapping[str, Any]) -> str:
    fit = str(value.get("fit", "stretch"))
    if fit not in ("stretch", "pad", "crop"):
        raise ExampleError(f"fit: {fit[:40]!r} is none of stretch, pad, crop")
    return fit


def _bytes(text: Any, where: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise ExampleError(f"{where}: expected base64") from None


def _array(value: Mapping[str, Any]) -> np.ndarray:
    kind, shape = value.get("kind", "<f4"), value.get("shape")
    data = _bytes(value["$array"], "$array")
    if kind not in _KINDS:
        raise ExampleError(f"$array: the kind {str(kind)[:20]!r} is none of {', '.join(_KINDS)}")
    if not isinstance(shape, list) or not all(isinstance(s, int) and 0 <= s < MAX_ARRAY for s in shape):
        raise ExampleError("$array: the shape is a list of whole numbers")
    flat = np.frombuffer(data[: len(data) // np.dtype(kind).itemsize * np.dtype(kind).itemsize], dtype=kind)
    size = 1
    for side in shape:
        size *= side
    if flat.size != size or flat.nbytes != len(data):
        raise ExampleError(f"$array: {len(data):,} bytes do not fill {' × '.join(map(str, shape))} of {kind}")
    return flat.astype(np.float32).reshape(shape)
