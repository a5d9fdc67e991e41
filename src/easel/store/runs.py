"""Queries on jobs as runs: their records, and all that they logged, many at a time."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, delete, insert, literal, select, tuple_, update

from easel.declare.job import JobSpec
from easel.ids import JobId, ProjectId, UserId
from easel.records.job import JobState
from easel.records.lake import Kind
from easel.records.run import DatasetUse, LastValue, ModelUse, RunLog, RunRecord
from easel.store.engine import AnyRow, Tx
from easel.store.job_series import Point, Series
from easel.store.job_specs import SPEC
from easel.store.schema.identity import users
from easel.store.schema.jobs import job_metric_repeats, job_metrics, job_series, jobs
from easel.store.schema.lake import tags
from easel.store.schema.tracking import run_datasets, run_models
from easel.store.upsert import insert_or, is_in, lock

FREE = "free"
PARAM = "param."
"""A run's parameter `lr` is the tag `param.lr` of its job."""
_ESCAPED = "tag."
RUN_COLUMNS = (
    jobs.c.id,
    jobs.c.project_id,
    jobs.c.user_id,
    jobs.c.name,
    jobs.c.kind,
    jobs.c.spec["run"]["user"].as_string().label("said_user"),
    jobs.c.state,
    jobs.c.attempt,
    jobs.c.artifact_id,
    jobs.c.experiment,
    jobs.c.output_set,
    jobs.c.submitted_at,
    jobs.c.ended_at,
    jobs.c.deleted_at,
)


def run_of(row: AnyRow) -> RunRecord:
    free = row.kind == FREE
    return RunRecord(
        id=JobId(row.id),
        project_id=ProjectId(row.project_id),
        user_id=UserId(row.user_id),
        name=row.name,
        free=free,
        said_user=(row.said_user or "") if free else "",
        state=JobState(row.state),
        attempt=row.attempt,
        artifact_id=row.artifact_id,
        experiment=row.experiment,
        output_set=row.output_set,
        submitted_at=row.submitted_at,
        ended_at=row.ended_at,
        deleted_at=row.deleted_at,
    )


def selected() -> Select[*tuple[Any, ...]]:
    return select(*RUN_COLUMNS)


def find(tx: Tx, project_id: ProjectId, run_id: str) -> RunRecord | None:
    row = tx.execute(selected().where(jobs.c.project_id == project_id, jobs.c.id == run_id)).one_or_none()
    return run_of(row) if row is not None else None


def by_id(tx: Tx, run_id: str) -> RunRecord | None:
    """Returns a run of whichever project; only for whoever checks that."""
    row = tx.execute(selected().where(jobs.c.id == run_id)).one_or_none()
    return run_of(row) if row is not None else None


def find_many(tx: Tx, project_id: ProjectId, ids: Sequence[str]) -> dict[str, RunRecord]:
    query = selected().where(jobs.c.project_id == project_id, is_in(tx, jobs.c.id, ids))
    return {row.id: run_of(row) for row in tx.execute(query)}


def hold(tx: Tx, run_id: str) -> None:
    """Waits for whoever writes to this run already, and makes others wait."""
    lock(tx, f"run {run_id}")


def add(
    tx: Tx,
    of: RunRecord,
    spec: JobSpec,
    state: JobState,
    started_at: datetime,
    ended_at: datetime | None = None,
) -> None:
    """A free run: a job that is in nobody's queue."""
    tx.execute(
        insert(jobs).values(
            id=of.id,
            project_id=of.project_id,
            user_id=of.user_id,
            name=of.name,
            kind=FREE,
            spec=SPEC.dump_python(spec, mode="json"),
            state=state.value,
            revision=0,
            rank=0,
            blocked=0,
            attempt=of.attempt,
            lost=0,
            failed=0,
            applied=0,
            kill_requested=False,
            log_lines=0,
            log_bytes=0,
            artifact_id=of.artifact_id,
            submitted_at=started_at,
            started_at=started_at,
            ended_at=ended_at,
            experiment=of.experiment,
        )
    )


def change(tx: Tx, run_id: str, values: Mapping[str, Any]) -> None:
    tx.execute(update(jobs).where(jobs.c.id == run_id).values(**values, revision=jobs.c.revision + 1))


def rename(tx: Tx, run_id: str, name: str, shown: str) -> None:
    """`shown` is the name as our own pages show it."""
    spec = dict(tx.execute(select(jobs.c.spec).where(jobs.c.id == run_id)).scalar_one())
    change(tx, run_id, {"name": name[:100], "spec": {**spec, "name": shown}})


def user_names(tx: Tx, ids: Iterable[str]) -> dict[str, str]:
    query = select(users.c.id, users.c.name).where(is_in(tx, users.c.id, sorted(set(ids))))
    return {row.id: row.name for row in tx.execute(query)}


