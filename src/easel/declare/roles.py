"""What a user may do inside one project."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    MEMBER = "member"
    ADMIN = "admin"
