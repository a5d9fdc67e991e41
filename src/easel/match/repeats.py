"""Repeated folds where examples are few: the same examples dealt to other folds, by the rules of the first time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from easel.declare.program import Program
from easel.match.canonical import near_key
from easel.match.examples import Example
from easel.match.roles import group_folds, role_value
from easel.match.split import FOLDS, Round, assign_folds, rounds, turns_of
from easel.match.summary import strata

LEAST_DIFFERENT = 2 * FOLDS
"""So many examples that are no near-duplicates of each other. With fewer, whole kinds of them would stand in one fold,
and a further turn would judge models that never saw such a thing."""


def repeated_rounds(
    program: Program, examples: Sequence[Example], folds: Sequence[int], seed: int
) -> tuple[Round, ...]:
    """Returns the rounds of further turns; none where there is enough, where time orders the folds, or where nearly
    all examples are alike.

    Classes stay evenly spread; near-duplicates and groups share a fold in every turn.
    """
    used = len(set(folds))
    if turns_of(len(examples)) == 1 or used < 2 or program.column_of("time") is not None:
        return ()
    keys = [near_key(one) for one in examples]
    if keys.count(None) + len({*keys} - {None}) < LEAST_DIFFERENT:
        return ()
    turns = range(1, turns_of(len(examples)))
    return tuple(
        chain.from_iterable(_turn(program, examples, min(used, FOLDS), seed, turn) for turn in turns)
    )


def _turn(program: Program, examples: Sequence[Example], used: int, seed: int, turn: int) -> list[Round]:
    order = np.random.default_rng((seed, turn)).permutation(len(examples)).tolist()
    dealt = [examples[i] for i in order]
    if program.column_of("group") is not None:
        found = group_folds([role_value(program, "group", one) for one in dealt], large_first=False)
    else:
        found = assign_folds(strata(program, dealt), near=[near_key(one) for one in dealt])
    folds = [0] * len(examples)
    for place, fold in zip(order, found, strict=True):
        folds[place] = fold % used
    return [Round(one.train, one.validate, turn) for one in rounds(folds)]
