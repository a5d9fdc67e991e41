"""Errors as MLflow's clients read them: `{"error_code", "message"}`.

Clients repeat a request for minutes after 429 and 5xx, so neither is ever the answer to what somebody sent.
"""

from __future__ import annotations

from fastapi.responses import JSONResponse

from easel.errors import (
    Conflict,
    Denied,
    EaselError,
    InvalidInput,
    NotFound,
    QuotaExhausted,
    TooLarge,
    TryLater,
    Unauthenticated,
)
from easel.flow.mlflow.errors import ErrorCode, MlflowRefusal

PREFIX = "/mlflow/"
_STATUS = {
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.PERMISSION_DENIED: 403,
    ErrorCode.RESOURCE_DOES_NOT_EXIST: 404,
    ErrorCode.ENDPOINT_NOT_FOUND: 404,
    ErrorCode.RESOURCE_CONFLICT: 409,
    ErrorCode.INTERNAL_ERROR: 500,
    ErrorCode.NOT_IMPLEMENTED: 501,
    ErrorCode.TEMPORARILY_UNAVAILABLE: 503,
}
_CODES: dict[type[EaselError], ErrorCode] = {
    InvalidInput: ErrorCode.INVALID_PARAMETER_VALUE,
    Conflict: ErrorCode.INVALID_PARAMETER_VALUE,
    TooLarge: ErrorCode.INVALID_PARAMETER_VALUE,
    NotFound: ErrorCode.RESOURCE_DOES_NOT_EXIST,
    Denied: ErrorCode.PERMISSION_DENIED,
    QuotaExhausted: ErrorCode.PERMISSION_DENIED,
    Unauthenticated: ErrorCode.UNAUTHENTICATED,
    TryLater: ErrorCode.TEMPORARILY_UNAVAILABLE,
}


def is_ours(path: str) -> bool:
    return path.startswith(PREFIX)


def answer(code: ErrorCode, message: str) -> JSONResponse:
    status = _STATUS.get(code, 400)
    headers = {"WWW-Authenticate": 'Basic realm="easel"'} if status == 401 else None
    return JSONResponse({"error_code": code.value, "message": message}, status, headers=headers)


def of_error(error: EaselError) -> JSONResponse:
    if isinstance(error, MlflowRefusal):
        return answer(error.code, error.message)
    code = next((_CODES[kind] for kind in type(error).__mro__ if kind in _CODES), ErrorCode.INTERNAL_ERROR)
    return answer(code, error.message)


def of_status(status: int, message: str) -> JSONResponse:
    """What the framework itself refuses: unknown addresses, unreadable requests, our own faults."""
    if status == 404:
        return answer(ErrorCode.ENDPOINT_NOT_FOUND, "Easel does not answer this part of MLflow's API")
    if status >= 500:
        return answer(ErrorCode.INTERNAL_ERROR, message)
    code = ErrorCode.PERMISSION_DENIED if status == 403 else ErrorCode.INVALID_PARAMETER_VALUE
    found = answer(code, message)
    found.status_code = status if status in (403, 405) else 400
    return found
