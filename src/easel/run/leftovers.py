"""What dead processes left on this machine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

_OURS = ("run", "cache")


def stale_mounts(home: Path, mounts: Iterable[str]) -> list[Path]:
    """Mounts below the home's `run` and `cache`, from lines of `/proc/self/mounts`, the innermost first.

    Easel mounts only in namespaces of its own, which go with their processes: one that shows here is left over.
    """
    real = home.resolve()
    places = (Path(line.split(" ")[1].encode().decode("unicode_escape")) for line in mounts if " " in line)
    found = {place for place in places if any(place.is_relative_to(real / name) for name in _OURS)}
    return sorted(found, reverse=True)
