"""The application: state, middleware, routes, and a complete OpenAPI document."""

from __future__ import annotations

import re
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from anyio import to_thread
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, APIWebSocketRoute
from pydantic.warnings import UnsupportedFieldAttributeWarning

from easel.errors import Misconfigured
from easel.flow.apps.infer import Models
from easel.flow.authenticate import Level, whose
from easel.flow.operate.measure import measure
from easel.flow.workers.seal import Seal
from easel.lake.blobs.signing import Signer
from easel.serve import documents, pages, problems
from easel.serve.access import Access, Anyone, secret_in
from easel.serve.audit import open_audit
from easel.serve.exchange_batcher import ExchangeBatcher
from easel.serve.exec_client import ExecClient
from easel.serve.failed_logins import FailedLogins
from easel.serve.fair import FairMiddleware, UserLimits
from easel.serve.known_users import KnownUsers
from easel.serve.lake import BLOBS, Addresses, blob_origins, open_lake, signing_key
from easel.serve.metrics import Metrics
from easel.serve.middleware import RequestMiddleware, page_policy
from easel.serve.mlflow.artifacts import STREAMED
from easel.serve.mlflow.quick import QuickMlflow
from easel.serve.model_pool import ModelPool, PoolOptions
from easel.serve.quick import QuickRoutes
from easel.serve.recent import Recent
from easel.serve.routes import all_routers, app_models, open_inference
from easel.serve.routes.operations import free_bytes, is_ready
from easel.serve.routes.worker import PREFIX as WORKER
from easel.serve.settings import UNDERSTOOD, Settings
from easel.serve.socket_middleware import SocketMiddleware
from easel.serve.state import AppState
from easel.serve.worker_visits import WorkerVisits
from easel.store.engine import Store
from easel.version import __version__
from easel.wire.model import Problem

# FastAPI ignores this while it declares a route; models that are built when they are first used come later than that.
warnings.filterwarnings("ignore", category=UnsupportedFieldAttributeWarning)

UNLIMITED: tuple[str, ...] = (f"{BLOBS}/", f"{WORKER}/")
"""Path prefixes whose bodies stream or are many reports, and have their own limits."""


def create_app(settings: Settings, store: Store) -> FastAPI:
    metrics = Metrics()
    app = FastAPI(
        title="Easel",
        version=__version__,
        summary="A shared studio for machine learning: many people, one pool of devices.",
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        generate_unique_id_function=lambda route: route.name,
        responses={"default": {"model": Problem, "description": "What went wrong and what to do"}},
    )
    failed_logins = FailedLogins(store.clock, settings.failed_logins_per_minute)
    known_users = KnownUsers()
    lake = open_lake(settings, store)
    key = signing_key(settings.folder)
    addresses = Addresses(lake, Signer(key))
    batcher = ExchangeBatcher(store, Seal(key))
    visits = WorkerVisits(batcher.call)
    inside = ExecClient(settings.folder / "run" / "attempts", visits)
    audit = open_audit(settings, store)
    options = model_options(settings)
    models = (Models(options.models), ModelPool(options))
    recent: tuple[Recent[Any], Recent[Any]] = (_recent(store), _recent(store))
    app.state.easel = AppState(
        settings,
        store,
        metrics,
        failed_logins,
        known_users,
        lake,
        addresses,
        batcher,
        visits,
        inside,
        audit,
        *models,
        *recent,
    )
    app.state.easel.providers = _providers(settings, store)
    app.state.easel.directories = {each.name: each for each in settings.directories}
    problems.install(app)
    for router in all_routers():
        app.include_router(router)
    state: AppState = app.state.easel
    metrics.add_pool(
        lambda since: measure(store, since), lambda: free_bytes(settings.folder), lambda: is_ready(state)
    )
    documents.install(app)
    pages.install(app)
    app.add_middleware(QuickMlflow)
    app.add_middleware(QuickRoutes, routes=(*app_models.QUICK, *open_inference.QUICK))
    limits = UserLimits(settings.requests_at_once, settings.requests_per_user, settings.streams_per_user)
    app.add_middleware(
        FairMiddleware,
        limits=limits,
        apart=UNLIMITED,
        known=known_users,
        look_up=lambda connection: whose(store, secret_in(connection)),
    )
    app.add_middleware(SocketMiddleware, audit=audit, now=store.clock.now)
    app.add_middleware(
        RequestMiddleware,
        metrics=metrics,
        max_body=settings.max_body_bytes,
        unlimited=UNLIMITED,
        streamed=STREAMED,
        policy=page_policy(blob_origins(settings)),
        audit=audit,
        now=store.clock.now,
    )
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def model_options(settings: Settings) -> PoolOptions:
    return PoolOptions(
        settings.folder,
        settings.folder / "models",
        settings.model_processes,
        settings.model_memory_mb,
        settings.answer_limit_s,
        unwalled=settings.unsandboxed == UNDERSTOOD,
    )


def _recent(store: Store) -> Recent[Any]:
    return Recent(lambda: store.changes, store.clock.monotonic)


def _providers(settings: Settings, store: Store) -> dict[str, Any]:
    """Returns the providers of the settings; their library is needed only where there are some."""
    if not settings.sign_on:
        return {}
    try:
        from easel.flow.sign_on.oidc import OidcProvider
    except ModuleNotFoundError as error:
        raise Misconfigured(f"sign_on needs {error.name}: pip install 'easel-ml[sign-on]'") from error
    return {each.name: OidcProvider(each, store.clock) for each in settings.sign_on}


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    yield
    app.state.easel.models.close()
    await to_thread.run_sync(app.state.easel.audit.close)


def declared_level(route: APIRoute) -> Level | None:
    """What a route asks of its caller; None if it declares nothing, which a test forbids."""
    calls = [dependency.call for dependency in route.dependant.dependencies]
    return next((call.level for call in calls if isinstance(call, Access | Anyone)), None)


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema:
        return app.openapi_schema
    document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    document.setdefault("components", {})["securitySchemes"] = {
        "token": {"type": "http", "scheme": "bearer", "description": "`easel tokens create`"},
        "session": {"type": "apiKey", "in": "cookie", "name": "easel_session"},
    }
    for route in api_routes(app):
        if declared_level(route) in (None, Level.ANYONE) or not route.include_in_schema:
            continue
        for method in route.methods or ():
            operation = document["paths"][route.path_format][method.lower()]
            operation["security"] = [{"token": []}, {"session": []}]
    for template, path in document["paths"].items():
        for operation in path.values():
            _declare_path_parameters(template, operation)
            for status, response in operation.get("responses", {}).items():
                if status == "default" or status.startswith(("4", "5")):
                    response["content"] = {
                        "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
                    }
    app.openapi_schema = document
    return document


def _declare_path_parameters(template: str, operation: dict[str, Any]) -> None:
    """`{project}` is read by the access check and not by the route, so FastAPI does not know of it."""
    declared = operation.setdefault("parameters", [])
    known = {parameter["name"] for parameter in declared if parameter["in"] == "path"}
    declared += [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "maxLength": 64}}
        for name in re.findall(r"{(\w+)}", template)
        if name not in known
    ]


def socket_routes() -> list[APIWebSocketRoute]:
    """Every websocket of ours."""
    return [
        route for router in all_routers() for route in router.routes if isinstance(route, APIWebSocketRoute)
    ]


def api_routes(app: FastAPI) -> list[APIRoute]:
    """Every route of ours: those of the routers, and the operations of the app itself."""
    found = [route for router in all_routers() for route in router.routes] + app.routes
    return [route for route in found if isinstance(route, APIRoute)]
