"""How a point becomes a job."""

from __future__ import annotations

import json
from typing import Any

import pytest

from easel.declare.job import Command, EntryPoint, Notebook
from easel.errors import InvalidInput
from easel.flow.studies.point import fill, job_for
from easel.flow.studies.prices import rates_of
from easel.price.book import book_named
from easel.wire.study import study_fields

STUDY = """
name: digits
job:
  command: python train.py --rate {rate} --momentum {momentum} --layout={x}
  input: data:1
  environment: {variables: {SEED: "1"}}
space:
  - {name: optimiser, type: categorical, values: [sgd, adam]}
  - {name: rate, type: ordinal, values: [1e-4, 0.01]}
  - {name: momentum, type: float, low: 0, high: 0.9, when: {dimension: optimiser, values: [sgd]}}
  - {name: vcpu, type: ordinal, values: [0.5, 2], role: resource}
  - {name: memory_mb, type: ordinal, values: [512, 1024], role: resource}
  - {name: data_fraction, type: ordinal, values: [0.1, 1.0], role: fidelity}
goal: {maximise: accuracy, budget: {count: 3}}
"""
POINT: dict[str, Any] = {
    "optimiser": "adam",
    "rate": 1e-4,
    "vcpu": 2,
    "memory_mb": 512,
    "data_fraction": 0.1,
}


def test_a_point_fills_the_command_and_gets_its_resources_and_its_share_of_the_data() -> None:
    job = job_for(study_fields(STUDY).spec(), "digits", 7, POINT, "digits-sample:1", 60.0)
    assert isinstance(job.run, Command)
    # momentum does not apply to adam: the argument and its flag are left out; {x} names no dimension
    assert job.run.argv == ("python", "train.py", "--rate", "0.0001", "--layout={x}")
    assert (job.resources.vcpu, job.resources.memory_mb, job.resources.gpus) == (2.0, 512, 0.0)
    assert job.environment.variables["EASEL_DATA_FRACTION"] == "0.1"
    assert json.loads(job.environment.variables["EASEL_POINT"]) == POINT
    assert job.environment.variables["SEED"] == "1"
    assert (job.input, job.time_limit_s) == ("digits-sample:1", 60.0)
    assert job.tags == {"study": "digits", "point": 7.0}


def test_an_entry_point_is_called_with_the_point() -> None:
    text = STUDY.replace(
        "command: python train.py --rate {rate} --momentum {momentum} --layout={x}", "entry: train:main"
    )
    run = job_for(study_fields(text).spec(), "digits", 0, POINT, None, None).run
    assert isinstance(run, EntryPoint)
    assert dict(run.arguments) == POINT


def test_a_notebook_gets_the_point_as_parameters() -> None:
    text = STUDY.replace(
        "command: python train.py --rate {rate} --momentum {momentum} --layout={x}",
        "notebook: train.ipynb\n  parameters: {epochs: 3}",
    )
    run = job_for(study_fields(text).spec(), "digits", 0, POINT, None, None).run
    assert isinstance(run, Notebook)
    assert dict(run.parameters) == {"epochs": 3, "optimiser": "adam", "rate": 1e-4}


def test_an_argument_that_does_not_apply_is_left_out_even_without_a_flag() -> None:
    assert fill(("run", "{a}", "--b={b}", "-c", "{b}"), {"a", "b"}, {"a": True}) == ("run", "True")


def test_numbers_as_people_write_them_in_yaml_are_numbers() -> None:
    assert study_fields(STUDY).spec().space["rate"].levels(2) == (1e-4, 0.01)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("goal: {maximise: accuracy, budget: {count: 3}}", "goal: {maximise: accuracy}"), "needs a budget"),
        (("values: [0.5, 2]", "values: [0.3, 2]"), "multiple of 0.5"),
        (("values: [0.1, 1.0]", "values: [0.1, 2.0]"), "at most 1"),
        (("role: fidelity", "role: hyperparameter"), "role: fidelity"),
        (("budget: {count: 3}", "budget: {count: -3}"), "above 0"),
        (("name: digits\n", ""), "lacks name"),
        (("type: float", "type: flaot"), "flaot"),
        (("goal:", "gaol:"), "lacks goal"),
    ],
)
def test_a_study_that_cannot_be_run_is_refused_when_it_is_declared(
    change: tuple[str, str], told: str
) -> None:
    with pytest.raises(InvalidInput, match=told):
        study_fields(STUDY.replace(*change)).spec()


def test_a_file_of_aliases_that_would_fill_the_memory_is_refused() -> None:
    bomb = "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(3))
    with pytest.raises(InvalidInput, match="aliases"):
        study_fields(bomb)


def test_the_books_prices_become_rates_so_that_cost_follows_from_time() -> None:
    spec = study_fields(STUDY).spec()
    book = book_named("acai")

    rates = rates_of(spec.space, lambda r: float(book.rate(r.vcpu, r.memory_mb)), spec.job.resources)
    assert rates is not None
    for vcpu in (0.5, 2):
        for memory in (512, 1024):
            expected = float(book.rate(vcpu, memory))
            assert rates.per_hour({"vcpu": vcpu, "memory_mb": memory}) == pytest.approx(expected)


def test_a_price_that_is_no_sum_over_the_dimensions_gives_no_rates() -> None:
    spec = study_fields(STUDY).spec()
    assert rates_of(spec.space, lambda r: r.vcpu * r.memory_mb, spec.job.resources) is None
