"""Signing on elsewhere, and on machines without a browser."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, SecretStr

from easel.wire.model import Answer, Moment, Request


class SignOnWay(Answer):
    name: str
    label: str
    password: Annotated[
        bool, Field(description="Asks for name and password here rather than on its own page")
    ]


class SignOnWays(Answer):
    items: list[SignOnWay]


class Password(Request):
    user: Annotated[str, Field(min_length=1, max_length=200)]
    password: Annotated[SecretStr, Field(min_length=1, max_length=1000)]


class SignedOn(Answer):
    name: str


class LogOutAddress(Answer):
    url: str | None


class DeviceLogin(Answer):
    client: Annotated[str, Field(description="What asks, as it calls itself")]
    address: Annotated[str, Field(description="Where it is")]
    created_at: Moment
    expires_at: Moment
    code: Annotated[
        str | None,
        Field(description="Once it is allowed: what the browser takes to a command line beside it"),
    ] = None


class AnswerDevice(Request):
    allow: bool
