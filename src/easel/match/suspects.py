"""Examples that are most likely mislabelled, by cross-validated loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from easel.declare.program import Program
from easel.match.candidate import Candidate
from easel.match.examples import Example
from easel.match.propose import propose_candidates
from easel.match.registry import is_network
from easel.match.roles import own_folds, without_time
from easel.match.split import FOLDS, assign_folds, rounds
from easel.match.summary import strata, summarise
from easel.match.train import Conditions, train


@dataclass(frozen=True)
class Suspect:
    """`position` in the list of examples; `loss` under a model that did not see it: larger is stranger."""

    position: int
    loss: float


def judge(program: Program, examples: Sequence[Example]) -> Candidate:
    """The candidate that ranks: the quickest of the promising ones, without a network where there is one."""
    found = propose_candidates(program, summarise(program, examples))
    plain = [candidate for candidate in found if not is_network(candidate)]
    return (plain or list(found))[0]


def rank_suspects(
    program: Program, examples: Sequence[Example], conditions: Conditions, candidate: Candidate | None = None
) -> list[Suspect]:
    """All examples, most suspicious first; every example is judged by a model trained without its fold."""
    folds = np.asarray(own_folds(program, examples, assign_folds(strata(program, examples))))
    # A wrong label is found by what came later as well.
    program = without_time(program)
    chosen = candidate or judge(program, examples)
    losses = np.full(len(examples), np.nan)
    if len(rounds(folds.tolist())) > 1:
        losses = train(chosen, program, examples, folds.tolist(), conditions).losses
    else:
        for fold in range(FOLDS):
            # The fold to be judged takes the place of fold 0, which is the one that is held out.
            turned = (folds - fold) % FOLDS
            found = train(chosen, program, examples, turned.tolist(), conditions).losses
            losses[folds == fold] = found[folds == fold]
    order = np.argsort(-np.nan_to_num(losses, nan=-np.inf), kind="stable")
    return [Suspect(int(i), float(losses[i])) for i in order if np.isfinite(losses[i])]
