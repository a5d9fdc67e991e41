"""The experience that comes with the package: one JSON file, read once."""

from __future__ import annotations

import json
import logging
from functools import cache
from pathlib import Path

from easel.schedule.experience import Experience

log = logging.getLogger("easel.experience")
PACKAGED = Path(__file__).with_name("experience.json")


def read_experience(path: Path = PACKAGED) -> Experience:
    """What the file holds; none, with a warning in the log, where it is missing or broken."""
    try:
        return Experience.from_json(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError:
        log.warning("no experience at %s: candidates begin with hand-set promises", path)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        log.warning(
            "the experience at %s cannot be read (%s): candidates begin with hand-set promises", path, error
        )
    return Experience()


@cache
def packaged_experience() -> Experience:
    """The package's own experience."""
    return read_experience()


def write_experience(experience: Experience, path: Path) -> None:
    """Replaces the file; the old one stays whole until the new one is."""
    lines = ",\n".join(json.dumps(one.to_json(), separators=(",", ":")) for one in experience.sets)
    part = path.with_name(path.name + ".part")
    part.write_text(
        f'{{"version":{Experience().to_json()["version"]},"sets":[\n{lines}\n]}}\n', encoding="utf-8"
    )
    part.replace(path)
