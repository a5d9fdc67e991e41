"""The documents at /docs, and an API explorer at /api/docs: both from files in the package, nothing from elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

SITE = Path(__file__).parent / "site"
NOT_BUILT = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Easel: documents</title></head>
<body><h1>The documents were not built here</h1>
<p>In the folder of the sources: <code>python scripts/build_site.py</code>. They also lie there as text, in
<code>docs/</code>.</p></body></html>
"""
EXPLORER = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Easel: the API</title>
<link rel="icon" href="/easel.svg"><link rel="stylesheet" href="/assets/explorer/swagger-ui.css"></head>
<body><div id="explorer"></div>
<script src="/assets/explorer/swagger-ui-bundle.js"></script>
<script src="/assets/explorer/start.js"></script></body></html>
"""
_POLICY = (
    "default-src 'self'; script-src 'self' {scripts}; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "worker-src 'self' blob:; object-src 'none'; base-uri 'self'; form-action 'none'; frame-ancestors 'none'"
)


def policy(site: Path = SITE) -> str:
    """Returns the content policy of the documents: our own files, and the inline scripts that the build noted."""
    noted = site / "scripts.json"
    hashes = json.loads(noted.read_text(encoding="utf-8")) if noted.is_file() else []
    return _POLICY.format(scripts=" ".join(f"'sha256-{each}'" for each in hashes))


class _Site(StaticFiles):
    def __init__(self, site: Path) -> None:
        super().__init__(directory=site, html=True, check_dir=False)
        self._site, self._policy = site, policy(site)

    async def check_config(self) -> None:
        """Does without the folder, which an installation may lack: a page then says how to build it."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        if not (self._site / "index.html").is_file():
            return HTMLResponse(NOT_BUILT)
        response = await super().get_response(path, scope)
        response.headers["content-security-policy"] = self._policy
        response.headers["cache-control"] = "no-cache"
        return response


def install(app: FastAPI, site: Path = SITE) -> None:
    """Adds /docs and /api/docs. They hold nothing of anybody's project: whoever reaches the server may read them."""

    async def explorer(request: object) -> Response:
        return HTMLResponse(EXPLORER)

    async def to_site(request: object) -> Response:
        return RedirectResponse("/docs/")

    app.router.add_route("/api/docs", explorer, include_in_schema=False)
    app.router.add_route("/docs", to_site, include_in_schema=False)
    app.router.mount("/docs", GZipMiddleware(_Site(site), minimum_size=500))
