"""Studies: declare, start, stop, look, recommend; their models, their history as CSV."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import PlainTextResponse

from easel.flow.studies import declare, look
from easel.records.study import StoredStudy
from easel.records.study import StudyPoint as StoredPoint
from easel.serve.access import Here, Member
from easel.serve.creating import Create
from easel.serve.paging import Paging
from easel.store import studies
from easel.store.engine import Tx
from easel.wire import study as wire
from easel.wire.model import Page

router = APIRouter(prefix="/api/v1/projects/{project}/studies", tags=["studies"])

Name = Annotated[str, Path(max_length=64, examples=["digits"])]
Dimension = Annotated[str, Query(max_length=100, examples=["learning_rate"])]


def shown(found: look.Standing) -> wire.Study:
    study, plain = found.study, found.study.spec.to_dict()
    budget = study.spec.goal.budget
    return wire.Study(
        id=study.id,
        name=study.name,
        state=study.state.value,
        reason=study.reason,
        user_id=study.user_id,
        budget=wire.BudgetUse(kind=budget.kind.value, amount=budget.amount, spent=found.spent),
        points=look.outcome_counts(found.points),
        best=_recommendation(found.best),
        why=found.why,
        created_at=study.created_at,
        changed_at=study.changed_at,
        **plain,
    )


def _recommendation(best: Mapping[str, Any] | None) -> wire.Recommendation | None:
    return None if best is None else wire.Recommendation.model_validate(dict(best))


def _point(study: StoredStudy, point: StoredPoint, names: Mapping[str, str]) -> wire.StudyPoint:
    values = {name: v if math.isfinite(v) else None for name, v in point.values.items()}
    feasible = None if point.outcome is None else study.spec.goal.meets(point.values)
    return wire.StudyPoint(
        number=point.number,
        point=dict(point.point),
        state="running" if point.outcome is None else point.outcome.value,
        feasible=feasible,
        job_id=point.job_id,
        values=values,
        reason=point.reason,
        chosen=dict(point.why),
        why=look.why(point, names),
        told=point.told,
        spent=point.spent,
        best=_recommendation(point.best),
        started_at=point.started_at,
        ended_at=point.ended_at,
    )


@router.post("", response_model=wire.Study, status_code=201)
def create_study(caller: Member, create: Create, body: wire.CreateStudy) -> Response:
    """Declare a study and, unless told otherwise, start it."""
    spec = body.spec()

    def make(tx: Tx) -> wire.Study:
        made = declare.create_study(tx, caller, body.name, spec, earlier=body.earlier, start=body.start)
        return shown(look.standing(tx, made))

    return create(caller, body, make)


@router.post("/file", response_model=wire.Study, status_code=201)
def create_from_file(caller: Member, create: Create, body: wire.StudyFile) -> Response:
    """The same from the text of a study's YAML file."""
    asked = wire.study_fields(body.text)
    spec = asked.spec()

    def make(tx: Tx) -> wire.Study:
        made = declare.create_study(
            tx, caller, asked.name, spec, earlier=asked.earlier, start=asked.start and body.start
        )
        return shown(look.standing(tx, made))

    return create(caller, body, make)


@router.get("", response_model=Page[wire.Study])
def list_studies(here: Here, caller: Member, page: Paging) -> Page[wire.Study]:
    """The project's studies, newest first."""
    with here.store.read() as tx:
        found = studies.list_studies(tx, caller.project_id, page)
        return Page(items=[shown(look.standing(tx, s)) for s in found.items], next_cursor=found.next_cursor)


@router.get("/{name}", response_model=wire.Study)
def show_study(here: Here, caller: Member, name: Name) -> wire.Study:
    """One study: its state, what it has spent, what it recommends now."""
    with here.store.read() as tx:
        return shown(look.standing(tx, studies.find(tx, caller.project_id, name)))


