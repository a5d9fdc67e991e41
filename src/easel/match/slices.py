"""A trial in slices: begun, kept, and gone on with, by one interface for all families.

Networks go on by epochs, forests and boosted trees by rounds from their checkpoints; other families train anew on a
larger share of the examples, which contains the smaller one. Some of those can be stopped at least, and answer then as
well as they have learned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from easel.declare.program import Program
from easel.errors import InvalidInput
from easel.match.candidate import Candidate
from easel.match.examples import Example
from easel.match.registry import family_of
from easel.match.train import Conditions, Trained, train


@dataclass(frozen=True)
class SliceState:
    """A trial and how far it is: `reached` is the share of the whole that is done.

    What was learned lies in `conditions.checkpoints`: whoever has that folder can go on, in another process too.
    """

    candidate: Candidate
    program: Program
    examples: Sequence[Example]
    folds: Sequence[int]
    conditions: Conditions
    reached: float = 0.0
    over: bool = False


def fit_slice(state: SliceState, to: float) -> tuple[SliceState, Trained]:
    """Go on until the share `to` of the whole trial; the state after it, and a model that may serve.

    A trial that stops by itself before (nothing gets better) is over: there is no more to be had from it. One that
    gave way or ran out of time has come less far than was wanted.
    """
    if not state.reached < to <= 1.0:
        raise InvalidInput(
            f"the slice ends at {to:g}, which must lie above {state.reached:g} and not above 1"
        )
    if state.over:
        raise InvalidInput(f"the trial of {state.candidate.name} is over")
    trained = train(
        state.candidate, state.program, state.examples, state.folds, replace(state.conditions, until=to)
    )
    reached = trained.learned.reached
    return replace(state, reached=reached, over=reached >= 1.0), trained


def can_stop(candidate: Candidate) -> bool:
    """Whether a slice of the candidate that is asked to give way does so soon, with what it has learned by then."""
    return family_of(candidate).stops


def goes_on(candidate: Candidate) -> bool:
    """Whether a trial of the candidate continues where it was stopped, from a checkpoint."""
    return family_of(candidate).continues
