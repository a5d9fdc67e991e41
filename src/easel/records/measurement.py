"""What a trial found out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Measurement:
    """`quality` is larger-is-better in the named metric, on examples that the model was not trained on.

    `validated_on` counts those examples, `rounds` how many models were validated (1: a held-out split, more:
    k-fold), `stopped` says in words why training ended.
    """

    metric: str
    quality: float
    seconds: float
    trained_on: int
    validated_on: int
    rounds: int
    stopped: str
