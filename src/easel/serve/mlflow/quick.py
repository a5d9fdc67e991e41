"""MLflow's addresses are found in a table and called past the framework: clients that log call them all the time.

Who may call and what is answered is the route's own. Addresses with parts of their own, and files, go the usual way.
"""

from __future__ import annotations

from anyio import to_thread
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from easel.errors import EaselError
from easel.serve.mlflow.access import MlflowAccess
from easel.serve.mlflow.asked import read_asked
from easel.serve.mlflow.errors import PREFIX, of_error
from easel.serve.mlflow.routers import mlflow_routers
from easel.serve.mlflow.routing import BASE, handler_of
from easel.serve.state import app_state


def fixed_routes() -> dict[tuple[str, str], APIRoute]:
    """Returns the routes whose address has no part but the project, by method and by what follows the project."""
    found: dict[tuple[str, str], APIRoute] = {}
    for router in mlflow_routers():
        for route in router.routes:
            if isinstance(route, APIRoute) and handler_of(route.endpoint) is not None:
                rest = route.path.removeprefix(f"{BASE}/")
                if "{" not in rest:
                    found.update({(method, rest): route for method in route.methods or ()})
    return found


class QuickMlflow:
    """Pure ASGI: what is not in the table goes on to the framework."""

    def __init__(self, app: ASGIApp) -> None:
        self.app, self._routes, self._access = app, fixed_routes(), MlflowAccess()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(PREFIX):
            await self.app(scope, receive, send)
            return
        project, _, rest = scope["path"].removeprefix(PREFIX).partition("/")
        route = self._routes.get((scope["method"], rest))
        if route is None or not project:
            await self.app(scope, receive, send)
            return
        scope["route"], scope["path_params"] = route, {"project": project}
        try:
            response = await self._answer(route, Request(scope, receive))
        except EaselError as error:
            response = of_error(error)
        await response(scope, receive, send)

    async def _answer(self, route: APIRoute, request: Request) -> Response:
        handler = handler_of(route.endpoint)
        assert handler is not None
        caller = await self._access(request)
        asked = await read_asked(request)
        return await to_thread.run_sync(handler, app_state(request), caller, asked)
