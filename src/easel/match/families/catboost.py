"""Gradient boosting by CatBoost, which learns from categories of thousands of values without spreading them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from easel.match.candidate import Candidate
from easel.match.family import (
    EstimatorFamily,
    Growth,
    MatrixShape,
    ModelFiles,
    Plan,
    Situation,
    fits,
    table_cost,
)
from easel.match.kinds import Task, TemplateKind

if TYPE_CHECKING:
    from easel.match.zoo.catboost_model import CatBoostModel


def _plan(situation: Situation) -> Plan:
    return Plan(
        0.87,
        (("depth", 6), ("trees", 400)),
        (("depth", 4, 0.01), ("depth", 8, 0.02), ("trees", 1000, 0.0)),
    )


def _estimator(candidate: Candidate, shape: MatrixShape) -> CatBoostModel:
    from easel.match.zoo.catboost_model import CatBoostModel

    return CatBoostModel(
        categorical=shape.categorical,
        classify=shape.classify,
        outputs=shape.outputs,
        depth=int(candidate.number("depth", 6)),
        trees=_rounds(candidate),
        seed=shape.seed,
        balanced=candidate.text("weights", "") == "balanced",
    )


def _rounds(candidate: Candidate) -> int:
    return int(candidate.number("trees", 400))


def _save(estimator: Any, folder: Path) -> None:
    estimator.save(folder)


def _load(folder: Path) -> Any:
    from easel.match.zoo.catboost_model import load_catboost

    return load_catboost(folder)


def _contributions(model: Any, x: Any, background: Any) -> Any:
    """Returns the exact values of TreeSHAP, which CatBoost computes itself."""
    return model.contributions(x)


FAMILIES = (
    EstimatorFamily(
        name="catboost",
        fits=fits(TemplateKind.TABLE) | fits(TemplateKind.MULTI_OUTPUT, tasks=(Task.REGRESS,)),
        plan=_plan,
        cost=table_cost(
            lambda c, s, cells: (
                (0.4 + 4e-8 * c.number("trees", 400) * s.examples * cells**0.7)
                * max(1, s.classes / 2)
                * 1.3 ** (c.number("depth", 6) - 6)
            )
        ),
        estimator=_estimator,
        files=ModelFiles(_save, _load),
        growth=Growth(
            _rounds,
            lambda estimator, before, x, y, to, stop: estimator.grow(before, x, y, to, stop),
            lambda model: model.grown,
            several=True,
        ),
        contributions=_contributions,
        needs="catboost",
        no_onnx="CatBoost models are exported in their own form, model.cbm (--form native)",
    ),
)