def logs_of(tx: Tx, runs: Sequence[RunRecord]) -> dict[str, RunLog]:
    """What each run logged: four statements, however many they are."""
    if not runs:
        return {}
    ids = [run.id for run in runs]
    attempts = {run.id: run.attempt for run in runs}
    metrics: dict[str, list[LastValue]] = {run.id: [] for run in runs}
    columns = (
        job_series.c.job_id,
        job_series.c.attempt,
        job_series.c.name,
        job_series.c.last_step,
        job_series.c.last_at,
        job_series.c.last,
        job_series.c.last_text,
    )
    for job_id, attempt, *value in tx.execute(select(*columns).where(is_in(tx, job_series.c.job_id, ids))):
        if attempt == attempts[job_id] and value[1] is not None:
            metrics[job_id].append(LastValue(*value))
    params, plain = _tags(tx, runs)
    datasets = _datasets(tx, ids)
    models: dict[str, list[ModelUse]] = {}
    for row in tx.execute(select(run_models).where(is_in(tx, run_models.c.job_id, ids))):
        models.setdefault(row.job_id, []).append(ModelUse(row.model_id, row.role, row.step))
    return {
        run.id: RunLog(
            metrics[run.id], params[run.id], plain[run.id], datasets.get(run.id, ()), models.get(run.id, ())
        )
        for run in runs
    }


def _tags(tx: Tx, runs: Sequence[RunRecord]) -> tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]]:
    by_artifact = {run.artifact_id: run.id for run in runs}
    params: dict[str, dict[str, str]] = {run.id: {} for run in runs}
    plain: dict[str, dict[str, str]] = {run.id: {} for run in runs}
    columns = (tags.c.artifact_id, tags.c.key, tags.c.text, tags.c.number, tags.c.moment, tags.c.whole)
    query = select(*columns).where(is_in(tx, tags.c.artifact_id, list(by_artifact)))
    for artifact, key, text, number, moment, whole in tx.execute(query):
        value = whole if whole is not None else text
        if value is None:
            value = f"{number:g}" if number is not None else moment.isoformat()
        run = by_artifact[artifact]
        if key.startswith(PARAM):
            params[run][key[len(PARAM) :]] = value
        else:
            plain[run][tag_name(key)] = value
    return params, plain


def tag_key(name: str) -> str:
    """How a run's tag is kept; what could be taken for a parameter is marked as a tag."""
    return _ESCAPED + name if name.startswith((PARAM, _ESCAPED)) else name


def tag_name(key: str) -> str:
    return key.removeprefix(_ESCAPED)


def param_values(tx: Tx, artifact_id: int, names: Sequence[str]) -> dict[str, str]:
    """Returns the values of those of these parameters that were logged already."""
    keys = [PARAM + name for name in names]
    query = select(tags.c.key, tags.c.text, tags.c.whole).where(
        tags.c.artifact_id == artifact_id, is_in(tx, tags.c.key, keys)
    )
    return {key[len(PARAM) :]: whole if whole is not None else text for key, text, whole in tx.execute(query)}


def remove_tag(tx: Tx, artifact_id: int, name: str) -> bool:
    done = tx.execute(delete(tags).where(tags.c.artifact_id == artifact_id, tags.c.key == tag_key(name)))
    return done.rowcount > 0


def tag_value(tx: Tx, artifact_id: int, name: str) -> str | None:
    query = select(tags.c.text, tags.c.whole).where(
        tags.c.artifact_id == artifact_id, tags.c.key == tag_key(name), tags.c.kind == Kind.JOB
    )
    row = tx.execute(query).one_or_none()
    return None if row is None else row.whole if row.whole is not None else row.text


def _datasets(tx: Tx, ids: Sequence[str]) -> dict[str, list[DatasetUse]]:
    found: dict[str, list[DatasetUse]] = {}
    query = select(run_datasets).where(is_in(tx, run_datasets.c.job_id, ids))
    for row in tx.execute(query.order_by(run_datasets.c.name, run_datasets.c.digest)):
        found.setdefault(row.job_id, []).append(DatasetUse(row.name, row.digest, row.context, row.body))
    return found


def add_datasets(
    tx: Tx, run: RunRecord, new: Sequence[DatasetUse], file_sets: Mapping[tuple[str, str], int]
) -> None:
    """What is named again keeps what was said first."""
    rows = [
        {
            "job_id": run.id,
            "name": each.name,
            "digest": each.digest,
            "project_id": run.project_id,
            "context": each.context,
            "body": dict(each.body),
            "file_set": file_sets.get((each.name, each.digest)),
        }
        for each in new
    ]
    if rows:
        tx.execute(insert_or(tx, run_datasets).on_conflict_do_nothing(), rows)


