"""How a handler becomes a route: under MLflow's two prefixes, with the caller checked and the request read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import orjson
from fastapi import APIRouter, Response

from easel.declare.verbs import Verb
from easel.records.identity import Caller
from easel.serve.access import State, acts
from easel.serve.mlflow.access import Tracker
from easel.serve.mlflow.asked import Asked, AskedFields
from easel.serve.router import Router
from easel.serve.state import AppState

BASE = "/mlflow/{project}"
PREFIXES = ("api", "ajax-api")
_LOOKS = re.compile(r"search|get-latest-versions")
"""Paths whose POST only reads."""
Handler = Callable[[AppState, Caller, AskedFields], dict[str, Any]]


def new_router() -> APIRouter:
    return Router(prefix=BASE, tags=["mlflow"], include_in_schema=False)


def api(
    router: APIRouter, path: str, *verbs: str, versions: tuple[str, ...] = ("2.0",)
) -> Callable[[Handler], Handler]:
    """Answer `verbs` at `/api/<version>/mlflow/<path>` and at `/ajax-api/…`, which pages use."""

    def register(handler: Handler) -> Handler:
        @acts(Verb.READ if set(verbs) == {"GET"} or _LOOKS.search(path) else Verb.WRITE)
        def route(state: State, caller: Tracker, ask: Asked) -> Response:
            return answer(state, caller, ask)

        def answer(state: AppState, caller: Caller, ask: AskedFields) -> Response:
            return Response(orjson.dumps(handler(state, caller, ask)), media_type="application/json")

        route.mlflow_handler = answer  # type: ignore[attr-defined]

        for prefix in PREFIXES:
            for version in versions:
                router.add_api_route(
                    f"/{prefix}/{version}/mlflow/{path}",
                    route,
                    methods=list(verbs),
                    name=f"mlflow_{handler.__name__}_{prefix}_{version}",
                )
        return handler

    return register


def handler_of(endpoint: Any) -> Callable[[AppState, Caller, AskedFields], Response] | None:
    """Returns what answers at an endpoint that `api` has registered."""
    return getattr(endpoint, "mlflow_handler", None)
