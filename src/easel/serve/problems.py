"""Errors as RFC 9457 problem documents."""

from __future__ import annotations

import logging
import re
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from easel.errors import (
    Conflict,
    Denied,
    EaselError,
    InvalidInput,
    Misconfigured,
    NotFound,
    QuotaExhausted,
    TooLarge,
    TryLater,
    Unauthenticated,
)
from easel.serve.logs import request_id
from easel.serve.mlflow import errors as mlflow
from easel.serve.model_forms import Unreadable

STATUS: dict[type[EaselError], int] = {
    Unreadable: 400,
    InvalidInput: 422,
    Unauthenticated: 401,
    Denied: 403,
    NotFound: 404,
    Conflict: 409,
    TooLarge: 413,
    QuotaExhausted: 429,
    Misconfigured: 500,
    TryLater: 503,
}
TITLES = {
    400: "The request cannot be read",
    401: "Log in first",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    411: "Length needed",
    413: "Too large",
    415: "Unsupported media type",
    422: "The request is not valid",
    429: "Too many",
    500: "Something went wrong here",
    503: "Not available right now",
}
_log = logging.getLogger("easel.serve")
_OPEN_INFERENCE = re.compile(r"(/api/v1/projects/[^/]+)?/v2(/|$)")


def document(
    status: int,
    kind: str,
    detail: str,
    path: str,
    *,
    headers: dict[str, str] | None = None,
    **more: Any,
) -> JSONResponse:
    if mlflow.is_ours(path):
        return mlflow.of_status(status, detail)
    if _OPEN_INFERENCE.match(path):
        more["error"] = detail  # where clients of that protocol look
    title = TITLES.get(status, "Error")
    body = {
        "type": f"urn:easel:problem:{kind}",
        "title": title,
        "status": status,
        "detail": detail,
        "kind": kind,
        "instance": path,
        "request_id": request_id.get(),
        **more,
    }
    return JSONResponse(body, status, headers=headers, media_type="application/problem+json")


def status_of(error: EaselError) -> int:
    return next((STATUS[kind] for kind in type(error).__mro__ if kind in STATUS), 500)


def of_error(error: EaselError, path: str) -> JSONResponse:
    if mlflow.is_ours(path):
        return mlflow.of_error(error)
    status = status_of(error)
    headers = {}
    if isinstance(error, TryLater):
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
        _log.warning("try later: %s", error.message, exc_info=error.__cause__)
    if "retry_after" in error.details:
        headers["Retry-After"] = str(error.details["retry_after"])
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="easel"'
    return document(status, error.kind, error.message, path, headers=headers, **error.details)


def install(app: FastAPI) -> None:
    @app.exception_handler(EaselError)
    async def easel_error(request: Request, error: EaselError) -> JSONResponse:
        return of_error(error, request.url.path)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        told = [
            {"where": ".".join(str(part) for part in e["loc"]), "message": e["msg"]} for e in error.errors()
        ]
        unreadable = any(e["type"] == "json_invalid" for e in error.errors())
        summary = "; ".join(f"{e['where']}: {e['message']}" for e in told[:3])
        status, kind = (400, "unreadable") if unreadable else (422, "invalid-input")
        return document(status, kind, summary, request.url.path, errors=told)

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> JSONResponse:
        kind = {404: "not-found", 405: "method-not-allowed"}.get(error.status_code, "error")
        detail = str(error.detail)
        if error.status_code == 404:
            detail = "nothing here: the API is under /api/v1, its description at /api/openapi.json"
        return document(error.status_code, kind, detail, request.url.path, headers=dict(error.headers or {}))
