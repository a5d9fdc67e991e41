"""What a checking job runs on a device: every check over the examples of its input file set."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import Any

from easel.declare.parse import parse_program
from easel.errors import InvalidInput
from easel.flow.apps.trial import LearningContext, read_examples
from easel.flow.words.findings import CHECKS
from easel.match.checks import check_columns, check_drift, check_labels, check_near
from easel.match.pictures import LARGEST_SIDE
from easel.match.suspects import rank_suspects
from easel.match.templates import match_program
from easel.match.train import Conditions

__trials__ = ("check",)


def check(place: LearningContext) -> dict[str, Any]:
    """Leave what was found in the output. Arguments: `program`, `off`, `newest`: the files of the newest feed."""
    program = parse_program(place.arguments["program"])
    digests, _, examples = read_examples(program, place, LARGEST_SIDE)
    found = check_columns(program, examples, digests) + check_near(program, examples, digests)
    fresh = _newest(place)
    found += check_drift(program, examples, [digest in fresh for digest in digests])
    notes = []
    try:
        conditions = Conditions(seed=0, budget_s=300.0, clock=time.monotonic)
        ranked = rank_suspects(program, examples, conditions)
        losses = {digests[one.position]: one.loss for one in ranked}
        found += check_labels(match_program(program).task, losses)
    except InvalidInput as error:
        notes.append(f"answers were not judged: {error.message}")
    told = {"examples": len(digests), "checks": [asdict(one) for one in found], "notes": notes}
    (place.output / CHECKS).write_text(json.dumps(told), encoding="utf-8")
    return {"found": len(found), "examples": len(digests)}


def _newest(place: LearningContext) -> set[str]:
    found: set[str] = set()
    for path in place.arguments.get("newest", ()):
        file = place.input / str(path).lstrip("/")
        if file.is_file():
            lines = (json.loads(line) for line in file.read_bytes().splitlines())
            found |= {line["digest"] for line in lines}
    return found
