"""Studies: declare, start, stop, look, recommend; their models, their history as CSV."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Path, Query, Response
from fastapi.responses import PlainTextResponse

from easel.declare.verbs import Verb
from easel.flow.jobs.known_secrets import check_secrets
from easel.flow.studies import declare, look, verify
from easel.records.study import StoredStudy
from easel.records.study import StudyPoint as StoredPoint
from easel.serve.access import Member, State, acts
from easel.serve.creating import Create
from easel.serve.paging import Paging
from easel.serve.pool_mirror import looking
from easel.serve.router import Router
from easel.serve.routes.terms import shown_terms
from easel.serve.state import Tx
from easel.wire import study as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1/projects/{project}/studies", tags=["studies"])

Name = Annotated[str, Path(max_length=64, examples=["digits"])]
Dimension = Annotated[str, Query(max_length=100, examples=["learning_rate"])]


def shown(found: look.StudySummary) -> wire.Study:
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
        measured=_measured(found.measured),
        why=found.why,
        status=found.account.status.value,
        waiting=found.account.sentence,
        terms=shown_terms(found.terms),
        created_at=study.created_at,
        changed_at=study.changed_at,
        **plain,
    )


def _recommendation(best: Mapping[str, Any] | None) -> wire.Recommendation | None:
    return None if best is None else wire.Recommendation.model_validate(dict(best))


def _measured(best: look.BestMeasured | None) -> wire.BestMeasured | None:
    if best is None:
        return None
    return wire.BestMeasured(
        number=best.point.number,
        point=dict(best.point.point),
        values={name: v if math.isfinite(v) else None for name, v in best.point.values.items()},
        job_id=best.point.job_id,
        output_set=best.output_set,
        missed=list(best.missed),
    )


def _point(study: StoredStudy, point: StoredPoint, points: Sequence[StoredPoint]) -> wire.StudyPoint:
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
        why=look.why(point, points),
        told=point.told,
        spent=point.spent,
        best=_recommendation(point.best),
        started_at=point.started_at,
        ended_at=point.ended_at,
    )


@router.post("", response_model=wire.Study, status_code=201)
@acts(Verb.RUN)
def create_study(state: State, caller: Member, create: Create, body: wire.CreateStudy) -> Response:
    """Declare a study and, unless told otherwise, start it."""
    spec = body.spec()
    check_secrets(state.secrets, caller.project_id, [spec.job])

    def make(tx: Tx) -> wire.Study:
        blobs = state.lake.blobs
        made = declare.create_study(
            tx, caller, body.name, spec, earlier=body.earlier, start=body.start, blobs=blobs
        )
        return shown(look.standing(tx, made))

    return create(caller, body, make)


@router.post("/file", response_model=wire.Study, status_code=201)
@acts(Verb.RUN)
def create_from_file(state: State, caller: Member, create: Create, body: wire.StudyFile) -> Response:
    """The same from the text of a study's YAML file."""
    asked = wire.study_fields(body.text)
    spec = asked.spec()
    check_secrets(state.secrets, caller.project_id, [spec.job])

    def make(tx: Tx) -> wire.Study:
        made = declare.create_study(
            tx,
            caller,
            asked.name,
            spec,
            earlier=asked.earlier,
            start=asked.start and body.start,
            blobs=state.lake.blobs,
        )
        return shown(look.standing(tx, made))

    return create(caller, body, make)


@router.get("", response_model=Page[wire.Study])
def list_studies(state: State, caller: Member, page: Paging) -> Page[wire.Study]:
    """The project's studies, newest first."""
    with state.store.read() as tx:
        found = look.list_studies(tx, caller, page)
        with looking(state, tx) as keeper:
            items = [shown(look.standing(tx, s, keeper)) for s in found.items]
    return Page(items=items, next_cursor=found.next_cursor)


@router.get("/{name}", response_model=wire.Study)
def show_study(state: State, caller: Member, name: Name) -> wire.Study:
    """One study: its state, what it has spent, what it recommends now."""
    with state.store.read() as tx, looking(state, tx) as keeper:
        return shown(look.standing(tx, look.find_study(tx, caller, name), keeper))


@router.post("/{name}/start", response_model=wire.Study)
@acts(Verb.RUN)
def start_study(state: State, caller: Member, name: Name, body: wire.StartStudy) -> wire.Study:
    """Start it, or go on with one that was stopped or has ended; repeating changes nothing."""
    with state.store.write() as tx:
        return shown(look.standing(tx, declare.start_study(tx, caller, name, budget=body.budget)))


