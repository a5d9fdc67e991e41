"""Fills a store in bulk with what years of a busy project leave: for measurements, never for tests of behaviour.

python benchmarks/seed.py HOME [--quick]    the store of `EASEL_HOME=HOME`; a server may be started on it afterwards
"""

from __future__ import annotations

import argparse
import math
import random
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from sqlalchemy import Table, insert, select, text
from sqlalchemy.event import listen

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from easel.declare.job import Command, JobSpec
from easel.declare.parse import parse_program
from easel.declare.resources import Resources
from easel.declare.roles import Role
from easel.flow.issue_token import issue_token
from easel.flow.lake.file_set import create_file_set
from easel.ids import ProjectId, TokenId, UserId, mint
from easel.match.propose import propose_candidates
from easel.match.summary import DataSummary
from easel.records.decision import Reasons, RunnerUp, StartTrial
from easel.records.identity import Caller
from easel.store import identity, job_series
from easel.store.engine import Store, Tx
from easel.store.job_specs import SPEC
from easel.store.migrate import migrate
from easel.store.schema.apps import app_examples, app_trials, apps
from easel.store.schema.events import events
from easel.store.schema.jobs import job_logs, jobs
from easel.store.schema.lake import artifacts, file_set_versions, file_sets, files, lineage, tags
from easel.store.schema.price import bill_lines

BATCH = 20_000
NOW = datetime(2026, 11, 1, tzinfo=UTC)
PROGRAM = "{input: {[Tensor[28, 28, 1]], []}, output: {[Category[cat, dog]], []}}"
STEPS = ("submitted", "launching", "running", "finished")


Part = tuple[str, Table, Iterable[dict[str, Any]]]


@dataclass(frozen=True)
class Amounts:
    jobs: int = 100_000
    files: int = 1_000_000
    apps: int = 200
    points: int = 1_000_000
    people: int = 20
    sets: int = 100_000


QUICK = Amounts(jobs=2_000, files=5_000, apps=20, points=50_000, people=5, sets=30_000)


@dataclass(frozen=True)
class Seeded:
    """What to look at: a member's token, the job with the long series, a set that thousands were made of."""

    project: str
    token: str
    long_job: str
    old_set: str


def seed(store: Store, amounts: Amounts, tell: Callable[[str], None] = lambda text: None) -> Seeded:
    rng = random.Random(7)
    if store.is_sqlite:  # a seed that breaks off is made anew
        listen(store.engine, "connect", _in_haste)
        store.engine.dispose()
    with store.write() as tx:
        project = identity.add_project(tx, "survey", "Seeded: what years of work leave")
        people = [identity.add_user(tx, f"person{i:02}", home=project.id) for i in range(amounts.people)]
        for person in people:
            identity.put_member(tx, project.id, person.id, Role.ADMIN if person is people[0] else Role.MEMBER)
        first = Caller(people[0], TokenId("tok_seed"), project, Role.ADMIN)
        token = issue_token(tx, first, people[0].id, "seed", None).secret
    ids = [mint("job", NOW - timedelta(minutes=amounts.jobs - i), rng) for i in range(amounts.jobs)]
    owners = [people[i % len(people)].id for i in range(amounts.jobs)]
    parts: list[Part] = [
        ("files", artifacts, _files(project.id, people[0].id, amounts.files)),
        ("paths", files, _paths(project.id, amounts.files)),
        ("jobs in the catalogue", artifacts, _catalogue(project.id, ids, owners)),
        ("jobs", jobs, _jobs(project.id, ids, owners)),
        ("tags", tags, _tags(project.id, amounts)),
        ("history", events, _history(project.id, ids, owners)),
        ("bills", bill_lines, _bills(project.id, ids, owners)),
        ("apps", apps, _apps(project.id, people[0].id, amounts.apps)),
        ("examples", app_examples, _examples(amounts.apps)),
        ("trials", app_trials, _trials(ids, amounts.apps)),
    ]
    _fill_all(store, parts, tell)
    _fill_all(store, _graph(store, first, amounts), tell)
    long_job = ids[-1]
    with store.write() as tx:
        _series(tx, project.id, long_job, amounts.points)
        tx.execute(insert(job_logs), [_log(long_job)])
    with store.write() as tx:
        if store.is_sqlite:
            tx.execute(text("ANALYZE"))
    return Seeded(project.name, token, long_job, set_name(1))


def _in_haste(dbapi: Any, _record: Any) -> None:
    for pragma in ("synchronous=OFF", "cache_size=-1000000"):
        dbapi.execute(f"PRAGMA {pragma}")


def _fill_all(store: Store, parts: Iterable[Part], tell: Callable[[str], None]) -> None:
    for name, table, rows in parts:
        began = time.perf_counter()
        count = _fill(store, table, rows)
        tell(f"{count:>9,} {name} in {time.perf_counter() - began:.1f} s")


