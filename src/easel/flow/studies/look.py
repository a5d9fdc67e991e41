"""How a study stands, what it recommends, what its models believe; its history as CSV, and a history taken in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from easel.declare.page import PageRequest
from easel.errors import InvalidInput
from easel.flow.apps.look import names_of, reasons_of
from easel.flow.studies.advance import MOST_POINTS, recommend, tuner_of
from easel.flow.studies.declare import may_change
from easel.flow.why import first_of, of_study
from easel.flow.words.reasons import NEXT_POINT, plain
from easel.records.identity import Caller
from easel.records.standing import Account
from easel.records.study import PointOutcome, StoredStudy, StudyPoint
from easel.records.tenant import Terms
from easel.store import jobs, studies, tenants
from easel.store.engine import Tx
from easel.store.paging import Page
from easel.tenancy.pool_view import PoolView
from easel.tune import importance, report
from easel.tune.exchange.csv import from_csv, to_csv
from easel.tune.importance import DimensionShare
from easel.tune.recommend import nearest
from easel.tune.tuner import Tuner


@dataclass(frozen=True)
class BestMeasured:
    """The best point that was really run, with its job and what that left; `missed` names constraints that it breaks.

    Where nothing meets the constraints this is the point that comes nearest.
    """

    point: StudyPoint
    output_set: str | None
    missed: tuple[str, ...]


@dataclass(frozen=True)
class StudySummary:
    """`best` is the recommendation of the moment as JSON; `measured` is the best of what was run; `why` is the policy's
    reason for the newest point."""

    study: StoredStudy
    points: tuple[StudyPoint, ...]
    spent: float
    best: Mapping[str, Any] | None
    why: str | None
    account: Account
    terms: Terms
    measured: BestMeasured | None = None


def find_study(tx: Tx, caller: Caller, name: str) -> StoredStudy:
    """Returns a study of the caller's project; NotFound where it has none of that name."""
    return studies.find(tx, caller.project_id, name)


def names(tx: Tx, caller: Caller) -> list[str]:
    """Returns the names of all studies of the caller's project."""
    return studies.names_in(tx, caller.project_id)


def list_studies(tx: Tx, caller: Caller, page: PageRequest) -> Page[StoredStudy]:
    """Returns the project's studies, newest first."""
    return studies.list_studies(tx, caller.project_id, page)


def points_of(tx: Tx, study: StoredStudy) -> list[StudyPoint]:
    """Returns the points of a study in the order in which they were started."""
    return studies.points(tx, study.id)


def standing(tx: Tx, study: StoredStudy, pool: PoolView | None = None) -> StudySummary:
    """Returns the study as it stands; without the pool nothing is known of who goes first."""
    points = tuple(studies.points(tx, study.id))
    told = sorted((p for p in points if p.told is not None), key=lambda p: p.told or 0)
    if told and told[-1].spent is not None:
        spent, best = told[-1].spent, told[-1].best
    else:
        tuner = tuner_of(study, told)
        spent, best = tuner.state.spent, recommend(tuner) if told else None
    newest = points[-1] if points else None
    names = names_of(tx, study.project_id)
    first = None if pool is None else first_of(pool)
    account = of_study(tx, pool, study, points, names, first)
    return StudySummary(
        study,
        points,
        spent,
        best,
        None if newest is None else why(newest, points),
        account,
        tenants.terms(tx, study.id),
        best_measured(tx, study, told),
    )


def best_measured(tx: Tx, study: StoredStudy, told: Sequence[StudyPoint]) -> BestMeasured | None:
    """Returns the best measured point; None while no point measured the objective."""
    found = nearest(tuner_of(study, told).state)
    if found is None:
        return None
    point = next(point for point in told if point.number == found.observation.number)
    made = None
    if point.job_id is not None:
        made = next((job.output_set for job in jobs.find_many(tx, study.project_id, [point.job_id])), None)
    return BestMeasured(point, made, tuple(str(constraint) for constraint in found.missed))


