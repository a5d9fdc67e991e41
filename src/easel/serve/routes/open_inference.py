"""The Open Inference Protocol (version 2) beside our own form: the base address of its clients is a project's."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request, Response

from easel.declare.parse import parse_program
from easel.declare.verbs import Verb
from easel.errors import Conflict, NotFound
from easel.flow.apps.infer import served
from easel.serve.access import Member, QuickMember, State, acts, anyone, quick_member
from easel.serve.answers import answer_open
from easel.serve.quick import QuickRoute
from easel.serve.router import Router
from easel.serve.routes.apps import Name
from easel.serve.routes.operations import readyz
from easel.serve.state import AppState, app_state
from easel.serve.tensors import describe
from easel.version import __version__
from easel.wire import open_inference as wire
from easel.wire.model import whole_schema

router = Router(prefix="/api/v1/projects/{project}/v2", tags=["answers"])
health = Router(prefix="/v2", tags=["answers"])

Version = Annotated[str, Path(max_length=20, examples=["3"])]


@health.get("/health/live", dependencies=[anyone])
def live() -> wire.Live:
    """The server is alive."""
    return wire.Live(live=True)


@health.get("/health/ready", dependencies=[anyone])
def ready(state: State) -> wire.Ready:
    """The server takes questions; otherwise 503."""
    readyz(state)
    return wire.Ready(ready=True)


@health.get("", dependencies=[anyone])
def server_metadata() -> wire.ServerMetadata:
    """Which server this is."""
    return wire.ServerMetadata(name="easel", version=__version__, extensions=[])


@router.get("/health/live")
def project_live(caller: Member) -> wire.Live:
    """The server is alive, for clients whose base address is a project's."""
    return wire.Live(live=True)


@router.get("/health/ready")
def project_ready(state: State, caller: Member) -> wire.Ready:
    """The server takes questions; otherwise 503."""
    return ready(state)


@router.get("/models/{name}", response_model=wire.ModelMetadata)
def model_metadata(state: State, caller: Member, name: Name) -> wire.ModelMetadata:
    """The inputs and outputs of an app's model, and which version answers."""
    return _metadata(state, caller, name)


@router.get("/models/{name}/versions/{version}", response_model=wire.ModelMetadata)
def version_metadata(state: State, caller: Member, name: Name, version: Version) -> wire.ModelMetadata:
    """The same of one version: the number of its model set."""
    return _metadata(state, caller, name, version)


def _metadata(state: AppState, caller: Member, name: str, version: str | None = None) -> wire.ModelMetadata:
    app, best = served(state.lake, caller, name, version)
    number = (best.model_set or "").rpartition(":")[2]
    about: dict[str, Any] = describe(parse_program(app.program))
    return wire.ModelMetadata(name=app.name, versions=[number], platform="easel", **about)


@router.get("/models/{name}/ready", response_model=wire.ModelReady)
def model_ready(state: State, caller: Member, name: Name) -> Response | wire.ModelReady:
    """Whether an app has a model that answers; otherwise 400 with the same body."""
    return _ready(state, caller, name)


@router.get("/models/{name}/versions/{version}/ready", response_model=wire.ModelReady)
def version_ready(state: State, caller: Member, name: Name, version: Version) -> Response | wire.ModelReady:
    """The same of one version."""
    return _ready(state, caller, name, version)


def _ready(
    state: AppState, caller: Member, name: str, version: str | None = None
) -> Response | wire.ModelReady:
    try:
        served(state.lake, caller, name, version)
    except (Conflict, NotFound) as error:
        if isinstance(error, NotFound) and version is None:
            raise
        body = wire.ModelReady(name=name, ready=False).model_dump_json()
        return Response(body, 400, media_type="application/json")
    return wire.ModelReady(name=name, ready=True)


_ASKED = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": whole_schema(wire.TensorRequest)}},
    }
}


@router.post("/models/{name}/infer", response_model=wire.TensorAnswer, openapi_extra=_ASKED)
@acts(Verb.RUN)
async def infer_tensors(request: Request, caller: QuickMember, name: Name) -> Response:
    """Tensors through the model that answers."""
    return await answer_open(app_state(request), caller, name, None, await request.body())


@router.post(
    "/models/{name}/versions/{version}/infer", response_model=wire.TensorAnswer, openapi_extra=_ASKED
)
@acts(Verb.RUN)
async def infer_tensors_by_version(
    request: Request, caller: QuickMember, name: Name, version: Version
) -> Response:
    """Tensors through this version of an app's models, whichever answers else."""
    return await answer_open(app_state(request), caller, name, version, await request.body())


QUICK = (
    QuickRoute(router, infer_tensors, quick_member),
    QuickRoute(router, infer_tensors_by_version, quick_member),
)
