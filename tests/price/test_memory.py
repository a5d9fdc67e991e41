from __future__ import annotations

import json

import numpy as np
import pytest

from easel.price.memory import MemoryModel, learn_memory
from easel.price.runs import ProfiledRun, RunOutcome


def run(rows: float, memory_mb: float, outcome: RunOutcome, peak: float | None = None) -> ProfiledRun:
    return ProfiledRun({"rows": rows, "cpus": 1.0, "memory_mb": memory_mb}, outcome, 1.0, peak)


FINISHED = [run(rows, 4096, RunOutcome.FINISHED, 200 + 0.1 * rows) for rows in (1000, 2000, 4000, 8000)]


def test_peaks_are_a_fixed_part_and_one_that_grows() -> None:
    model = learn_memory(FINISHED)
    assert model.peak({"rows": 3000}) == pytest.approx(500, rel=0.05)
    assert model.peak({"rows": 32000}) == pytest.approx(3400, rel=0.15)
    safe, likely = model.peak({"rows": 3000}, 0.99), model.peak({"rows": 3000}, 0.5)
    assert safe is not None
    assert likely is not None
    assert safe > likely


def test_running_out_of_memory_sets_a_floor_for_runs_at_least_as_large() -> None:
    model = learn_memory(
        [run(4000, 512, RunOutcome.OUT_OF_MEMORY), run(8000, 1024, RunOutcome.OUT_OF_MEMORY)]
    )
    assert [model.floor({"rows": rows}) for rows in (1000, 4000, 6000, 9000)] == [0, 512, 512, 1024]
    sizes = np.array([512.0, 768.0, 1024.0, 1280.0])
    assert model.enough({"rows": 5000}, sizes).tolist() == [False, True, True, True]
    assert model.enough({"rows": 8000}, sizes).tolist() == [False, False, False, True]
    assert model.peak({"rows": 5000}) is None


def test_both_kinds_of_knowledge_count() -> None:
    model = learn_memory([*FINISHED, run(1000, 512, RunOutcome.OUT_OF_MEMORY)])
    assert model.enough({"rows": 1000}, np.array([256.0, 512.0, 1024.0])).tolist() == [False, False, True]


def test_other_failures_say_nothing_about_memory() -> None:
    model = learn_memory([run(4000, 512, RunOutcome.FAILED), run(4000, 512, RunOutcome.STRAGGLER)])
    assert model.enough({"rows": 4000}, np.array([64.0])).tolist() == [True]


@pytest.mark.parametrize("runs", [FINISHED, [run(4000, 512, RunOutcome.OUT_OF_MEMORY)]])
def test_a_memory_model_survives_being_written_down(runs: list[ProfiledRun]) -> None:
    model = learn_memory(runs)
    again = MemoryModel.from_json(json.loads(json.dumps(model.to_json())))
    assert again.peak({"rows": 5000}, 0.9) == model.peak({"rows": 5000}, 0.9)
    assert again.floor({"rows": 5000}) == model.floor({"rows": 5000})


def test_a_command_without_arguments_has_a_peak_too() -> None:
    runs = [ProfiledRun({"cpus": c, "memory_mb": 512.0}, RunOutcome.FINISHED, 1.0, 100.0) for c in (1.0, 2.0)]
    assert learn_memory(runs).peak({}) == pytest.approx(100, rel=0.05)
