"""Routes that are called a thousand times a second are called past the framework.

Who may call and what is answered is the route's own; only the search for it, and what the framework does around a call,
are left out: they took longer than the answer.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from easel.errors import EaselError
from easel.serve.access import QuickAccess
from easel.serve.problems import of_error


class QuickRoute:
    """A route of `router` whose endpoint takes the request, the caller and the parts of the path."""

    def __init__(
        self, router: APIRouter, endpoint: Callable[..., Awaitable[Response]], access: QuickAccess
    ) -> None:
        self.route = next(
            each for each in router.routes if isinstance(each, APIRoute) and each.endpoint is endpoint
        )
        self._endpoint, self._access = endpoint, access
        self.method = next(iter(self.route.methods or {"POST"}))
        self.pattern: re.Pattern[str] = self.route.path_regex
        self.names = [name for name in self.pattern.groupindex if name != "project"]

    async def answer(self, request: Request) -> Response:
        caller = await self._access(request)
        parts = {name: request.path_params[name] for name in self.names}
        return await self._endpoint(request=request, caller=caller, **parts)


class QuickRoutes:
    """Pure ASGI: what matches none of them goes on to the framework."""

    def __init__(self, app: ASGIApp, *, routes: Sequence[QuickRoute], end: str = "/infer") -> None:
        self.app, self._routes, self._end = app, routes, end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].endswith(self._end):
            await self.app(scope, receive, send)
            return
        for each in self._routes:
            found = each.pattern.match(scope["path"]) if scope["method"] == each.method else None
            if found is not None:
                scope["route"], scope["path_params"] = each.route, found.groupdict()
                try:
                    response = await each.answer(Request(scope, receive))
                except EaselError as error:
                    response = of_error(error, scope["path"])
                await response(scope, receive, send)
                return
        await self.app(scope, receive, send)