@router.post("/{name}/start", response_model=wire.Study)
def start_study(here: Here, caller: Member, name: Name, body: wire.StartStudy) -> wire.Study:
    """Start it, or go on with one that was stopped or has ended; repeating changes nothing."""
    with here.store.write() as tx:
        return shown(look.standing(tx, declare.start_study(tx, caller, name, budget=body.budget)))


@router.post("/{name}/stop", response_model=wire.Study)
def stop_study(here: Here, caller: Member, name: Name) -> wire.Study:
    """No new points; running ones are ended. It can be started again."""
    with here.store.write() as tx:
        return shown(look.standing(tx, declare.stop_study(tx, caller, name)))


@router.delete("/{name}", status_code=204)
def delete_study(here: Here, caller: Member, name: Name) -> None:
    """Forget it. Its jobs and file sets stay in the history."""
    with here.store.write() as tx:
        declare.delete_study(tx, caller, name)


@router.get("/{name}/points", response_model=wire.StudyPoints)
def study_points(
    here: Here,
    caller: Member,
    name: Name,
    after: Annotated[int, Query(ge=-1, lt=2**31, description="Only points with larger numbers")] = -1,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> wire.StudyPoints:
    """Its points in the order in which they were started, each with what was recommended after it."""
    with here.store.read() as tx:
        study = studies.find(tx, caller.project_id, name)
        found = [p for p in studies.points(tx, study.id) if p.number > after][:limit]
        names = look.names_of(tx, caller.project_id)
    return wire.StudyPoints(items=[_point(study, point, names) for point in found])


@router.get("/{name}/front", response_model=wire.StudyPoints)
def study_front(here: Here, caller: Member, name: Name) -> wire.StudyPoints:
    """Points that no other beats in the objective and in everything that the goal lists under `also`."""
    with here.store.read() as tx:
        study = studies.find(tx, caller.project_id, name)
        found = look.front(look.observed(tx, study), studies.points(tx, study.id))
        names = look.names_of(tx, caller.project_id)
    return wire.StudyPoints(items=[_point(study, point, names) for point in found])


@router.get("/{name}/slice", response_model=wire.Slice)
def study_slice(here: Here, caller: Member, name: Name, dimension: Dimension) -> wire.Slice:
    """What the models predict along one dimension, the others held at the recommendation."""
    with here.store.read() as tx:
        tuner = look.observed(tx, studies.find(tx, caller.project_id, name))
    found = look.slice_along(tuner, dimension)
    of = {q: [wire.Estimate.model_validate(e) for e in estimates] for q, estimates in found.of.items()}
    return wire.Slice(
        dimension=dimension,
        fixed=dict(found.fixed),
        values=list(found.values),
        of=of,
        probability=found.probability,
    )


@router.get("/{name}/region", response_model=wire.Region)
def study_region(here: Here, caller: Member, name: Name, x: Dimension, y: Dimension) -> wire.Region:
    """How likely the constraints hold over two dimensions, and the predicted objective."""
    with here.store.read() as tx:
        tuner = look.observed(tx, studies.find(tx, caller.project_id, name))
    found = look.region_over(tuner, x, y)
    return wire.Region(
        x=x,
        y=y,
        fixed=dict(found.fixed),
        xs=list(found.xs),
        ys=list(found.ys),
        probability=found.probability,
        objective=found.objective,
    )


@router.get("/{name}/csv", response_class=PlainTextResponse)
def export_csv(here: Here, caller: Member, name: Name) -> PlainTextResponse:
    """Every measured point as a row."""
    with here.store.read() as tx:
        text = look.export_csv(tx, studies.find(tx, caller.project_id, name))
    return PlainTextResponse(text, media_type="text/csv; charset=utf-8")


@router.post("/{name}/csv", response_model=wire.Imported)
def import_csv(here: Here, caller: Member, name: Name, body: wire.CsvText) -> wire.Imported:
    """Take in results found elsewhere; those known already are left out."""
    with here.store.write() as tx:
        return wire.Imported(new=look.import_csv(tx, caller, name, body.csv))