def outcome_counts(points: Sequence[StudyPoint]) -> dict[str, int]:
    counts = {"running": sum(p.outcome is None for p in points)}
    return counts | {o.value: sum(p.outcome is o for p in points) for o in PointOutcome}


def why(point: StudyPoint, points: Sequence[StudyPoint]) -> str | None:
    """Why the pool served this study then; None for points that were taken in from a file."""
    if point.decision is None:
        return None
    told = any(p.ended_at is not None and p.ended_at <= point.started_at for p in points)
    reasons = reasons_of(point.decision, {})
    return plain(reasons, NEXT_POINT, "study", best=reasons.best_so_far if told else None, past=True)


def details(point: StudyPoint, names: Mapping[str, str]) -> str | None:
    """The numbers behind `why`."""
    return None if point.decision is None else reasons_of(point.decision, names).numbers()


def observed(tx: Tx, study: StoredStudy) -> Tuner:
    """The study without what still runs."""
    return tuner_of(study, [p for p in studies.points(tx, study.id) if p.told is not None])


def around(tuner: Tuner) -> dict[str, Any]:
    """Where slices are taken: at the recommendation, or at the newest point while there is none."""
    if not tuner.observations:
        raise InvalidInput("nothing was measured yet: the models have nothing to show")
    found = tuner.recommend()
    return dict(found.point if found is not None else tuner.observations[-1].point)


def slice_along(tuner: Tuner, dimension: str) -> report.DimensionProfile:
    return report.slice_along(tuner.state, dimension, around(tuner))


def region_over(tuner: Tuner, x: str, y: str) -> report.Region:
    return report.region_over(tuner.state, x, y, around(tuner))


def importances(tuner: Tuner, quantity: str | None) -> list[DimensionShare]:
    """Returns how much each dimension matters for a quantity, the study's objective where none is named."""
    return importance.importances(tuner.state, quantity)


def front(tuner: Tuner, points: Sequence[StudyPoint]) -> list[StudyPoint]:
    """Points that no other beats in everything, the best objective first."""
    numbers = [o.number for o in report.front(tuner.state)]
    known = {p.number: p for p in points}
    return [known[n] for n in numbers if n is not None]


def export_csv(tx: Tx, study: StoredStudy) -> str:
    told = sorted((p for p in studies.points(tx, study.id) if p.told is not None), key=lambda p: p.told or 0)
    return to_csv([p.observation for p in told], study.spec.space)


def import_csv(tx: Tx, caller: Caller, name: str, text: str) -> int:
    """Results found elsewhere become points of the study; how many were new.

    Their numbers are given anew. A point that the study knows with the same values is left out, so that the same file
    taken in twice adds nothing.
    """
    study = may_change(tx, caller, name)
    found = from_csv(text, study.spec.space)
    points = studies.points(tx, study.id)
    if len(points) + len(found) > MOST_POINTS:
        raise InvalidInput(f"a study holds at most {MOST_POINTS:,} points, and these would be more")
    known = {(_key(p.point), _key(p.values)) for p in points}
    number = max((p.number for p in points), default=-1) + 1
    added = 0
    for line, o in enumerate(found, start=2):
        try:
            point = study.spec.space.check(o.point)
        except InvalidInput as error:
            raise InvalidInput(f"line {line}: {error.message}") from None
        if (_key(point), _key(o.values)) in known:
            continue
        known.add((_key(point), _key(o.values)))
        studies.add_point(tx, study.id, number, point, None, {"reason": "taken in from a file"})
        studies.end_point(tx, study.id, number, o.values, o.outcome, None)
        number, added = number + 1, added + 1
    if added:
        studies.touch(tx, study)
        body = {"name": study.name, "points": added}
        tx.emit("study.imported", study.id, project_id=study.project_id, actor=caller.user.id, body=body)
    return added


def _key(values: Mapping[str, Any]) -> str:
    return repr(sorted(values.items()))
