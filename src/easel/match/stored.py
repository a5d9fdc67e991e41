"""Fed examples as bytes: one JSON line each, arrays as base64, spelled alike for equal pairs."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from easel.match.read import ExampleError

_ARRAY = "$array"


@dataclass(frozen=True)
class StoredPair:
    """A pair as it was fed. `digest` names it for good: equal pairs have equal digests."""

    digest: str
    fold: int
    input: Any
    output: Any


def digest_of(raw_input: Any, raw_output: Any) -> str:
    """Of the canonical spelling of a pair; what deduplication compares."""
    spelled = json.dumps([_plain(raw_input), _plain(raw_output)], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(spelled.encode(), digest_size=16).hexdigest()


def write_lines(pairs: Iterable[StoredPair]) -> bytes:
    lines = (
        json.dumps({"digest": p.digest, "fold": p.fold, "input": _plain(p.input), "output": _plain(p.output)})
        for p in pairs
    )
    return "".join(line + "\n" for line in lines).encode()


def read_lines(data: bytes) -> Iterator[StoredPair]:
    for line in data.splitlines():
        row = json.loads(line)
        yield StoredPair(row["digest"], row["fold"], _rich(row["input"]), _rich(row["output"]))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        array = np.ascontiguousarray(value, dtype=np.float32)
        whole = (
            array.size and float(array.min()) >= 0 and float(array.max()) <= 255 and (array % 1 == 0).all()
        )
        kind = "<u1" if whole else "<f4"
        data = base64.b64encode(array.astype(kind).tobytes()).decode()
        return {_ARRAY: data, "kind": kind, "shape": list(array.shape)}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise ExampleError(f"{type(value).__name__} cannot be part of an example")


def _rich(value: Any) -> Any:
    if isinstance(value, dict):
        if _ARRAY in value:
            flat = np.frombuffer(base64.b64decode(value[_ARRAY]), dtype=value["kind"])
            return flat.astype(np.float32).reshape(value["shape"])
        return {key: _rich(part) for key, part in value.items()}
    return [_rich(part) for part in value] if isinstance(value, list) else value
