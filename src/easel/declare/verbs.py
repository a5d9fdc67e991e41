"""What a token may do: the verbs of its scope."""

from __future__ import annotations

from enum import StrEnum


class Verb(StrEnum):
    READ = "read"
    """Look at anything that the user may see."""
    WRITE = "write"
    """Add and change data, apps, examples, tags."""
    RUN = "run"
    """Submit, rerun and end what runs: jobs, pipelines, studies, profiles, inference."""
    MANAGE = "manage"
    """What admins do, and tokens."""
