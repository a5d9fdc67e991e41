"""Batches of points that a client logs to one run: one statement of PostgreSQL keeps them and their series' summaries.

The values travel as arrays written here, which PostgreSQL reads at once. SQLite, where statements cost next to nothing,
goes the usual way.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from easel.store import job_series
from easel.store.engine import AnyRow, Tx
from easel.store.job_series import INFINITE, MOST_OPEN, Series
from easel.store.schema.metadata import Moment
from easel.store.upsert import array_text


class LoggedRun(NamedTuple):
    """Whose points they are."""

    job_id: str
    attempt: int
    project_id: str
    artifact_id: int


class Logged(NamedTuple):
    """One value, which may be no number or infinite; `at` in microseconds since 1970."""

    name: str
    step: int
    value: float
    at: int


class _Summary:
    """The newest, the least and the largest of a series' points in the batch."""

    __slots__ = ("first_step", "high", "last", "last_rank", "low")

    def __init__(self, point: Logged) -> None:
        self.last, self.last_rank = point, _rank(point)
        self.first_step = point.step
        self.low = self.high = point.value if math.isfinite(point.value) else None

    def join(self, point: Logged) -> None:
        last = self.last
        if point.step > last.step or (point.step == last.step and _rank(point) >= self.last_rank):
            self.last, self.last_rank = point, _rank(point)
        if point.step < self.first_step:
            self.first_step = point.step
        value = point.value
        if math.isfinite(value):
            if self.low is None or value < self.low:
                self.low = value
            if self.high is None or value > self.high:
                self.high = value


def _rank(point: Logged) -> tuple[int, float]:
    """The key by which points at one step are compared: the later counts, then the larger; NaN counts least."""
    return point.at, -math.inf if math.isnan(point.value) else point.value


# A point that is not made stood there already, or another at its step did. `first_step` tells whether one comes late.
_LATER = """old.last_step IS NULL
      OR (excluded.last_step, excluded.last_at, coalesce(excluded.last, '-Infinity'))
        >= (old.last_step, old.last_at, coalesce(old.last, '-Infinity'))"""
_LOG = """
WITH given AS MATERIALIZED (
  SELECT * FROM unnest(CAST(:names AS varchar[]), CAST(:steps AS bigint[]), CAST(:values AS float8[]),
    CAST(:texts AS varchar[]), CAST(:times AS bigint[])) AS g(name, step, value, text, at)
), made AS (
  INSERT INTO job_metrics (job_id, attempt, name, step, value, text, at)
  SELECT :job_id, CAST(:attempt AS integer), name, step, value, text, at FROM given
  ON CONFLICT DO NOTHING RETURNING name, step
), summed AS MATERIALIZED (
  SELECT * FROM unnest(CAST(:series AS varchar[]), CAST(:points AS bigint[]), CAST(:first_steps AS bigint[]),
    CAST(:last_steps AS bigint[]), CAST(:last_times AS bigint[]), CAST(:lasts AS float8[]),
    CAST(:last_texts AS varchar[]), CAST(:lows AS float8[]), CAST(:highs AS float8[]))
    AS s(name, points, first_step, last_step, last_at, last, last_text, low, high)
), merged AS (
  INSERT INTO job_series AS old (job_id, attempt, name, closed, open, project_id, artifact_id, last_step, last_at, last,
    last_text, low, high)
  SELECT :job_id, CAST(:attempt AS integer), name, 0, points, :project_id, CAST(:artifact_id AS bigint), last_step,
    last_at, last, last_text, low, high FROM summed
  ON CONFLICT (job_id, attempt, name) DO UPDATE SET
    open = old.open + excluded.open,
    project_id = excluded.project_id,
    artifact_id = excluded.artifact_id,
    last_step = CASE WHEN {later} THEN excluded.last_step ELSE old.last_step END,
    last_at = CASE WHEN {later} THEN excluded.last_at ELSE old.last_at END,
    last = CASE WHEN {later} THEN excluded.last ELSE old.last END,
    last_text = CASE WHEN {later} THEN excluded.last_text ELSE old.last_text END,
    low = least(old.low, excluded.low),
    high = greatest(old.high, excluded.high)
  RETURNING name, closed_to, open
)
SELECT m.name, m.closed_to, m.open, CAST(NULL AS bigint) AS step FROM merged m JOIN summed s ON s.name = m.name
WHERE m.open >= {enough} OR m.closed_to >= s.first_step
UNION ALL
SELECT g.name, NULL, NULL, g.step FROM given g
WHERE NOT EXISTS (SELECT FROM made d WHERE d.name = g.name AND d.step = g.step)
"""
_LOG_BATCH = text(_LOG.replace("{later}", _LATER).replace("{enough}", str(MOST_OPEN)))
# Looking for points that stand there takes as long as adding the others: a large batch is first taken to be new.
_LOG_NEW = text(
    _LOG[: _LOG.index("UNION ALL")]
    .replace("  ON CONFLICT DO NOTHING RETURNING name, step\n", "")
    .replace("{later}", _LATER)
    .replace("{enough}", str(MOST_OPEN))
)
_LARGE = 200