def dataset_summaries(
    tx: Tx, project_id: ProjectId, experiments: Sequence[int], most: int
) -> list[tuple[int, str, str, str | None]]:
    """(experiment, name, digest, context) of the data sets that runs of these experiments read."""
    query = (
        select(jobs.c.experiment, run_datasets.c.name, run_datasets.c.digest, run_datasets.c.context)
        .join(jobs, jobs.c.id == run_datasets.c.job_id)
        .where(run_datasets.c.project_id == project_id, is_in(tx, jobs.c.experiment, experiments))
        .distinct()
        .order_by(run_datasets.c.name, run_datasets.c.digest)
        .limit(most)
    )
    return [tuple(row) for row in tx.execute(query)]


def add_models(tx: Tx, run_id: str, new: Sequence[ModelUse]) -> None:
    rows = [
        {"job_id": run_id, "model_id": each.model_id, "role": each.role, "step": each.step} for each in new
    ]
    if rows:
        tx.execute(insert_or(tx, run_models).on_conflict_do_nothing(), rows)


Place = tuple[int, datetime, float]
"""Where a point stands in a history: by step, then by time, then by value."""


def history(tx: Tx, of: Series, after: Place | None = None, limit: int | None = None) -> list[Point]:
    """Points of a series, also several at a step, in the order of their steps."""
    merged = heapq.merge(_first(tx, of, after, limit), _repeats(tx, of, after, limit), key=place)
    found = []
    for point in merged:
        if after is not None and place(point) <= after:
            continue
        found.append(point)
        if limit is not None and len(found) == limit:
            break
    return found


def place(point: Point) -> Place:
    return point.step, point.at, float("inf") if point.value is None else point.value


def _first(tx: Tx, of: Series, after: Place | None, limit: int | None) -> Iterator[Point]:
    table = job_metrics
    query = select(table.c.step, table.c.value, table.c.text, table.c.at).where(
        table.c.job_id == of.job_id, table.c.attempt == of.attempt, table.c.name == of.name
    )
    if after is not None:
        query = query.where(table.c.step >= after[0])
    if limit is not None:
        query = query.limit(limit + 1)
    return (Point(*row) for row in tx.execute(query.order_by(table.c.step)))


def _repeats(tx: Tx, of: Series, after: Place | None, limit: int | None) -> Iterator[Point]:
    table = job_metric_repeats
    query = select(table.c.step, table.c.value, table.c.text, table.c.at).where(
        table.c.job_id == of.job_id, table.c.attempt == of.attempt, table.c.name == of.name
    )
    if after is not None:
        query = query.where(
            tuple_(table.c.step, table.c.at) >= tuple_(after[0], literal(after[1], table.c.at.type))
        )
    if limit is not None:
        query = query.limit(limit + 1000)  # some at the very place where the page before ended
    rows = tx.execute(query.order_by(table.c.step, table.c.at))
    return iter(sorted((Point(*row) for row in rows), key=place))


def histories(
    tx: Tx, project_id: ProjectId, ids: Sequence[str], name: str, steps: Sequence[int] | None = None
) -> dict[str, list[Point]]:
    """The points of one metric in several runs; only those at `steps` where they are given."""
    found: dict[str, list[Point]] = {}
    for table in (job_metrics, job_metric_repeats):
        query = (
            select(table.c.job_id, table.c.step, table.c.value, table.c.text, table.c.at)
            .join(jobs, (jobs.c.id == table.c.job_id) & (jobs.c.attempt == table.c.attempt))
            .where(jobs.c.project_id == project_id, is_in(tx, table.c.job_id, ids), table.c.name == name)
        )
        if steps is not None:
            query = query.where(is_in(tx, table.c.step, steps))
        for job_id, *point in tx.execute(query):
            found.setdefault(job_id, []).append(Point(*point))
    return found


def steps_of(
    tx: Tx, project_id: ProjectId, ids: Sequence[str], name: str, between: tuple[int, int] | None
) -> dict[str, list[int]]:
    """The steps at which each of these runs logged a metric."""
    query = (
        select(job_metrics.c.job_id, job_metrics.c.step)
        .join(jobs, (jobs.c.id == job_metrics.c.job_id) & (jobs.c.attempt == job_metrics.c.attempt))
        .where(
            jobs.c.project_id == project_id, is_in(tx, job_metrics.c.job_id, ids), job_metrics.c.name == name
        )
    )
    if between is not None:
        query = query.where(job_metrics.c.step.between(*between))
    found: dict[str, list[int]] = {}
    for job_id, step in tx.execute(query.order_by(job_metrics.c.job_id, job_metrics.c.step)):
        found.setdefault(job_id, []).append(step)
    return found
