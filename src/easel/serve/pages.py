"""The dashboard's built files. Where they were not built, a plain page says how; the API works all the same."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Receive, Scope, Send

BUILT = Path(__file__).parent / "static"
_NOT_PAGES = ("/api", "/mlflow", "/blobs", "/unsubscribe", "/healthz", "/readyz", "/metrics")
_FOR_EVER = "public, max-age=31536000, immutable"

NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Easel</title></head>
<body>
<h1>Easel is running, its dashboard was not built</h1>
<p>With Node 20 or newer, build it in the folder of the sources and reload this page:</p>
<pre>cd web
npm ci
npm run build</pre>
<p>Everything else works: <code>easel login</code>, the Python client, and the API under <code>/api/v1</code>
(<a href="/api/openapi.json">its description</a>).</p>
</body></html>
"""


class Pages:
    """What answers when no route does.

    A browser's GET gets the one page of the dashboard, whose script reads the address; everything else gets
    the API's own "nothing here". Routes win, so a page can never hide one.
    """

    def __init__(self, otherwise: ASGIApp, built: Path = BUILT) -> None:
        self._otherwise, self._built = otherwise, built
        self._files = GZipMiddleware(_Assets(directory=built, check_dir=False), minimum_size=500)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _wants_page(scope):
            await self._otherwise(scope, receive, send)
        elif scope["path"].startswith("/assets/") or scope["path"] == "/easel.svg":
            await self._files(scope, receive, send)
        else:
            await self._page()(scope, receive, send)

    def _page(self) -> Response:
        index = self._built / "index.html"
        if not index.is_file():
            return HTMLResponse(NOT_BUILT)
        # Its name does not change with its contents, so a browser must ask each time.
        return FileResponse(index, headers={"cache-control": "no-cache"})


class _Assets(StaticFiles):
    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        if path.startswith("assets/"):  # named by a hash of their contents
            response.headers["cache-control"] = _FOR_EVER
        return response


def _wants_page(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return False
    path: str = scope["path"]
    if any(path == prefix or path.startswith(f"{prefix}/") for prefix in _NOT_PAGES):
        return False
    accepted = Headers(scope=scope).get("accept", "")
    return path.startswith("/assets/") or path == "/easel.svg" or "text/html" in accepted


def install(app: FastAPI) -> None:
    app.router.default = Pages(app.router.default)
