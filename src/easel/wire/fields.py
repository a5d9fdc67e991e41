"""Kinds of fields that several wire models have."""

from __future__ import annotations

from typing import Annotated, Literal

from easel.wire.model import Field, Moment, StrictFloat, StrictInt, StrictStr

Slug = Annotated[
    str,
    Field(
        min_length=1,
        max_length=64,
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9_-])?$",
        description="Letters, digits, '.', '_' and '-'",
        examples=["astro"],
    ),
]
Label = Annotated[str, Field(min_length=1, max_length=100, examples=["laptop"])]
TagValue = StrictStr | StrictFloat | StrictInt | Annotated[dict[Literal["time"], Moment], Field(max_length=1)]
"""Text, a number, or `{"time": "2026-11-16T09:30:00Z"}`."""
Tags = dict[str, TagValue]