def add_batch(tx: Tx, run: LoggedRun, points: Sequence[Logged]) -> None:
    """Log points as MLflow means them: further points at a step are kept beside the first, the same one only once."""
    if not points:
        return
    if tx.conn.dialect.name != "postgresql":
        job_series.add_further(tx, [as_row(run, point) for point in points])
        return
    first: dict[tuple[str, int], Logged] = {}
    others = [point for point in points if first.setdefault((point.name, point.step), point) is not point]
    closing: list[tuple[Series, int | None, int]] = []
    standing: set[tuple[str, int]] = set()
    for name, closed_to, opened, step in _logged(tx, _values(run, points, list(first.values())), len(first)):
        if step is None:
            closing.append((Series(run.job_id, run.attempt, name), closed_to, opened))
        else:
            standing.add((name, step))
    others += [first[place] for place in standing]
    job_series.add_repeats(tx, [as_row(run, point) for point in others])
    for of, closed_to, opened in closing:
        new = [step for name, step in first if name == of.name and (name, step) not in standing]
        job_series.make_blocks(tx, of, closed_to, opened, new)


def _logged(tx: Tx, values: Mapping[str, Any], count: int) -> Iterable[AnyRow]:
    """Keep the points; returns the series that need blocks, and the places of points that were not new."""
    if count >= _LARGE:
        with contextlib.suppress(IntegrityError), tx.nested():
            return tx.execute(_LOG_NEW, values).all()
    return tx.execute(_LOG_BATCH, values)


def _values(run: LoggedRun, points: Sequence[Logged], first: Sequence[Logged]) -> dict[str, Any]:
    """The parameters of the statement: `first` are the points that are new as far as the batch tells."""
    found: dict[str, _Summary] = {}
    for point in points:
        known = found.get(point.name)
        if known is None:
            found[point.name] = _Summary(point)
        else:
            known.join(point)
    counts: dict[str, int] = dict.fromkeys(found, 0)
    for point in first:
        counts[point.name] += 1
    names = sorted(found)
    sums = [found[name] for name in names]
    values, texts = _told([point.value for point in first])
    lasts, last_texts = _told([each.last.value for each in sums])
    lasts = [
        value if text is None else INFINITE.get(text) for value, text in zip(lasts, last_texts, strict=True)
    ]
    return {
        **run._asdict(),
        "names": array_text([point.name for point in first]),
        "steps": array_text([point.step for point in first]),
        "values": array_text(values),
        "texts": array_text(texts),
        "times": array_text([point.at for point in first]),
        "series": array_text(names),
        "points": array_text([counts[name] for name in names]),
        "first_steps": array_text([each.first_step for each in sums]),
        "last_steps": array_text([each.last.step for each in sums]),
        "last_times": array_text([each.last.at for each in sums]),
        "lasts": array_text(lasts),
        "last_texts": array_text(last_texts),
        "lows": array_text([each.low for each in sums]),
        "highs": array_text([each.high for each in sums]),
    }


def _told(values: Sequence[float]) -> tuple[list[float | None], list[str | None]]:
    """Returns the numbers and, for those that are none, what they are."""
    if all(map(math.isfinite, values)):
        return list(values), [None] * len(values)
    finite = [math.isfinite(value) for value in values]
    return (
        [value if is_number else None for value, is_number in zip(values, finite, strict=True)],
        [None if is_number else str(value) for value, is_number in zip(values, finite, strict=True)],
    )


def as_row(run: LoggedRun, point: Logged) -> dict[str, Any]:
    """Returns the point as `job_series` takes it."""
    (value,), (text,) = _told([point.value])
    return {
        **run._asdict(),
        "name": point.name,
        "step": point.step,
        "value": value,
        "text": text,
        "at": Moment.moment(point.at),
    }
