"""Histories of metrics: whole, in pages, of several runs, or thinned to what a chart shows."""

from __future__ import annotations

import base64
import binascii
import json
from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from easel.flow.lake.visible import hidden_jobs
from easel.flow.mlflow.errors import invalid
from easel.flow.mlflow.runs import find, milliseconds, moment
from easel.records.identity import Caller
from easel.store import job_series, metric_pages, runs
from easel.store.engine import Tx
from easel.store.job_series import Point as Point
from easel.store.job_series import Series

PAGE = 25_000
"""Up to so many points a history comes in MLflow's own order, by time; longer ones by step, as the index has them."""
MAX_RUNS = 100


class RunPoint(NamedTuple):
    run_id: str
    point: Point


def history(
    tx: Tx, caller: Caller, run_id: str, key: str, *, max_results: int | None, page_token: str | None
) -> tuple[list[Point], str | None]:
    """Every value that was logged under a key, or a page of them and the token of the next."""
    record = find(tx, caller, run_id)
    of = Series(record.id, record.attempt, key)
    after = _opened(page_token)
    if max_results is None:
        found = runs.history(tx, of, after)
        return (sorted(found, key=_by_time) if len(found) <= PAGE else found), None
    if max_results < 1:
        raise invalid(
            f"Invalid value {max_results} for parameter 'max_results' supplied: it must be at least 1"
        )
    found = runs.history(tx, of, after, max_results + 1)
    if len(found) > max_results:
        return found[:max_results], _token(found[max_results - 1])
    if after is None:
        found = sorted(found, key=_by_time)
    return found, None


class Columns(NamedTuple):
    """Points in their order; `times` in milliseconds. What is no number has as value a text that says which."""

    steps: Sequence[int]
    values: Sequence[float | str]
    times: Sequence[int]


def history_in_columns(
    tx: Tx, caller: Caller, run_id: str, key: str, *, max_results: int | None, page_token: str | None
) -> tuple[list[Columns], str | None] | None:
    """Returns what `history` does, in columns of some points each; None where the database cannot tell it so."""
    record = find(tx, caller, run_id)
    of = Series(record.id, record.attempt, key)
    if (max_results is not None and max_results < 1) or not metric_pages.in_columns(tx, of):
        return None
    after = _opened(page_token)
    step = None if after is None else after[0]
    limit = None if max_results is None else max_results + 1
    parts = [_told(part) for part in metric_pages.read_columns(tx, of, step, limit)]
    count = sum(len(part.steps) for part in parts)
    if max_results is not None and count > max_results:
        parts[-1] = Columns._make(column[:-1] for column in parts[-1])
        if not parts[-1].steps:
            parts.pop()
        last = job_series.points_at(tx, of, [parts[-1].steps[-1]])
        return parts, _token(last[0])
    if after is None and count <= (PAGE if max_results is None else max_results):
        parts = _in_order_of_time(parts)
    return parts, None


def _told(part: metric_pages.SeriesColumns) -> Columns:
    times = [at // 1000 for at in part.times]
    if not part.texts:
        return Columns(part.steps, part.values, times)  # type: ignore[arg-type]
    texts = iter(part.texts)
    return Columns(part.steps, [next(texts) if value is None else value for value in part.values], times)


def _in_order_of_time(parts: Sequence[Columns]) -> list[Columns]:
    steps = [step for part in parts for step in part.steps]
    values = [value for part in parts for value in part.values]
    times = [at for part in parts for at in part.times]
    if all(one <= other for one, other in pairwise(times)):
        return list(parts)
    order = sorted(range(len(times)), key=lambda place: (times[place], steps[place]))
    return [
        Columns(
            [steps[place] for place in order],
            [values[place] for place in order],
            [times[place] for place in order],
        )
    ]


def of_several(tx: Tx, caller: Caller, run_ids: Sequence[str], key: str, max_results: int) -> list[RunPoint]:
    """The values of one metric in several runs, by run, then by time."""
    found = runs.histories(tx, caller.project_id, _shown(tx, caller, run_ids), key)
    points = [
        RunPoint(run_id, point) for run_id in sorted(found) for point in sorted(found[run_id], key=_by_time)
    ]
    return points[:max_results]


def thinned(
    tx: Tx,
    caller: Caller,
    run_ids: Sequence[str],
    key: str,
    *,
    between: tuple[int, int] | None,
    max_results: int,
) -> list[RunPoint]:
    """About `max_results` steps that lie evenly, and always the first and the last of each run."""
    run_ids = _shown(tx, caller, run_ids)
    steps = runs.steps_of(tx, caller.project_id, run_ids, key, between)
    every = sorted({step for found in steps.values() for step in found})
    if not every:
        return []
    low, high = between or (every[0], every[-1])
    wanted = set(sampled(low, high, max_results, every))
    for found in steps.values():
        wanted |= {found[0], found[-1]}
    points = runs.histories(tx, caller.project_id, run_ids, key, sorted(wanted))
    return [
        RunPoint(run_id, point)
        for run_id in run_ids
        for point in sorted(points.get(run_id, ()), key=_by_step)
    ]


def _shown(tx: Tx, caller: Caller, run_ids: Sequence[str]) -> list[str]:
    hidden = hidden_jobs(tx, caller, run_ids)
    return [run_id for run_id in run_ids if run_id not in hidden]


def sampled(low: int, high: int, most: int, steps: Sequence[int]) -> list[int]:
    """Steps of the sorted list from `low` to `high` that lie evenly; all of them where they are few."""
    start, end = bisect_left(steps, low), bisect_left(steps, high + 1)
    inside = steps[start:end]
    if len(inside) <= most:
        return list(inside)
    stride = len(inside) / most
    chosen = [inside[int(stride * number)] for number in range(most)]
    return chosen if chosen[-1] == inside[-1] else [*chosen, inside[-1]]


def _by_time(point: Point) -> tuple[object, ...]:
    return point.at, point.step, float("inf") if point.value is None else point.value


def _by_step(point: Point) -> tuple[object, ...]:
    return point.step, point.at, float("inf") if point.value is None else point.value


def _token(last: Point) -> str:
    place = [last.step, milliseconds(last.at), last.value]
    return base64.b64encode(json.dumps(place).encode()).decode()


def _opened(token: str | None) -> runs.Place | None:
    if not token:
        return None
    try:
        step, at, value = json.loads(base64.b64decode(token, validate=True))
        return int(step), moment(int(at)), float("inf") if value is None else float(value)
    except (ValueError, TypeError, binascii.Error, RecursionError) as error:
        raise invalid("Invalid page token, could not base64-decode") from error
