"""Secrets that a job names and that its project does not have: refused when it is submitted, not when it starts."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from easel.declare.job import JobSpec
from easel.errors import InvalidInput
from easel.ids import ProjectId
from easel.run.secret_store import SecretStore


def check_secrets(secrets: SecretStore, project_id: ProjectId, specs: Iterable[JobSpec]) -> None:
    """InvalidInput where one of the jobs names a secret that is not there."""
    named = {secret for spec in specs for secret in spec.environment.secrets.values()}
    if not named:
        return
    known = secrets.names(project_id)
    missing = sorted(named - set(known))
    if missing:
        close = difflib.get_close_matches(missing[0], known, 1)
        meant = f": did you mean {close[0]!r}?" if close else ""
        raise InvalidInput(
            f"there is no secret {missing[0]!r} in this project{meant or ':'} an admin sets it with "
            f"`easel secrets put {missing[0]}`"
        )
