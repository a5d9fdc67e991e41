"""Fed examples as bytes: one JSON line each, spelled alike for equal pairs."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from easel.match.raw import Files, no_files, open_value, plain_value, spelled


@dataclass(frozen=True)
class StoredPair:
    """A pair as it was fed. `digest` names it for good: equal pairs have equal digests."""

    digest: str
    fold: int
    input: Any
    output: Any


def digest_of(raw_input: Any, raw_output: Any) -> str:
    """Returns the hash of what was sent: how releases before 0.2 named examples (now `canonical` does)."""
    text = json.dumps([spelled(raw_input), spelled(raw_output)], sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def write_lines(pairs: Iterable[StoredPair]) -> list[bytes]:
    """One line for each pair, each with its line end."""
    return [
        json.dumps(
            {
                "digest": pair.digest,
                "fold": pair.fold,
                "input": plain_value(pair.input),
                "output": plain_value(pair.output),
            }
        ).encode()
        + b"\n"
        for pair in pairs
    ]


Wanted = Callable[[str, int], bool]
"""Whether the pair of this digest and fold is read."""
_BEGINNING = re.compile(rb'\{"digest": "([0-9a-f]+)", "fold": (\d+), ')


def read_lines(
    data: bytes,
    files: Files = no_files,
    off: frozenset[str] = frozenset(),
    wanted: Wanted = lambda digest, fold: True,
) -> Iterator[StoredPair]:
    """The pairs that are `wanted` and not `off`: the files of the others need not be there.

    Lines begin with digest and fold, so that what is not wanted costs no more than a look.
    """
    for line in data.splitlines():
        begins = _BEGINNING.match(line)
        if begins is not None and not wanted(begins[1].decode(), int(begins[2])):
            continue
        row = json.loads(line)
        if begins is None and not wanted(row["digest"], row["fold"]):
            continue
        if row["digest"] not in off:
            yield StoredPair(
                row["digest"], row["fold"], open_value(row["input"], files), open_value(row["output"], files)
            )
