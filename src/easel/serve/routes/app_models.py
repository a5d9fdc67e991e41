"""The models of an app: infer, report, export, generated programs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from easel.declare.generate import generate
from easel.declare.parse import parse_program
from easel.declare.verbs import Verb
from easel.flow.apps.export import Form, export_model
from easel.flow.apps.infer import served
from easel.flow.apps.look import candidate_name, find_app
from easel.flow.apps.ready import metric_of
from easel.flow.apps.report import findings_of
from easel.flow.words.findings import findings_told
from easel.serve.access import Member, QuickMember, State, acts, quick_member
from easel.serve.answers import answer_own
from easel.serve.quick import QuickRoute
from easel.serve.router import Router
from easel.serve.routes.apps import Name
from easel.serve.state import app_state
from easel.wire import app as wire
from easel.wire.app_report import Findings
from easel.wire.model import whole_schema

router = Router(prefix="/api/v1/projects/{project}/apps/{name}", tags=["apps"])


@router.post(
    "/infer",
    response_model=wire.Answers,
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": whole_schema(wire.Infer)}},
        }
    },
)
@acts(Verb.RUN)
async def infer_objects(request: Request, caller: QuickMember, name: Name) -> Response:
    """Through the best model so far, or the pinned one, with its name, version and validation score."""
    state = app_state(request)
    return await answer_own(state, caller, name, await request.body())


QUICK = (QuickRoute(router, infer_objects, quick_member),)


@router.get("/report", response_model=wire.Report)
def model_report(state: State, caller: Member, name: Name) -> wire.Report:
    """Confusion matrix or residuals, training curves and, once asked for, the findings about the model that answers."""
    app, best = served(state.lake, caller, name)
    models = state.model_files
    about = models.json(state.lake, caller, best.model_set or "", "report.json") or {}
    looked = findings_of(state.lake, models, caller, name)
    found = looked.found
    return wire.Report(
        candidate=candidate_name(best),
        model=best.model_set or "",
        metric=metric_of(app),
        quality=best.quality or 0.0,
        findings=None if found is None else Findings(**found, told=findings_told(found)),
        job=looked.job,
        job_state=looked.state,
        **about,
    )


@router.get(
    "/export",
    response_class=Response,
    responses={200: {"content": {"application/zip": {}}, "description": "The model with a runnable example"}},
)
def export(
    state: State,
    caller: Member,
    name: Name,
    form: Annotated[
        Form, Query(description="onnx; native: safetensors or skops; auto: onnx where it can be")
    ] = "onnx",
) -> Response:
    """The model that answers, as a zip archive with a runnable example."""
    file, data = export_model(state.lake, state.model_files, caller, name, form)
    return Response(
        data, media_type="application/zip", headers={"Content-Disposition": f'attachment; filename="{file}"'}
    )


@router.get("/client", response_model=wire.GeneratedFiles)
def client_sources(state: State, caller: Member, name: Name, request: Request) -> wire.GeneratedFiles:
    """Stand-alone programs feed, refine, infer and a typed Python module; the token stays outside."""
    with state.store.read() as tx:
        app = find_app(tx, caller, name)
    address = str(request.base_url).rstrip("/")
    project = caller.project.name if caller.project else ""
    return wire.GeneratedFiles(files=generate(parse_program(app.program), app.name, app.id, project, address))
