"""Quotas: what a project or a person in it may hold and use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Quota:
    """None means without limit."""

    bytes: int | None = None
    """Of all file versions that are kept."""
    gpu_hours: float | None = None
    """In a calendar month, UTC."""
    jobs: int | None = None
    """That wait or run at one time."""


@dataclass(frozen=True, slots=True)
class QuotaUse:
    bytes: int
    gpu_hours: float
    jobs: int
