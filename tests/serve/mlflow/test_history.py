"""`get-history` on each database: PostgreSQL writes the answer itself unless a step has several values."""

from __future__ import annotations

from typing import Any

import pytest
from tests.serve.conftest import World
from tests.serve.mlflow.test_api import get, metric, new_run, post

KEY = "a long: name/ü"
VALUES: list[Any] = [0.1, 5e-324, 1e300, -7, "NaN", "Infinity", "-Infinity", 3]
SHOWN = [0.1, 5e-324, 1e300, -7, "NaN", 1.7976931348623157e308, -1.7976931348623157e308, 3]


def pages(world: World, run: str, size: int) -> list[list[dict[str, Any]]]:
    found: list[list[dict[str, Any]]] = []
    token: str | None = None
    while True:
        asked: dict[str, Any] = {"run_id": run, "metric_key": KEY, "max_results": size}
        if token is not None:
            asked["page_token"] = token
        page = get(world, "metrics/get-history", **asked)
        found.append(page.get("metrics", []))
        token = page.get("next_page_token")
        if token is None:
            return found


@pytest.mark.parametrize("repeated", [False, True])
def test_pages_tell_every_point_once_and_in_order(either_world: World, repeated: bool) -> None:
    run = new_run(either_world)
    steps = [2**40, *range(1, len(VALUES))]
    points = [
        metric(KEY, value, step, 1000 - n) for n, (step, value) in enumerate(zip(steps, VALUES, strict=True))
    ]
    expected = [
        {"key": KEY, "value": shown, "timestamp": 1000 - n, "step": step}
        for n, (step, shown) in enumerate(zip(steps, SHOWN, strict=True))
    ]
    if repeated:
        points.append(metric(KEY, 8, 3, 2000))
        expected.append({"key": KEY, "value": 8, "timestamp": 2000, "step": 3})
    post(either_world, "runs/log-batch", {"run_id": run, "metrics": points})
    by_step = sorted(expected, key=lambda point: (point["step"], point["timestamp"]))
    by_time = sorted(expected, key=lambda point: point["timestamp"])
    for size in (1, 3, 4):
        found = pages(either_world, run, size)
        assert [len(page) for page in found[:-1]] == [size] * (len(found) - 1)
        assert [point for page in found for point in page] == by_step
    for size in (len(expected), 100):
        assert pages(either_world, run, size) == [by_time]
    assert get(either_world, "metrics/get-history", run_id=run, metric_key=KEY)["metrics"] == by_time


def test_a_metric_that_was_never_logged_has_no_history(either_world: World) -> None:
    run = new_run(either_world)
    assert pages(either_world, run, 10) == [[]]
    assert get(either_world, "metrics/get-history", run_id=run, metric_key="none") == {}
