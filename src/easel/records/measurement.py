"""What a trial found out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Measurement:
    """`quality` is larger-is-better in the named metric, on examples that the model was not trained on.

    `validated_on` counts those examples, `rounds` how many models were validated (1: a held-out split, more:
    k-fold), `stopped` says in words why training ended. `error` is the sampling error of `quality` (one standard
    deviation), `baseline` what always giving the same answer scores, `scores` the quality in every metric of the task.
    """

    metric: str
    quality: float
    seconds: float
    trained_on: int
    validated_on: int
    rounds: int
    stopped: str
    error: float = 0.0
    baseline: float | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
