"""What all wire models share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from easel.wire import light

if TYPE_CHECKING or not light.is_chosen():
    from pydantic import (
        AwareDatetime,
        BaseModel,
        BeforeValidator,
        ConfigDict,
        Field,
        StrictFloat,
        StrictInt,
        StrictStr,
        ValidationError,
    )
else:
    from datetime import datetime

    from easel.wire.light import BaseModel, BeforeValidator, Field, ValidationError

    AwareDatetime, ConfigDict = datetime, dict
    StrictFloat, StrictInt, StrictStr = float, int, str

__all__ = [
    "Answer",
    "AwareDatetime",
    "BaseModel",
    "BeforeValidator",
    "ConfigDict",
    "Field",
    "FieldProblem",
    "Json",
    "Moment",
    "Page",
    "Problem",
    "Request",
    "StrictFloat",
    "StrictInt",
    "StrictStr",
    "ValidationError",
    "whole_schema",
]

T = TypeVar("T")


class Request(BaseModel):
    """What a client sends. An unknown field is an error: a misspelt option must not pass unnoticed."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Answer(BaseModel):
    """What the server sends. Unknown fields are let through, so that an older client reads a newer server."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True, from_attributes=True)


class Page(Answer, Generic[T]):
    items: list[T]
    next_cursor: Annotated[str | None, Field(description="Send it back as `cursor` for the next page")] = None


class FieldProblem(Answer):
    where: str
    message: str


class Problem(Answer):
    """An RFC 9457 problem document. `kind` says which remedy applies; `detail` says it in words."""

    model_config = ConfigDict(extra="allow", frozen=True, defer_build=True)

    type: str
    title: str
    status: int
    detail: str
    kind: str
    instance: str | None = None
    request_id: str | None = None
    errors: list[FieldProblem] = Field(default_factory=list)


Moment = AwareDatetime
Json = dict[str, Any]


def whole_schema(model: type[BaseModel]) -> Json:
    """Returns the JSON schema of a request with its parts in place of references, for a document that holds it."""
    schema = model.model_json_schema()
    parts = schema.pop("$defs", {})

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).removeprefix("#/$defs/")
            return filled(parts[name]) if name in parts else {key: filled(one) for key, one in value.items()}
        return [filled(one) for one in value] if isinstance(value, list) else value

    found: Json = filled(schema)
    return found