def _fill(store: Store, table: Table, rows: Iterable[dict[str, Any]]) -> int:
    count, batch = 0, list[dict[str, Any]]()
    for row in rows:
        batch.append(row)
        count += 1
        if len(batch) == BATCH:
            _add(store, table, batch)
            batch = []
    if batch:
        _add(store, table, batch)
    return count


def _add(store: Store, table: Table, batch: list[dict[str, Any]]) -> None:
    with store.write() as tx:
        tx.execute(insert(table), batch)


def _path(i: int) -> str:
    return f"/images/{i // 20_000:03}/{i // 500 % 40:02}/star-{i:07}.png"


def _files(project: ProjectId, user: UserId, count: int) -> Iterator[dict[str, Any]]:
    for i in range(count):
        digest = i.to_bytes(32, "big")
        yield _artifact(
            project, "file", _path(i), user, NOW - timedelta(seconds=count - i), 900 + i % 5000, digest
        )


def _paths(project: ProjectId, count: int) -> Iterator[dict[str, Any]]:
    return ({"project_id": project, "path": _path(i), "latest": 1} for i in range(count))


def _catalogue(project: ProjectId, ids: list[str], owners: list[UserId]) -> Iterator[dict[str, Any]]:
    for i, (job, owner) in enumerate(zip(ids, owners, strict=True)):
        yield _artifact(project, "job", job, owner, NOW - timedelta(minutes=len(ids) - i), 0, None)


def _artifact(
    project: ProjectId, kind: str, name: str, creator: UserId, at: datetime, size: int, digest: bytes | None
) -> dict[str, Any]:
    fixed = {"project_id": project, "kind": kind, "name": name, "version": 1, "creator": creator}
    return {**fixed, "created_at": at, "size": size, "digest": digest}


def _jobs(project: ProjectId, ids: list[str], owners: list[UserId]) -> Iterator[dict[str, Any]]:
    ends = ["finished"] * 17 + ["failed", "failed", "killed"]
    for i, (job, owner) in enumerate(zip(ids, owners, strict=True)):
        spec = JobSpec(
            name=f"train {('linear', 'boosted', 'network')[i % 3]} on sector {i % 97}",
            run=Command(("python", "train.py", "--rate", f"{10 ** -(i % 5)}")),
            resources=Resources(1.0, 1024),
            tags={"sector": float(i % 97)},
        )
        at = NOW - timedelta(minutes=len(ids) - i)
        state = ends[i % len(ends)]
        yield {
            "id": job,
            "project_id": project,
            "user_id": owner,
            "name": spec.name,
            "kind": spec.run.kind,
            "spec": SPEC.dump_python(spec, mode="json"),
            "state": state,
            "revision": 5,
            "rank": 0,
            "blocked": 0,
            "attempt": 1,
            "lost": 0,
            "failed": 0,
            "applied": 9,
            "kill_requested": state == "killed",
            "exit_code": 0 if state == "finished" else 1,
            "reason": None if state == "finished" else "exit code 1",
            "usage": {"cpu_seconds": 50.0, "peak_memory_mb": 300.0, "wall_seconds": 55.0 + i % 60},
            "log_lines": 3,
            "log_bytes": 60,
            "device": f"node{i % 8}",
            "submitted_at": at,
            "started_at": at + timedelta(seconds=2),
            "ended_at": at + timedelta(seconds=60),
        }


def _tags(project: ProjectId, amounts: Amounts) -> Iterator[dict[str, Any]]:
    fixed = {"project_id": project, "kind": "job", "key": "sector", "text": None, "moment": None}
    for i in range(amounts.jobs):
        yield {**fixed, "artifact_id": amounts.files + 1 + i, "number": float(i % 97)}


def set_name(number: int) -> str:
    return f"stage-{number:06}"


