"""What a reporting job runs on a device: a candidate examined on the examples of its input file set."""

from __future__ import annotations

import json
import time
from typing import Any

from easel.declare.parse import parse_program
from easel.flow.apps.trial import LearningContext, read_examples
from easel.flow.words.findings import FINDINGS
from easel.match.candidate import Candidate
from easel.match.encode.images import looks_at
from easel.match.findings import examine
from easel.match.train import Conditions

__trials__ = ("report",)


def report(place: LearningContext) -> dict[str, Any]:
    """Leave the findings in the output. Arguments: `program`, `candidate`, `metric`, `seed`, `budget_s`, `off`,
    `vectors` as in a trial.
    """
    wanted = place.arguments
    program = parse_program(wanted["program"])
    candidate = Candidate.from_json(wanted["candidate"])
    digests, folds, examples = read_examples(program, place, looks_at(candidate))
    vectors = wanted.get("vectors")
    conditions = Conditions(
        seed=int(wanted["seed"]),
        budget_s=float(wanted["budget_s"]),
        clock=time.monotonic,
        metric=wanted.get("metric"),
        embeddings=None if vectors is None else place.input / str(vectors).lstrip("/"),
    )
    found = examine(candidate, program, examples, folds, digests, conditions)
    (place.output / FINDINGS).write_text(json.dumps({**found, "examples": len(digests)}), encoding="utf-8")
    return {"held_out": found["held_out"], "score": found["score"], "metric": found["metric"]}
