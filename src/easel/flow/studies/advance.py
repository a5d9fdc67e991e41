"""What the service loop does for studies: note what ended, end what is hopeless or over budget, start what is next.

Only observations and pending points are kept. A suggestion depends on them alone, so it is computed outside any
transaction and used only if the study's revision is still the one for which it was made; whoever is killed between
the two is asked again and says the same.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from easel.declare.study import StudySpec
from easel.errors import Conflict, EaselError, QuotaExhausted, TryLater
from easel.flow.jobs.control import kill_job
from easel.flow.jobs.people import Owners
from easel.flow.jobs.submit import submit_job
from easel.flow.lake.upload import Lake
from easel.flow.price.billing import anything_to_bill, bill_ended
from easel.flow.studies.giving_up import why_give_up
from easel.flow.studies.measure import (
    BUDGET_SPENT,
    HOPELESS,
    curve,
    measured,
    outcome_of,
    running_spend,
    seconds_for,
    whole_of,
)
from easel.flow.studies.point import SLICE_FROM, EarlierPoint, earlier_of, fraction_of, job_for
from easel.flow.studies.sample import sample_for
from easel.ids import JobId
from easel.records.attempt import EndReason
from easel.records.decision import StartTrial, decision_json
from easel.records.job import TERMINAL, Job, JobState
from easel.records.study import (
    Finished,
    PointOutcome,
    Recommendation,
    StoredStudy,
    StudyPoint,
    StudyState,
    Suggestion,
)
from easel.store import job_logs, jobs, studies
from easel.store.engine import Store, Tx
from easel.store.stored_job import StoredJob
from easel.tune.curves import hopeless
from easel.tune.report import with_predictions
from easel.tune.tuner import Tuner

log = logging.getLogger("easel.studies")
_NOTES_AT_ONCE = 20
MOST_POINTS = 2000
"""The models' time grows with the cube of this, and everybody's loop waits for it."""
LEAST_S = 1.0
"""A run that the budget would cut off within a second is not worth starting, nor a limit that a job can have."""


def tuner_of(study: StoredStudy, points: Sequence[StudyPoint]) -> Tuner:
    """The study as it stands: ended points in the order in which they were told, running ones pending."""
    spec = study.spec
    told = sorted((p for p in points if p.told is not None), key=lambda p: p.told or 0)
    pending = {p.number: p.point for p in points if p.outcome is None}
    return Tuner.resume(
        spec.space,
        spec.goal,
        spec.strategy,
        [p.observation for p in told],
        pending,
        seed=spec.seed,
        options=spec.options,
        earlier=study.earlier,
    )


# What ended. -------------------------------------------------------------------------------------------------


def settle(tx: Tx, over: Sequence[JobId]) -> int:
    """Points whose jobs are over become observations; how many did."""
    while anything_to_bill(tx):  # what a run cost is known once it is billed
        bill_ended(tx)
    ended = _over(tx, frozenset(over))
    for study, points in ended:
        for point, job in points:
            _settle(tx, study, point, job)
        studies.touch(tx, study)
    return sum(len(points) for _, points in ended)


def _over(tx: Tx, among: frozenset[JobId]) -> list[tuple[StoredStudy, list[tuple[StudyPoint, Job]]]]:
    running = [p for p in studies.running_points(tx) if p.job_id in among]
    rows = jobs.rows(tx, [p.job_id for p in running if p.job_id is not None], lock=False)
    found: dict[str, list[tuple[StudyPoint, Job]]] = {}
    for point in running:
        row = rows.get(str(point.job_id))
        if row is not None and JobState(row.state) in TERMINAL:
            found.setdefault(point.study_id, []).append((point, jobs.job_of(row)))
    return [(studies.by_id(tx, study_id), points) for study_id, points in found.items()]


def _settle(tx: Tx, study: StoredStudy, point: StudyPoint, job: Job) -> None:
    outcome = outcome_of(job, study.spec)
    values = measured(tx, study.spec, point.point, job)
    reached = job.spec.environment.variables.get(SLICE_FROM)
    if reached is not None:
        before = earlier_of(study.spec, point.point, studies.points(tx, study.id), float(reached))
        values = values if before is None else whole_of(values, before.seconds, before.cost)
    reason = _reason(tx, study.spec, job, outcome, values)
    if not studies.end_point(tx, study.id, point.number, values, outcome, reason):
        return
    body = {"name": study.name, "number": point.number, "outcome": outcome.value, "job": job.id}
    tx.emit("study.point", study.id, project_id=study.project_id, body=body)


def _reason(
    tx: Tx, spec: StudySpec, job: Job, outcome: PointOutcome, values: Mapping[str, float]
) -> str | None:
    """Why a point failed or what of the goal it did not measure, with the last line that its job printed."""
    missing = [name for name in spec.goal.quantities if name not in values]
    if outcome is PointOutcome.FAILED:
        said = job_logs.last_line(tx, job.id, job.attempt)
        return f"{job.reason}: {said[:300]}" if said else job.reason
    if outcome is PointOutcome.COMPLETED and missing:
        said = job_logs.last_line(tx, job.id, job.attempt)
        end = f"its log ends with: {said[:300]}" if said else "its log is empty"
        return f"it did not measure {', '.join(missing)}; {end}"
    return job.reason


def note_recommendations(store: Store) -> int:
    """What each study recommended after each of its points, for the picture of money against quality."""
    with store.read() as tx:
        waiting = [(study, studies.points(tx, study.id)) for study in studies.with_unnoted(tx)]
    noted = 0
    for study, points in waiting:
        told = sorted((p for p in points if p.told is not None), key=lambda p: p.told or 0)
        for i, point in enumerate(told):
            if point.spent is None and noted < _NOTES_AT_ONCE:
                tuner = tuner_of(study, told[: i + 1])
                best = recommend(tuner)
                with store.write() as tx:
                    studies.note_best(tx, study.id, point.number, tuner.state.spent, best)
                noted += 1
    return noted


def recommend(tuner: Tuner) -> dict[str, Any] | None:
    """The recommendation as JSON, with predictions whatever the strategy; None where its models break."""
    try:
        found = tuner.recommend()
        return None if found is None else plain_recommendation(with_predictions(tuner.state, found))
    except Exception:  # what cannot be predicted must not keep a study, or everybody's, from going on
        log.exception("a recommendation could not be made")
        return None


def plain_recommendation(found: Recommendation) -> dict[str, Any]:
    """Returns the recommendation as JSON, without what is no number."""
    observed = found.observed
    return {
        "point": dict(found.point),
        "predicted": {name: asdict(e) for name, e in found.predicted.items() if math.isfinite(e.median)},
        "probability": found.probability,
        "observed": None if observed is None else {k: v for k, v in observed.items() if math.isfinite(v)},
    }


# What must not go on. ----------------------------------------------------------------------------------------


def stop_runs(store: Store) -> int:
    """End runs that outlive their study's budget, or whose curves are hopeless; how many were told to end."""
    with store.read() as tx:
        doomed = _doomed(tx)
    if not doomed:
        return 0
    with store.write() as tx:
        owners = Owners(tx)
        for study, job_id, reason in sorted(doomed, key=lambda each: each[1]):  # locked in this order
            caller = owners.caller(study.project_id, study.user_id)
            kill_job(tx, caller, job_id, reason, EndReason.BY_STUDY)
    return len(doomed)


