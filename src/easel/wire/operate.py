"""Health, cordons, drains, limits, storage: what admins read and set."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from easel.wire.model import Answer, Request


class HealthCheck(Answer):
    name: Annotated[str, Field(examples=["disk"])]
    severity: Annotated[
        Literal["ok", "warning", "failed"], Field(description="`failed`: send no requests here")
    ]
    detail: str


class Health(Answer):
    version: str
    ready: bool
    checks: list[HealthCheck]


class Cordon(Request):
    reason: Annotated[str, Field(max_length=200, examples=["upgrade"])] = ""


class Cordoned(Answer):
    reason: str
