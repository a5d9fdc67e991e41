"""Run candidates on public sets with the code that a trial runs, and note scores, seconds and properties."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from easel.declare.parse import parse_program
from easel.declare.program import Program
from easel.errors import EaselError
from easel.flow.experience.sources import Source
from easel.match.candidate import Candidate
from easel.match.examples import Example
from easel.match.properties import properties_of
from easel.match.propose import propose_candidates
from easel.match.read import read_example
from easel.match.scores import as_scores
from easel.match.split import assign_folds
from easel.match.summary import strata, summarise, why_not_ready
from easel.match.templates import match_program
from easel.schedule.experience import DataProperties, Outcome

ESTIMATES_ERR = 3.0


@dataclass(frozen=True)
class PreparedSource:
    """A set, read: what would be proposed for it and what it is like."""

    source: Source
    program: Program
    examples: tuple[Example, ...]
    folds: tuple[int, ...]
    candidates: tuple[Candidate, ...]
    properties: DataProperties

    @property
    def template(self) -> str:
        return match_program(self.program).name


def prepare(source: Source) -> PreparedSource | None:
    """The set, ready to be learned; nothing where it cannot be (one class only)."""
    text, pairs = source.read()
    program = parse_program(text)
    order = np.random.default_rng(0).permutation(len(pairs))[: source.most]
    examples = tuple(read_example(program, *pairs[i]) for i in order)
    if why_not_ready(program, examples) is not None:
        return None
    folds = tuple(assign_folds(strata(program, examples)))
    candidates = propose_candidates(program, summarise(program, examples))
    properties = DataProperties(**properties_of(program, examples))
    return PreparedSource(source, program, examples, folds, candidates, properties)


@lru_cache(maxsize=2)
def _prepared(source: Source) -> PreparedSource | None:
    return prepare(source)


def wanted(
    prepared: PreparedSource, done: Mapping[str, Any], most_s: float, skip: Sequence[str] = ()
) -> list[Candidate]:
    """The candidates still to run, cheapest first: none whose estimate is far above `most_s`, no family of `skip`."""
    far = ESTIMATES_ERR * most_s
    open_ = [
        c for c in prepared.candidates if c.name not in done and c.family not in skip and c.cost_s <= far
    ]
    return sorted(open_, key=lambda c: c.cost_s)


def run_one(source: Source, candidate: Candidate, budget_s: float) -> Outcome | None:
    """One trial in processor seconds; nothing where the budget cut it short, a NaN score where it failed."""
    from easel.match.loop import Diverged
    from easel.match.train import Conditions, train

    prepared = _prepared(source)
    if prepared is None:
        return None
    began = time.process_time()
    conditions = Conditions(seed=0, budget_s=budget_s, clock=time.process_time)
    try:
        trained = train(candidate, prepared.program, prepared.examples, prepared.folds, conditions)
    except (EaselError, Diverged, ValueError, ArithmeticError):
        return Outcome(np.nan, time.process_time() - began)
    if trained.measurement.stopped == "out of time":
        return None
    score = as_scores(trained.measurement.metric, {"it": trained.measurement.quality})["it"]
    return Outcome(score, time.process_time() - began)
