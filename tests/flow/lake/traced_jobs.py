"""Jobs in the catalogue without an engine: they exist, what they read, what they wrote."""

from __future__ import annotations

from collections.abc import Sequence

from easel.errors import Conflict
from easel.flow.lake import upload
from easel.flow.lake.file_set import create_of, find_set
from easel.ids import JobId
from easel.lake.paths import parse_set
from easel.records.identity import Caller
from easel.records.lake import FileSetVersion, UploadState
from easel.store.engine import Tx
from easel.store.lake import artifacts, lineage
from easel.store.lake.grants import rights_of


def register_job(tx: Tx, caller: Caller, job_id: JobId, inputs: Sequence[str]) -> list[FileSetVersion]:
    """Enter a submitted job into the catalogue, reading these sets.

    `inputs` are `name` or `name:version`; returned with the versions that they mean now, which are what the
    job must be given. Repeating is harmless.
    """
    rights = rights_of(tx, caller)
    found = [find_set(tx, caller, rights, parse_set(text))[0] for text in inputs]
    for made in found:
        if made.artifact.dropped_at is not None:
            raise Conflict(
                f"the bytes of {made} were given up: `easel filesets replay {made}` brings them back"
            )
    job = artifacts.add_job(tx, caller.project_id, job_id, caller.user.id)
    lineage.add_reads(tx, job, [made.artifact.id for made in found])
    return found


def job_artifact(tx: Tx, caller: Caller, job_id: JobId) -> int:
    """The artifact id of a job, e.g. for `upload.start(made_by=…)`."""
    return artifacts.add_job(tx, caller.project_id, job_id, caller.user.id)


def attach_output(tx: Tx, caller: Caller, job_id: JobId, upload_id: str, name: str) -> FileSetVersion:
    """Commit the upload of a job's output and make it a file set, traced to the job and its inputs."""
    job = job_artifact(tx, caller, job_id)
    done = upload.commit(tx, caller, upload_id)
    assert done.state is UploadState.COMMITTED
    return create_of(tx, caller, name, upload.added(tx, done), made_by=job)
