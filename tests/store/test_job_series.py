"""Series in blocks: whatever the order of the points, nothing is lost or counted twice."""

from __future__ import annotations

from datetime import UTC, datetime

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from easel.ids import JobId
from easel.store import job_series
from easel.store.engine import Store, Tx
from easel.store.job_series import BLOCK, MOST_OPEN, Mark, Series

AT = datetime(2026, 1, 1, tzinfo=UTC)
OF = Series("job_1", 1, "loss")


def log(tx: Tx, points: dict[int, float | None], of: Series = OF) -> None:
    rows = [
        {
            **of._asdict(),
            "project_id": "prj_1",
            "artifact_id": 1,
            "step": step,
            "value": value,
            "text": None if value is not None else "nan",
            "at": AT,
        }
        for step, value in points.items()
    ]
    job_series.add_metrics(tx, rows)


def check(tx: Tx, known: dict[int, float | None]) -> None:
    total, marks = job_series.outline(tx, OF, read_whole=0)
    assert total == len(known)
    assert job_series.series_of(tx, JobId(OF.job_id), OF.attempt) == {OF.name: len(known)}
    assert [mark.step for mark in marks] == sorted({mark.step for mark in marks})
    assert all(known[mark.step] == mark.value for mark in marks)
    assert (marks[0].step, marks[-1].step) == (min(known), max(known))
    numbers = [value for value in known.values() if value is not None]
    if numbers:
        shown = [mark.value for mark in marks if mark.value is not None]
        assert (min(shown), max(shown)) == (min(numbers), max(numbers))
    assert any(mark.value is None for mark in marks) == (None in known.values())


batches = st.lists(
    st.tuples(st.integers(-50, 5000), st.integers(1, 700), st.sampled_from([1, 3]), st.booleans()),
    min_size=1,
    max_size=8,
)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(batches)
def test_late_and_repeated_points_end_up_in_the_right_block(
    sqlite_store: Store, drawn: list[tuple[int, int, int, bool]]
) -> None:
    known: dict[int, float | None] = {}
    with sqlite_store.read() as tx:  # what a reader writes is not kept: each example begins anew
        for number, (start, length, stride, odd) in enumerate(drawn):
            new: dict[int, float | None] = {
                start + i * stride: float((i * 37 + number * 11) % 101) for i in range(length)
            }
            if odd:
                new[start] = None
            log(tx, new)
            known |= new
            check(tx, known)


def test_a_long_series_is_read_from_few_rows(store: Store) -> None:
    values: dict[int, float | None] = {step: float(step % 977) for step in range(20_000)}
    values[7_777] = 1e6
    values[8_888] = None
    with store.write() as tx:
        for start in range(0, 20_000, 1000):
            log(tx, {step: values[step] for step in range(start, start + 1000)})
        total, marks = job_series.outline(tx, OF, read_whole=1000)
        assert total == 20_000
        assert len(marks) < 4 * 20_000 / BLOCK + MOST_OPEN
        assert Mark(7_777, 1e6) in marks
        assert Mark(8_888, None) in marks
        found = job_series.points_at(tx, OF, [7_777, 8_888])
        assert [(point.value, point.text) for point in found] == [(1e6, None), (None, "nan")]


@pytest.mark.parametrize(
    "other", [Series("job_2", 1, "loss"), Series("job_1", 2, "loss"), Series("job_1", 1, "a")]
)
def test_series_do_not_touch_each_other(store: Store, other: Series) -> None:
    with store.write() as tx:
        log(tx, dict.fromkeys(range(1000), 1.0))
        log(tx, dict.fromkeys(range(1000), 2.0), other)
        log(tx, {0: 5.0}, other)
        assert {mark.value for mark in job_series.outline(tx, OF, read_whole=0)[1]} == {1.0}
