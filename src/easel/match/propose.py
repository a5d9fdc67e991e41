"""Program and data → the candidates, each with an estimated cost and a first guess of its promise.

A family's base settings come first; then one choice is changed at a time (learning rate, size, augmentation,
normalisation), so that every choice multiplies the candidates without the full product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log10

from easel.declare.program import Program
from easel.match.candidate import GRID, Candidate
from easel.match.family import Family, NetworkFamily, Plan, Situation, plain_cells
from easel.match.kinds import Task, TemplateKind
from easel.match.registry import all_families, families_for, family_of
from easel.match.summary import DataSummary
from easel.match.templates import match_program

READ_S = 7e-5
"""What reading one example and turning it into numbers takes."""
MOST_PLAIN_CELLS = 4096
"""Pictures and series of more numbers are not offered to table models as plain vectors."""


@dataclass(frozen=True)
class Choices:
    """What a user may decide about the candidates: learning rates as candidates of their own or, as the paper has it,
    a grid inside each trial (`rates_inside`); `vectors`: how many numbers each word of a given GloVe file has.
    """

    rates_inside: bool = False
    vectors: int = 0


def propose_candidates(
    program: Program, summary: DataSummary, choices: Choices | None = None
) -> tuple[Candidate, ...]:
    """All candidates of the template that fires, most promising per cost first."""
    template, chosen = match_program(program), choices or Choices()
    situation = Situation(template.kind, template.task, summary, chosen.vectors)
    found: dict[str, Candidate] = {}
    for family, plan in _plans(situation):
        inside = chosen.rates_inside and isinstance(family, NetworkFamily)
        found |= {c.name: c for c in _expand(family, _with_grid(plan) if inside else plan, summary)}
    return tuple(sorted(found.values(), key=_eagerness))


def _plans(situation: Situation) -> Iterator[tuple[Family, Plan]]:
    for family in families_for(situation.kind, situation.task):
        yield family, family.plan(situation)
    if (
        situation.kind in (TemplateKind.IMAGE, TemplateKind.SERIES)
        and situation.task in (Task.CLASSIFY, Task.REGRESS)
        and plain_cells(situation.summary) <= MOST_PLAIN_CELLS
    ):
        as_table = replace(situation, kind=TemplateKind.TABLE)
        for family in all_families().values():
            if family.flat and (TemplateKind.TABLE, situation.task) in family.fits:
                plan = family.plan(as_table)
                yield family, replace(plan, promise=plan.promise - 0.2)


def _with_grid(plan: Plan) -> Plan:
    """One candidate that looks for its learning rate itself in place of one for each rate."""
    if "lr" not in dict(plan.base):
        return plan
    base = tuple((key, GRID if key == "lr" else value) for key, value in plan.base)
    return Plan(plan.promise, base, tuple(other for other in plan.other if other[0] != "lr"))


def _eagerness(candidate: Candidate) -> float:
    """Ascending: quick before slow and promising before not; a tenfold cost weighs like 0.1 of promise."""
    return 0.1 * log10(max(candidate.cost_s, 0.5)) - candidate.promise


def _expand(family: Family, plan: Plan, summary: DataSummary) -> Iterator[Candidate]:
    base = dict(plan.base)
    variants = [(base, plan.promise)]
    variants += [({**base, key: value}, plan.promise - loss) for key, value, loss in plan.other]
    for settings, promise in variants:
        draft = Candidate(family.name, tuple(settings.items()), promise=promise)
        yield replace(draft, cost_s=estimate_cost(draft, summary))


def estimate_cost(candidate: Candidate, summary: DataSummary) -> float:
    """Seconds on the reference core: to read the examples, and by the family's law to learn from them; four times that
    for a grid of four learning rates."""
    once = family_of(candidate).cost(candidate, summary)
    return READ_S * summary.examples + once * (4.0 if candidate.text("lr", "") == GRID else 1.0)