def _doomed(tx: Tx) -> list[tuple[StoredStudy, str, str]]:
    found = []
    for study in studies.by_state(tx, StudyState.RUNNING):
        points = studies.points(tx, study.id)
        rows = jobs.rows(tx, [p.job_id for p in points if p.job_id is not None])
        running = [p for p in points if p.outcome is None and _is_going(rows, p)]
        if not running:
            continue
        state = tuner_of(study, points).state
        over = state.spent + running_spend(tx, study.spec, running) >= study.spec.goal.budget.amount
        count = study.spec.goal.budget.kind.value == "count"
        for point in running:
            if over and not count:
                found.append((study, str(point.job_id), BUDGET_SPENT))
            elif _is_hopeless(tx, study.spec, points, point, rows):
                found.append((study, str(point.job_id), HOPELESS))
    return found


def _is_going(rows: Mapping[str, StoredJob], point: StudyPoint) -> bool:
    row = rows.get(str(point.job_id))
    return row is not None and JobState(row.state) not in TERMINAL and not row.kill_requested


def _is_hopeless(
    tx: Tx, spec: StudySpec, points: Sequence[StudyPoint], mine: StudyPoint, rows: Mapping[str, StoredJob]
) -> bool:
    """Compared with points at the same fidelity only: less data gives a lower curve, not a worse point."""
    watched = spec.curve
    if watched is None:
        return False
    level = _level(spec, mine)
    own = curve(tx, jobs.job_of(rows[str(mine.job_id)]), watched.quantity)
    if len(own) < 2 or watched.reached(own.values()):
        return False
    others = [
        curve(tx, jobs.job_of(rows[str(p.job_id)]), watched.quantity)
        for p in points
        if p is not mine and p.outcome is not None and p.job_id in rows and _level(spec, p) == level
    ]
    return hopeless(own, [c for c in others if c], larger_is_better=watched.larger_is_better)


