"""Ensembles: when enough was tried for an app, one more trial combines what was found."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from easel.declare.parse import parse_program
from easel.errors import Denied, EaselError, QuotaExhausted
from easel.flow.apps.dossier import Dossier, Result
from easel.flow.apps.memory import to_combine
from easel.flow.apps.ready import STILL_VALID, metric_of, owner_of
from easel.flow.apps.trial_job import trial_spec
from easel.flow.jobs.submit import submit_job
from easel.flow.lake.file_set import create_in
from easel.ids import AppId
from easel.lake.paths import escape
from easel.match.candidate import Candidate
from easel.match.kinds import Task
from easel.match.templates import match_program
from easel.records.app import App, AppTrial
from easel.records.decision import Reasons, StartTrial, decision_json
from easel.records.job import Job
from easel.store import app_examples, app_trials
from easel.store.engine import Tx

log = logging.getLogger("easel.learning")
COMBINE = "easel.flow.apps.trial:combine"
FEWEST, MOST_MEMBERS = 3, 12
_NAME = "ensemble(of="
COMBINED_FOR = "combined_for"
"""Where the decision of an ensemble names the metric that its members were chosen by."""
ANSWER_S = 0.2
"""The longest that the answer of an ensemble about one object may take."""


def due(trials: Sequence[AppTrial], examples: int, metric: str) -> list[AppTrial]:
    """The members of the ensemble that is worth making now, best first; none while there is nothing new to combine.

    The first is made of three models, the next when there are twice as many. One that was combined for another metric
    does not count.
    """
    made = [trial for trial in trials if trial.candidate["family"] == "ensemble"]
    # of a trial in slices the last one counts
    fresh = list(
        {
            trial.name or str(number): trial
            for number, trial in enumerate(trials)
            if trial.quality is not None
            and trial.model_set is not None
            and trial.candidate["family"] != "ensemble"
            and trial.examples >= STILL_VALID * examples
        }.values()
    )
    if not is_worth_more(made, len(fresh), examples, metric):
        return []
    return sorted(fresh, key=lambda trial: -(trial.quality or 0.0))[:MOST_MEMBERS]


def is_worth_more(made: Sequence[AppTrial], fresh: int, examples: int, metric: str) -> bool:
    """Whether so many valid models are enough for an ensemble after those `made`; never while one is being made."""
    if any(not trial.ended for trial in made):
        return False
    before = max(
        (
            int(one.candidate["settings"]["of"])
            for one in made
            if one.examples >= STILL_VALID * examples and one.decision.get(COMBINED_FOR, metric) == metric
        ),
        default=0,
    )
    return fresh >= max(FEWEST, 2 * before)


def may_be_due(results: Sequence[Result]) -> bool:
    """Whether an app with these valid results may be due, as far as they tell: then its records are worth reading.

    One that knows nothing of its luck may have been combined for another metric.
    """
    made = [
        one.candidate
        for one in results
        if one.candidate.startswith(_NAME) and (one.luck is not None or one.quality is None)
    ]
    before = max((int(name.removeprefix(_NAME).rstrip(")") or 0) for name in made), default=0)
    return _fresh(results) >= max(FEWEST, 2 * before)


def _fresh(results: Sequence[Result]) -> int:
    """How many candidates have a model."""
    found = (one.candidate for one in results if one.quality is not None and one.model_set is not None)
    return len({name for name in found if not name.startswith(_NAME)})


def is_due(tx: Tx, one: Dossier, new: Result) -> bool:
    """Whether to read all records of an app that has just had this result, since an ensemble may be worth making now.

    Only where its results do not tell are the ensembles that it has had read, which are few.
    """
    results = [*(each for each in one.results if one.counts(each.examples)), new]
    if not may_be_due(results):
        return False
    made = app_trials.named(tx, one.id, _NAME)
    return is_worth_more(made, _fresh(results), one.counted, one.metric)


def combine_where_due(tx: Tx, app: App) -> None:
    """Submit one more trial that combines what was found, where it is due and may be submitted."""
    try:
        combine_if_due(tx, app)
    except EaselError as error:
        # It is due again when the next trial ends.
        say_why_not(app.id, str(error), isinstance(error, QuotaExhausted | Denied))


@lru_cache(maxsize=1000)
def say_why_not(app_id: AppId, why: str, owners: bool) -> None:
    """Logs why an app gets no ensemble: once, and not again at each of its results.

    A full quota or a spent budget is its `owners` matter, which an operator need not be warned of.
    """
    log.log(logging.INFO if owners else logging.WARNING, "no ensemble for app %s: %s", app_id, why)


def combine_if_due(tx: Tx, app: App, seed: int = 0) -> Job | None:
    """Submit the trial that combines what was found; its input names every member in the provenance."""
    if match_program(parse_program(app.program)).task not in (Task.CLASSIFY, Task.REGRESS):
        return None
    trials, examples = app_trials.trials(tx, app.id), app_examples.count_on(tx, app.id)
    metric = metric_of(app)
    members = due(trials, examples, metric)
    owner = owner_of(tx, app) if members else None
    if owner is None or app.examples_set is None:
        return None
    tried = (t.name for t in trials if t.quality is not None and t.candidate["family"] != "ensemble")
    count = len(set(tried))
    candidate = Candidate("ensemble", (("of", count),), cost_s=2.0, promise=0.9)
    sources = [f"/@{app.examples_set}", *(f"/@{trial.model_set}" for trial in members)]
    # Each member's trial left its result at the same path: naming one of them settles which.
    sources.append(f"/{escape(f'{app.name}-model')}/result.json@{members[0].model_set}")
    inputs = create_in(tx, owner, f"{app.name}-members", sources)
    arguments = {
        "program": app.program,
        "candidate": candidate.to_json(),
        "metric": metric,
        "seed": seed,
        "off": app_examples.off(tx, app.id),
        "answer_s": ANSWER_S,
    }
    told = [Candidate.from_json(dict(trial.candidate)) for trial in members]
    need = to_combine(tx, owner, app, told, members)
    spec = trial_spec(app, COMBINE, arguments, candidate.name, f"{app.name}-model", need)
    job = submit_job(tx, owner, replace(spec, input=str(inputs)))
    best = members[0].quality or 0.0
    reasons = Reasons("ensemble of the best models so far", best, 0.0, 0.0, candidate.cost_s, best)
    decision = StartTrial(app.id, candidate.name, 0, "any", reasons)
    kept = {**decision_json(decision), COMBINED_FOR: metric}
    app_trials.add(tx, [app.id], job.id, candidate.name, candidate.to_json(), kept, examples)
    body = {"candidate": candidate.name, "job": job.id, "why": reasons.rule}
    tx.emit("app.trial", app.id, project_id=app.project_id, actor=app.user_id, body=body)
    return job
