"""Requests and answers of the Open Inference Protocol, version 2."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class _Open(BaseModel):
    """The protocol lets parameters of others pass."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())


class Live(_Open):
    live: bool


class Ready(_Open):
    ready: bool


class ServerMetadata(_Open):
    name: str
    version: str
    extensions: list[str]


class TensorMetadata(_Open):
    name: str
    datatype: Annotated[str, Field(examples=["FP64", "BYTES"])]
    shape: Annotated[list[int], Field(description="The first side counts the objects; -1 may be any")]


class ModelMetadata(_Open):
    name: str
    versions: Annotated[list[str], Field(description="The version that answers: the number of its model set")]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class ModelReady(_Open):
    name: str
    ready: bool


class TensorValues(TensorMetadata):
    data: Annotated[list[Any], Field(description="Nested, or flat in the order of rows")]


class OutputName(_Open):
    name: str


class TensorRequest(_Open):
    id: str | None = None
    inputs: list[TensorValues]
    outputs: list[OutputName] | None = None


class TensorAnswer(_Open):
    model_name: str
    model_version: str
    id: str | None = None
    parameters: Annotated[dict[str, Any], Field(default_factory=dict)]
    outputs: list[TensorValues]