def _level(spec: StudySpec, point: StudyPoint) -> tuple[Any, ...]:
    return tuple(point.point[d.name] for d in spec.space.fidelities)


# What comes next. --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadyStudy:
    """A study with its next point. `sample` is the file set that its job reads in place of the whole input."""

    study: StoredStudy
    points: tuple[StudyPoint, ...]
    suggestion: Suggestion
    sample: str | None


def prepare(lake: Lake, study: StoredStudy, points: Sequence[StudyPoint]) -> ReadyStudy | Finished | None:
    """Returns the next point, suggested outside any transaction; None without room for one."""
    running = sum(p.outcome is None for p in points)
    if running >= study.spec.workers:
        return None
    try:
        return _prepare(lake, study, points)
    except (QuotaExhausted, TryLater):
        return None
    except EaselError as error:
        return Finished(f"it could not go on: {error.message}")
    except Exception as error:  # everybody shares this loop: one study's trouble is its own
        log.exception("the strategy of study %s broke", study.id)
        return Finished(f"its strategy {study.spec.strategy} broke ({type(error).__name__}: {error})")


def _prepare(lake: Lake, study: StoredStudy, points: Sequence[StudyPoint]) -> ReadyStudy | Finished:
    with lake.store.read() as tx:
        caller = Owners(tx).caller(study.project_id, study.user_id)
        spent = running_spend(tx, study.spec, [p for p in points if p.outcome is None])
    if len(points) >= MOST_POINTS:
        return Finished(f"a study holds at most {MOST_POINTS:,} points; a new one may start warm from it")
    hopeless_study = why_give_up(study.spec.goal, points)
    if hopeless_study is not None:
        return Finished(hopeless_study)
    tuner = tuner_of(study, points)
    if spent > 0 and tuner.state.left - spent <= 0:
        return Finished("the budget is spent once the running points end")
    answer = tuner.ask()
    if isinstance(answer, Finished):
        return answer
    share = fraction_of(study.spec, answer.point)
    sample = None if share is None else sample_for(lake, caller, study, share)
    return ReadyStudy(study, tuple(points), answer, sample)


def finish(store: Store, study: StoredStudy, reason: str) -> None:
    with store.write() as tx:
        _finish(tx, study, reason)


def _finish(tx: Tx, study: StoredStudy, reason: str) -> None:
    if studies.touch(tx, study, state=StudyState.FINISHED.value, reason=reason):
        body = {"name": study.name, "reason": reason}
        tx.emit("study.finished", study.id, project_id=study.project_id, body=body)


def _goes_on_from(tx: Tx, ready: ReadyStudy) -> EarlierPoint | None:
    """The slice before, with the set that holds its checkpoint; None where that is gone: the point begins anew."""
    found = earlier_of(ready.study.spec, ready.suggestion.point, ready.points)
    row = None if found is None else jobs.rows(tx, [found.job_id], lock=False).get(found.job_id)
    if found is None or row is None or row.output_set is None:
        return None
    return replace(found, checkpoint=row.output_set)


def start_point(tx: Tx, ready: ReadyStudy, decision: StartTrial, turn: int) -> Job:
    """The suggestion becomes a job, and a running point of the study, unless the study changed meanwhile."""
    study, suggestion = ready.study, ready.suggestion
    if studies.by_id(tx, study.id).revision != study.revision:
        raise Conflict(f"study {study.name} was changed at the same moment")
    left = math.inf if suggestion.limit is None else suggestion.limit
    limit = seconds_for(tx, study.spec, suggestion.point, left)
    limit = None if limit is None else min(max(limit, LEAST_S), 366 * 86400.0)
    before = _goes_on_from(tx, ready)
    number, point = suggestion.number, suggestion.point
    spec = job_for(study.spec, study.name, number, point, ready.sample, limit, before)
    job = submit_job(tx, Owners(tx).caller(study.project_id, study.user_id), spec)
    if not studies.touch(tx, study):
        raise Conflict(f"study {study.name} was changed at the same moment")
    kept = decision_json(decision)
    studies.add_point(tx, study.id, suggestion.number, suggestion.point, job.id, suggestion.why, kept)
    body = {"name": study.name, "number": suggestion.number, "job": job.id, "turn": turn}
    tx.emit("study.point_started", study.id, project_id=study.project_id, body=body)
    return job
