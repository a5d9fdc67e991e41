"""What a job that Easel runs is told, so that MLflow inside it logs to the job's own run.

Its token is signed with the installation's key and kept nowhere: it opens MLflow's API of the job's project, in the
name of the job's owner, for as long as this attempt is active.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field

from easel.errors import Unauthenticated
from easel.flow.jobs.people import Owners
from easel.records.identity import Caller
from easel.records.job import ACTIVE
from easel.store import runs
from easel.store.engine import Tx
from easel.store.stored_job import StoredJob

PREFIX = "easel-job"
_TOKEN = re.compile(
    rf"{PREFIX}\.(?P<job>job_[0-9a-z]{{26}})\.(?P<attempt>\d{{1,6}})\.(?P<signature>[0-9a-f]{{64}})"
)


@dataclass(frozen=True, slots=True)
class JobTracking:
    """Where jobs find this server, and the key that signs their tokens."""

    address: str
    key: bytes = field(repr=False)

    def of_project(self, project: str) -> str:
        """The address of MLflow's API. Without a server's it is a path: workers that joined know theirs."""
        return f"{self.address.rstrip('/')}/mlflow/{project}"

    def token(self, job: StoredJob) -> str:
        return f"{PREFIX}.{job.id}.{job.attempt}.{_signature(self.key, job.id, job.attempt)}"


def is_job_token(text: str) -> bool:
    return text.startswith(PREFIX + ".")


def caller_of(tx: Tx, key: bytes, text: str) -> Caller:
    """Returns in whose name a job calls; raises the reason why not."""
    match = _TOKEN.fullmatch(text)
    if match is None:
        raise Unauthenticated("this is no token of a job")
    job_id, attempt = match["job"], int(match["attempt"])
    if not hmac.compare_digest(_signature(key, job_id, attempt), match["signature"]):
        raise Unauthenticated("this is no token of a job")
    job = runs.by_id(tx, job_id)
    if job is None or job.attempt != attempt or job.state not in ACTIVE:
        raise Unauthenticated("the job has ended, and its token with it")
    return Owners(tx).caller(job.project_id, job.user_id)


def _signature(key: bytes, job_id: str, attempt: int) -> str:
    return hmac.new(key, f"mlflow {job_id} {attempt}".encode(), hashlib.sha256).hexdigest()
