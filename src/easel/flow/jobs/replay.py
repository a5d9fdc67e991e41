"""Drop the bytes of a derived file set, and bring them back by running its jobs again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from easel.errors import Conflict, NotFound
from easel.flow.jobs.submit import submit_job
from easel.flow.lake.collect import referenced
from easel.flow.lake.file_set import find_set, own_nodes
from easel.ids import JobId
from easel.lake.access import Rights
from easel.lake.manifest import tree
from easel.lake.paths import parse_set
from easel.lake.replay import ReplaySource, jobs_to_replay
from easel.records.identity import Caller
from easel.records.job import Job
from easel.records.lake import Artifact, FileSetVersion, Kind
from easel.store import jobs
from easel.store.engine import Tx
from easel.store.lake import artifacts, blob_index, lineage
from easel.store.lake.grants import rights_of
from easel.store.upsert import lock

Price = Callable[[Job], float | None]


def no_price(_job: Job) -> float | None:
    return None


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """Jobs in the order in which they must run; time and cost are what they took the last time."""

    file_set: str
    jobs: Sequence[Job]
    seconds: float
    cost: float | None
    unknown: Sequence[str]


def plan(tx: Tx, caller: Caller, reference: str, price: Price = no_price) -> ReplayPlan:
    """What it would take to regenerate a set (also one that is not dropped: to decide whether to drop it)."""
    rights = rights_of(tx, caller)
    made, _ = find_set(tx, caller, rights, parse_set(reference))
    target = made.artifact

    def look(node: int) -> ReplaySource:
        found = artifacts.by_id(tx, caller.project_id, [node])[node]
        reads = lineage.reads_of(tx, found.made_by) if found.made_by else []
        dropped = found.dropped_at is not None or node == target.id
        return ReplaySource(f"{found.name}:{found.version}", dropped, found.made_by, reads)

    order = jobs_to_replay(target.id, look)
    names = [artifacts.by_id(tx, caller.project_id, [job])[job].name for job in order]
    known = {job.id: job for job in jobs.find_many(tx, caller.project_id, names)}
    lost = [name for name in names if name not in known]
    if lost:
        raise Conflict(
            f"{', '.join(lost[:5])} are not known to the engine any more: {made} cannot be replayed"
        )
    ordered = [known[JobId(name)] for name in names]
    costs = [price(job) for job in ordered]
    unknown = [j.id for j, c in zip(ordered, costs, strict=True) if _seconds(j) is None or c is None]
    cost = sum(c for c in costs if c is not None) if any(c is not None for c in costs) else None
    return ReplayPlan(str(made), ordered, sum(_seconds(j) or 0.0 for j in ordered), cost, unknown)


def drop(tx: Tx, caller: Caller, reference: str) -> FileSetVersion:
    """Give up the bytes of a set that a job made. What other sets also hold stays; numbers and lineage stay."""
    lock(tx, f"lake {caller.project_id}")
    rights = rights_of(tx, caller)
    made, root = find_set(tx, caller, rights, parse_set(reference))
    rights.need_write_set(made.artifact.name)
    if made.artifact.made_by is None:
        raise Conflict(f"{made} was not made by a job, so it could not be regenerated: it stays")
    plan(tx, caller, str(made))
    kept = referenced(tx, caller, besides=made.artifact.id)
    own = [entry.id for entry in tree.entries(own_nodes(tx), root) if entry.id not in kept]
    artifacts.drop_bytes(tx, own)
    artifacts.drop_bytes(tx, [made.artifact.id])
    body = {"files": len(own)}
    tx.emit("fileset.dropped", str(made), project_id=caller.project_id, actor=caller.user.id, body=body)
    return find_set(tx, caller, rights, parse_set(str(made)))[0]


def replay_next(tx: Tx, caller: Caller, reference: str) -> JobId | None:
    """Submit the first job of the plan again, on the same input; None when the set is whole."""
    rights = rights_of(tx, caller)
    made, _ = find_set(tx, caller, rights, parse_set(reference))
    if made.artifact.dropped_at is None:
        return None
    for job in plan(tx, caller, str(made)).jobs:
        outputs = _outputs(tx, caller, rights, job)
        if all(restore(tx, caller, f"{o.name}:{o.version}") for o in outputs if o.dropped_at):
            continue
        spec = replace(job.spec, input=job.input_set, output_set=None)
        again = submit_job(tx, caller, spec)
        body = {"job": again.id, "instead_of": job.id}
        tx.emit("fileset.replayed", str(made), project_id=caller.project_id, actor=caller.user.id, body=body)
        return again.id
    return None


def restore(tx: Tx, caller: Caller, reference: str) -> bool:
    """Take a dropped set back into use if all its bytes are stored again; returns whether it is whole.

    A job that is not deterministic makes other bytes: then the set stays dropped and its new output, a set of
    its own, is what there is.
    """
    made, root = find_set(tx, caller, rights_of(tx, caller), parse_set(reference))
    if made.artifact.dropped_at is None:
        return True
    entries = list(tree.entries(own_nodes(tx), root))
    places = blob_index.locate(tx, list({entry.digest for entry in entries}))
    if any(entry.digest not in places for entry in entries):
        return False
    artifacts.restore_bytes(tx, [entry.id for entry in entries])
    artifacts.restore_bytes(tx, [made.artifact.id])
    tx.emit("fileset.restored", str(made), project_id=caller.project_id, actor=caller.user.id, body={})
    return True


def _outputs(tx: Tx, caller: Caller, rights: Rights, job: Job) -> list[Artifact]:
    found = artifacts.find_version(tx, caller.project_id, Kind.JOB, job.id, 1)
    if found is None:
        raise NotFound(f"there is no job {job.id}")
    made = artifacts.made_by(tx, caller.project_id, Kind.FILE_SET, found.id)
    return [each for each in made if rights.reads_set(each.name)]


def _seconds(job: Job) -> float | None:
    if job.started_at is None or job.ended_at is None:
        return None
    return (job.ended_at - job.started_at).total_seconds()
