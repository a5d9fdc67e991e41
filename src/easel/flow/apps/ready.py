"""Whether an app can learn, by which candidates, measured how, in whose name."""

from __future__ import annotations

import json
from functools import lru_cache

from easel.declare.parse import parse_program
from easel.declare.roles import Role
from easel.flow.experience.laws import with_experienced_costs
from easel.ids import TokenId
from easel.match.candidate import Candidate
from easel.match.metrics import metric_for
from easel.match.propose import Choices, propose_candidates
from easel.match.summary import DataSummary
from easel.match.templates import match_program
from easel.records.app import App, ExampleCounts
from easel.records.identity import Caller, Project, User
from easel.records.queue import Owner
from easel.store import identity
from easel.store.engine import Tx

STILL_VALID = 0.8
"""A result counts as long as it was found on this share of the examples that are switched on now."""


def candidates_of(app: App) -> tuple[Candidate, ...]:
    """The candidates of an app, from its program and the summary of what it was fed."""
    if app.summary is None:
        return ()
    told = json.dumps(dict(app.summary), sort_keys=True)
    return _candidates(app.program, told, app.rates_inside, app.vector_size)


@lru_cache(maxsize=4096)
def _candidates(program: str, summary: str, rates_inside: bool, vectors: int) -> tuple[Candidate, ...]:
    choices = Choices(rates_inside, vectors)
    told = DataSummary(**json.loads(summary))
    return with_experienced_costs(propose_candidates(parse_program(program), told, choices), told)


def metric_of(app: App) -> str:
    """Returns the app's own metric, or the usual one of its task."""
    return _metric(app.program, app.metric)


@lru_cache(maxsize=4096)
def _metric(program: str, metric: str | None) -> str:
    return metric_for(match_program(parse_program(program)).task, metric)[0]


def lacking(app: App, counts: ExampleCounts) -> str | None:
    """What an app needs before it can learn: two examples on in each of two classes, or four of numbers."""
    if app.summary is None:
        return "examples to learn from"
    only = str(app.summary.get("only", ""))
    if only:
        return f"examples that differ in it: so far all have {only[:80]}, and folds follow that column"
    same = str(app.summary.get("answer", ""))
    if same:
        return f"examples whose answers differ: so far all are {same[:80]}, and there is nothing to predict"
    if set(counts.on) <= {""}:
        enough, what = counts.total_on >= 4, "four examples"
    else:
        enough = sum(count >= 2 for count in counts.on.values()) >= 2
        what = "two examples each of at least two classes"
    if enough:
        return None
    there = ", ".join(f"{count} {name}".strip() for name, count in sorted(counts.on.items())[:5]) or "none"
    return f"{what} (switched on now: {there})"


def owner_of(tx: Tx, app: App) -> Caller | None:
    """Returns in whose name the app's trials run; None, and so no trials, once the owner has left the project."""
    found = identity.acting(tx, app.project_id, app.user_id)
    return None if found is None else _platform_for(*found)


def callers_of_members(tx: Tx) -> dict[Owner, Caller]:
    """Returns in whose name trials run, for all members of all projects at once."""
    return {key: _platform_for(*found) for key, found in identity.all_acting(tx).items()}


def _platform_for(user: User, project: Project, role: Role) -> Caller:
    return Caller(user, TokenId("tok_platform"), project, role)