def _graph(store: Store, caller: Caller, amounts: Amounts) -> list[Part]:
    """File sets that jobs made of one another: each of an older one, ten of each, every seventh of two.

    All share the content of one real set, so that each can be opened.
    """
    made = create_file_set(store, caller, "sectors", ["/images/000/00/"])
    with store.read() as tx:
        content = tx.execute(
            select(file_set_versions).where(file_set_versions.c.artifact_id == made.artifact.id)
        ).one()
    first, jobs_from = made.artifact.id + 1, amounts.files + 1
    project, numbers = caller.project_id, range(amounts.sets)
    same = {"root": content.root, "level": content.level, "first": content.first, "files": content.files}

    def sets() -> Iterator[dict[str, Any]]:
        for i in numbers:
            at = NOW - timedelta(seconds=amounts.sets - i)
            yield _artifact(project, "fileset", set_name(i), caller.user.id, at, made.artifact.size, None)

    def edges() -> Iterator[dict[str, Any]]:
        for i in numbers[10:]:
            for source in (i // 10, i // 10 - 1) if i % 7 == 0 else (i // 10,):
                ends = {"source": first + source, "target": first + i}
                yield {"project_id": project, **ends, "job": jobs_from + i % amounts.jobs}

    return [
        ("file sets", artifacts, sets()),
        (
            "their names",
            file_sets,
            ({"project_id": project, "name": set_name(i), "latest": 1} for i in numbers),
        ),
        (
            "their contents",
            file_set_versions,
            ({"artifact_id": first + i, "sources": [], **same} for i in numbers),
        ),
        ("lineage", lineage, edges()),
    ]


def _history(project: ProjectId, ids: list[str], owners: list[UserId]) -> Iterator[dict[str, Any]]:
    for i, (job, owner) in enumerate(zip(ids, owners, strict=True)):
        at = NOW - timedelta(minutes=len(ids) - i)
        for number, kind in enumerate(STEPS):
            yield {
                "at": at + timedelta(seconds=number),
                "kind": f"job.{kind}",
                "subject": job,
                "project_id": project,
                "actor": owner,
                "body": {},
            }


def _bills(project: ProjectId, ids: list[str], owners: list[UserId]) -> Iterator[dict[str, Any]]:
    for i, (job, owner) in enumerate(zip(ids, owners, strict=True)):
        at = NOW - timedelta(minutes=len(ids) - i)
        yield {
            "job_id": job,
            "attempt": 1,
            "line": 0,
            "project_id": project,
            "user_id": owner,
            "app": f"app{i % 50}",
            "month": f"{at:%Y-%m}",
            "start": at,
            "seconds": 60.0,
            "per_hour": 0.05,
            "micros": 800 + i % 200,
            "currency": "USD",
            "book": "seed",
        }


def _app_id(number: int) -> str:
    return f"app_{number:026}"


def _apps(project: ProjectId, user: UserId, count: int) -> Iterator[dict[str, Any]]:
    """Without a summary: they are looked at here, not learned."""
    for i in range(count):
        fixed = {"project_id": project, "user_id": user, "program": PROGRAM, "metric": None, "summary": None}
        yield {**fixed, "id": _app_id(i), "name": f"stars-{i:03}", "created_at": NOW, "examples_set": None}


def _examples(count: int, each: int = 100) -> Iterator[dict[str, Any]]:
    for i in range(count):
        for j in range(each):
            fixed = {"app_id": _app_id(i), "digest": f"{j:032x}", "fold": j % 5, "on": j % 20 != 0}
            yield {**fixed, "stratum": ("cat", "dog")[j % 2], "fed_at": NOW}


def _trials(ids: list[str], count: int, each: int = 10) -> Iterator[dict[str, Any]]:
    pool = propose_candidates(parse_program(PROGRAM), DataSummary(100, 784, side=28, classes=2))
    for i in range(count):
        for j in range(each):
            candidate = pool[(i + 7 * j) % len(pool)]
            quality = 0.95 - 0.4 / (1 + j) - 0.001 * (i % 50)
            reasons = Reasons(
                "gap", quality, 0.05, 0.01, candidate.cost_s, quality - 0.01, RunnerUp("x", "y", 0.01)
            )
            decision = StartTrial(_app_id(i), candidate.name, 0, "d", reasons)
            yield {
                "app_id": _app_id(i),
                "job_id": ids[i * each + j],
                "candidate": candidate.to_json(),
                "decision": asdict(decision) | {"limit": None},
                "started_at": NOW - timedelta(hours=each - j),
                "examples": 95,
                "ended": True,
                "quality": quality,
                "seconds": 12.0,
                "model_set": f"stars-{i:03}-model:{j + 1}",
            }


def _series(tx: Tx, project: ProjectId, job: str, count: int) -> None:
    rng = random.Random(3)
    for start in range(0, count, BATCH):
        rows = [
            {
                "job_id": job,
                "attempt": 1,
                "project_id": project,
                "artifact_id": None,
                "name": "loss",
                "step": step,
                "value": 2.0 * math.exp(-6 * step / count) + 0.1 * rng.random(),
                "text": None,
                "at": NOW,
            }
            for step in range(start, min(count, start + BATCH))
        ]
        job_series.add_metrics(tx, rows)


def _log(job: str) -> dict[str, Any]:
    fixed = {
        "job_id": job,
        "attempt": 1,
        "number": 0,
        "first_line": 0,
        "lines": 3,
        "stream": "out",
        "at": NOW,
    }
    return {**fixed, "data": zlib.compress(b"epoch 1\nepoch 2\nepoch 3\n")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("home", type=Path)
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    store = Store(f"sqlite:///{asked.home / 'easel.sqlite'}")
    migrate(store, backup=lambda _revision: None)
    found = seed(store, QUICK if asked.quick else Amounts(), print)
    store.close()
    print(f"project {found.project}, token {found.token}, job with the long series {found.long_job}")


if __name__ == "__main__":
    main()
