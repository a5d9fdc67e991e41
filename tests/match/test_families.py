"""One record for each family of models: found by its file alone, whole, and light to read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from easel.errors import InvalidInput
from easel.match import families as package
from easel.match.candidate import Candidate
from easel.match.family import Situation
from easel.match.kinds import Task, TemplateKind
from easel.match.propose import estimate_cost
from easel.match.registry import all_families, families_for, family_of
from easel.match.summary import DataSummary
from easel.match.templates import TEMPLATES

SUMMARY = DataSummary(500, 64, steps=20, side=8, classes=3)
NEW = """
from easel.match.family import EstimatorFamily, Plan, fits, table_cost
from easel.match.kinds import TemplateKind

def build(candidate, shape):
    from sklearn.dummy import DummyClassifier

    return DummyClassifier()

FAMILIES = (
    EstimatorFamily(
        name="always_the_same",
        fits=fits(TemplateKind.TABLE),
        plan=lambda situation: Plan(0.1),
        cost=table_cost(lambda candidate, summary, cells: 0.001),
        estimator=build,
    ),
)
"""


def test_every_template_has_a_family() -> None:
    assert all(families_for(template.kind, template.task) for template in TEMPLATES)


def test_every_family_has_a_plan_and_a_cost_for_every_program_that_it_fits() -> None:
    for family in all_families().values():
        for kind, task in family.fits:
            plan = family.plan(Situation(kind, task, SUMMARY))
            assert 0 < plan.promise <= 1
            assert estimate_cost(Candidate(family.name, plan.base), SUMMARY) > 0


def test_a_new_family_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "always.py").write_text(NEW, encoding="utf-8")
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    for cached in (all_families, families_for):
        cached.cache_clear()
    try:
        assert "always_the_same" in {f.name for f in families_for(TemplateKind.TABLE, Task.CLASSIFY)}
        assert family_of(Candidate("always_the_same")).name == "always_the_same"
    finally:
        for cached in (all_families, families_for):
            cached.cache_clear()
        sys.modules.pop(f"{package.__name__}.always", None)


def test_a_family_that_is_not_known_here_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match="no family of models called 'oracle'"):
        family_of(Candidate("oracle"))


def test_reading_all_records_loads_neither_torch_nor_scikit_learn() -> None:
    code = (
        "import sys; from easel.match.registry import all_families; all_families(); "
        "sys.exit(' '.join({'torch', 'sklearn', 'lightgbm', 'catboost'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == ""