@router.post("/{name}/stop", response_model=wire.Study)
@acts(Verb.RUN, even_archived=True)
def stop_study(state: State, caller: Member, name: Name) -> wire.Study:
    """Stop a study: no new points, running ones are ended. It can be started again."""
    with state.store.write() as tx:
        return shown(look.standing(tx, declare.stop_study(tx, caller, name)))


@router.post("/{name}/verify", response_model=wire.StudyPoint, status_code=201)
@acts(Verb.RUN)
def verify_best(state: State, caller: Member, create: Create, name: Name, body: wire.VerifyStudy) -> Response:
    """Run the recommended point, so that what is predicted becomes measured."""
    with state.store.read() as tx:
        wanted = verify.to_verify(tx, caller, name)

    def make(tx: Tx) -> wire.StudyPoint:
        started = verify.start_verifying(tx, caller, wanted)
        return _point(wanted.study, started, look.points_of(tx, wanted.study))

    return create(caller, body, make)


@router.delete("/{name}", status_code=204)
@acts(Verb.RUN)
def delete_study(state: State, caller: Member, name: Name) -> None:
    """Forget it. Its jobs and file sets stay in the history."""
    with state.store.write() as tx:
        declare.delete_study(tx, caller, name)


@router.get("/{name}/points", response_model=wire.StudyPoints)
def study_points(
    state: State,
    caller: Member,
    name: Name,
    after: Annotated[int, Query(ge=-1, lt=2**31, description="Only points with larger numbers")] = -1,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> wire.StudyPoints:
    """List its points in the order in which they were started, each with what was recommended after it."""
    with state.store.read() as tx:
        study = look.find_study(tx, caller, name)
        points = look.points_of(tx, study)
    found = [p for p in points if p.number > after][:limit]
    return wire.StudyPoints(items=[_point(study, point, points) for point in found])


@router.get("/{name}/front", response_model=wire.StudyPoints)
def study_front(state: State, caller: Member, name: Name) -> wire.StudyPoints:
    """Points that no other beats in the objective and in everything that the goal lists under `also`."""
    with state.store.read() as tx:
        study = look.find_study(tx, caller, name)
        points = look.points_of(tx, study)
        found = look.front(look.observed(tx, study), points)
    return wire.StudyPoints(items=[_point(study, point, points) for point in found])


@router.get("/{name}/slice", response_model=wire.DimensionProfile)
def study_slice(state: State, caller: Member, name: Name, dimension: Dimension) -> wire.DimensionProfile:
    """What the models predict along one dimension, the others held at the recommendation."""
    with state.store.read() as tx:
        tuner = look.observed(tx, look.find_study(tx, caller, name))
    found = look.slice_along(tuner, dimension)
    of = {q: [wire.Estimate.model_validate(e) for e in estimates] for q, estimates in found.of.items()}
    return wire.DimensionProfile(
        dimension=dimension,
        fixed=dict(found.fixed),
        values=list(found.values),
        of=of,
        probability=found.probability,
    )


@router.get("/{name}/region", response_model=wire.Region)
def study_region(state: State, caller: Member, name: Name, x: Dimension, y: Dimension) -> wire.Region:
    """How likely the constraints hold over two dimensions, and the predicted objective."""
    with state.store.read() as tx:
        tuner = look.observed(tx, look.find_study(tx, caller, name))
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


@router.get("/{name}/importances", response_model=wire.Importances)
def study_importances(
    state: State,
    caller: Member,
    name: Name,
    quantity: Annotated[
        str | None, Query(max_length=100, description="Without it, what the study is for", examples=["cost"])
    ] = None,
) -> wire.Importances:
    """How much each dimension matters for a quantity, as the study's models predict it."""
    with state.store.read() as tx:
        study = look.find_study(tx, caller, name)
        tuner = look.observed(tx, study)
    found = look.importances(tuner, quantity)
    return wire.Importances(
        quantity=quantity or study.spec.goal.quantity,
        items=[wire.DimensionShare(dimension=one.dimension, share=one.share) for one in found],
    )


@router.get("/{name}/csv", response_class=PlainTextResponse)
def export_csv(state: State, caller: Member, name: Name) -> PlainTextResponse:
    """Every measured point as a row."""
    with state.store.read() as tx:
        text = look.export_csv(tx, look.find_study(tx, caller, name))
    return PlainTextResponse(text, media_type="text/csv; charset=utf-8")


@router.post("/{name}/csv", response_model=wire.Imported)
def import_csv(state: State, caller: Member, name: Name, body: wire.CsvText) -> wire.Imported:
    """Take in results found elsewhere; those known already are left out."""
    with state.store.write() as tx:
        return wire.Imported(new=look.import_csv(tx, caller, name, body.csv))
