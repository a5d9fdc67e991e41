from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from easel.cli.simulate import app
from easel.errors import InvalidInput
from easel.schedule.replay import ReplaySettings, replay
from easel.schedule.table import ScoreTable, synthetic

TABLE = synthetic(np.random.default_rng(0), tenants=16, candidates=8)


@pytest.fixture
def history(tmp_path: Path) -> Path:
    lines = ["tenant,candidate,quality,cost"]
    for i, t in enumerate(TABLE.tenants):
        lines += [f"{t},{c},{TABLE.quality[i, k]},{TABLE.cost[i, k]}" for k, c in enumerate(TABLE.candidates)]
    path = tmp_path / "history.csv"
    path.write_text("\n".join(lines))
    return path


def test_more_devices_lower_the_loss_and_nobody_falls_below_the_bound() -> None:
    plan = ReplaySettings(("easel", "round-robin"), (1, 4), serve=6, share=0.3, repetitions=3)
    area = {(r.policy, r.devices): r.area for r in replay(TABLE, plan)}
    assert area["easel", 4] < area["easel", 1]
    for count in (1, 4):
        others = [found for (policy, n), found in area.items() if n == count and policy != "bound"]
        assert 0.0 < area["bound", count] <= min(others)


@pytest.mark.parametrize(
    "plan",
    [
        ReplaySettings(devices=(0,)),
        ReplaySettings(share=0.0),
        ReplaySettings(repetitions=0),
        ReplaySettings(serve=0),
    ],
)
def test_an_impossible_plan_is_refused(plan: ReplaySettings) -> None:
    with pytest.raises(InvalidInput):
        replay(TABLE, plan)


def test_a_history_of_one_or_of_failures_cannot_be_replayed() -> None:
    with pytest.raises(InvalidInput, match="at least two"):
        replay(TABLE.rows([0]), ReplaySettings())
    nothing = ScoreTable(("a", "b"), ("x",), np.full((2, 1), np.nan), np.ones((2, 1)))
    with pytest.raises(InvalidInput, match="nothing to replay"):
        replay(nothing, ReplaySettings())


def test_the_command_prints_json_and_draws(history: Path, tmp_path: Path) -> None:
    picture = tmp_path / "loss.png"
    arguments = ["--history", str(history), "--policy", "hybrid", "--policy", "easel", "-d", "1", "-d", "2"]
    arguments += ["--serve", "4", "--repetitions", "2", "--json", "--picture", str(picture)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    runs = json.loads(result.stdout)["runs"]
    assert {(r["policy"], r["devices"]) for r in runs} == {
        (p, d) for p in ("hybrid", "easel", "greedy with hindsight", "bound") for d in (1, 2)
    }
    assert picture.stat().st_size > 1000


def test_the_command_prints_a_table_for_people(history: Path) -> None:
    result = CliRunner().invoke(app, ["--history", str(history), "--serve", "4", "--repetitions", "1"])
    assert result.exit_code == 0, result.output
    assert "greedy with hindsight" in result.stdout


def test_a_missing_file_says_what_it_should_hold(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["--history", str(tmp_path / "none.csv")])
    assert isinstance(result.exception, InvalidInput)
