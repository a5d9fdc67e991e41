"""Refusals in MLflow's own words: its clients decide by the code, people read the sentence."""

from __future__ import annotations

from enum import StrEnum

from easel.errors import EaselError


class ErrorCode(StrEnum):
    """The codes of MLflow's REST API that this server gives."""

    INVALID_PARAMETER_VALUE = "INVALID_PARAMETER_VALUE"
    BAD_REQUEST = "BAD_REQUEST"
    INVALID_STATE = "INVALID_STATE"
    RESOURCE_ALREADY_EXISTS = "RESOURCE_ALREADY_EXISTS"
    RESOURCE_DOES_NOT_EXIST = "RESOURCE_DOES_NOT_EXIST"
    RESOURCE_CONFLICT = "RESOURCE_CONFLICT"
    ENDPOINT_NOT_FOUND = "ENDPOINT_NOT_FOUND"
    UNAUTHENTICATED = "UNAUTHENTICATED"
    PERMISSION_DENIED = "PERMISSION_DENIED"
    NOT_IMPLEMENTED = "NOT_IMPLEMENTED"
    TEMPORARILY_UNAVAILABLE = "TEMPORARILY_UNAVAILABLE"
    INTERNAL_ERROR = "INTERNAL_ERROR"


class MlflowRefusal(EaselError):
    """Raised on purpose, with the code that MLflow's own server gives."""

    kind = "mlflow"

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def invalid(message: str) -> MlflowRefusal:
    return MlflowRefusal(ErrorCode.INVALID_PARAMETER_VALUE, message)


def absent(message: str) -> MlflowRefusal:
    return MlflowRefusal(ErrorCode.RESOURCE_DOES_NOT_EXIST, message)


def taken(message: str) -> MlflowRefusal:
    return MlflowRefusal(ErrorCode.RESOURCE_ALREADY_EXISTS, message)
