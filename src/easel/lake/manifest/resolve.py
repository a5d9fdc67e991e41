"""The algebra of file-set creation: several sources of entries become one, or the conflict is named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from heapq import merge
from itertools import groupby, repeat

from easel.errors import Conflict
from easel.lake.manifest.node import Entry

_SHOWN = 10


class Rank(IntEnum):
    """The more precisely a source names a file, the more it counts.

    So `['/@HotpotQA', '/data/train.json']` updates a file of the set, while two sets that disagree conflict.
    """

    FILE_SET = 0
    FOLDER = 1
    FILE = 2


@dataclass(frozen=True, slots=True)
class ManifestSource:
    """Entries in the order of their paths, as one reference named them."""

    label: str
    rank: Rank
    entries: Iterable[Entry]


def union(sources: list[ManifestSource]) -> Iterator[Entry]:
    """All entries by path, each once. Two versions of one file from sources of equal rank are a Conflict."""
    if len(sources) == 1:
        yield from sources[0].entries
        return
    conflicts: list[str] = []
    labelled = [zip(source.entries, repeat(source)) for source in sources]
    for path, group in groupby(merge(*labelled, key=lambda pair: pair[0].path), lambda pair: pair[0].path):
        found = list(group)
        top = max(source.rank for _, source in found)
        entry, source = next(pair for pair in found if pair[1].rank == top)
        other = next((p for p in found if p[1].rank == top and p[0].version != entry.version), None)
        if other is not None:
            conflicts.append(
                f"{path} is version {entry.version} in {source.label} "
                f"and {other[0].version} in {other[1].label}"
            )
            if len(conflicts) >= _SHOWN:
                break
        elif not conflicts:
            yield entry
    if conflicts:
        raise Conflict(
            "a file set cannot hold two versions of one file: "
            + "; ".join(conflicts)
            + ". Name the file itself to choose one.",
            conflicts=conflicts,
        )
