"""The benchmarks' quick forms run, and the thesis's counts come out of its data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from benchmarks.papers import cloud_jobs
from benchmarks.papers.nephele_tables import arrays, cost_reduction

ROOT = Path(cloud_jobs.__file__).resolve().parents[2]


def _job() -> cloud_jobs.Job:
    try:
        return cloud_jobs.load(cloud_jobs.data("trimtuner/cnn.csv"), extrapolated=False)
    except SystemExit:
        pytest.skip("the evaluation data is absent: set EASEL_DATA")


def test_the_thesis_counts_come_out_exactly() -> None:
    t = arrays(_job())
    ok = (t["accuracy"] >= 0.85) & (t["time"] <= 300)
    assert (int(ok.sum()), int(ok[:, -1].sum())) == (208, 61)
    assert int((t["cost"][:, -1] <= 0.1).sum()) == 111
    assert int(((t["cost"] <= 0.1) & (t["accuracy"] >= 0.85))[:, -1].sum()) == 69
    assert float(t["cost"][ok].min()) == pytest.approx(0.003546, abs=1e-6)
    assert cost_reduction(t, 0.85, 300.0) == pytest.approx(0.755, abs=1e-3)


def test_prices_computed_from_the_rates_are_the_published_ones() -> None:
    job = _job()
    computed = [
        (job.space.price_per_hour(dict(k)) or 0.0) * v["time"] / 3600 for k, v in job.measured.items()
    ]
    assert np.allclose(computed, [v["cost"] for v in job.measured.values()])


@pytest.mark.parametrize(
    "command",
    [
        ["benchmarks.papers.nephele_search", "--quick", "--strategies", "nephele", "lynceus"],
        ["benchmarks.papers.fabulinus_search", "--quick", "--strategies", "ei-c", "auto", "fabulinus"],
        ["benchmarks.papers.fabulinus_two_fidelities", "--quick"],
        ["benchmarks.suggest", "--quick"],
    ],
    ids=lambda c: c[0].rsplit(".", 1)[-1],
)
def test_the_quick_form_runs(command: list[str]) -> None:
    _job()
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "auto" in done.stdout or "nephele" in done.stdout
