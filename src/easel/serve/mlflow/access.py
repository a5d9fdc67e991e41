"""Who calls MLflow's API: an Easel token as bearer token or as the password of Basic."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from anyio import to_thread
from fastapi import Depends, Request

from easel.errors import NotFound
from easel.flow.authenticate import Level, Secret
from easel.flow.jobs.tracking_tokens import caller_of, is_job_token
from easel.records.identity import Caller
from easel.serve.access import QuickAccess, presented_secret
from easel.serve.audit import note_caller
from easel.serve.state import app_state


class MlflowAccess(QuickAccess):
    """`MLFLOW_TRACKING_TOKEN`, or `MLFLOW_TRACKING_PASSWORD` with any user name.

    A job's own token is checked each time.
    """

    def __init__(self) -> None:
        super().__init__(Level.MEMBER)

    async def __call__(self, request: Request) -> Caller:  # type: ignore[override]
        secret = self.secret(request)
        if secret is not None and is_job_token(secret.text):
            return await to_thread.run_sync(self.check, request)
        return await super().__call__(request)

    def secret(self, request: Request) -> Secret | None:
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":
            try:
                _, _, password = base64.b64decode(given, validate=True).decode().partition(":")
            except (binascii.Error, UnicodeDecodeError):
                password = ""
            return Secret(password.strip(), is_session=False)
        return presented_secret(request)

    def check(self, request: Request) -> Caller:
        secret = self.secret(request)
        if secret is None or not is_job_token(secret.text):
            return super().check(request)
        state = app_state(request)
        with state.store.read() as tx:
            caller = caller_of(tx, state.addresses.signer.key, secret.text)
        if caller.project is None or caller.project.name != request.path_params.get("project"):
            raise NotFound("a job's token opens the project of the job, and no other")
        note_caller(caller, "job")
        return caller


Tracker = Annotated[Caller, Depends(MlflowAccess())]
