"""One other system on one set, in an environment of its own; called by `benchmarks/quality.py`, needs no Easel.

    PYTHON benchmarks/quality_peers.py flaml data.npz answers.npz --budget 20 --seed 0

`data.npz` has `x`, `y` (numbers of classes, or numbers) and `test`; `answers.npz` gets `answers` for the test (class
probabilities, or numbers) and what the system itself says of its best model. Systems that watch the clock see this
process's processor seconds as the time, so that all have the same work and none waits for the others' load.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
import warnings
from importlib import import_module
from typing import Any

import numpy as np

Path = list[tuple[float, Any]]
"""After how many seconds which answers for the test would have been given; empty where a system does not tell."""
Found = tuple[Any, str, "float | None", Path]
"""Answers for the test, the model's name, the score that the system shows before the test, and how it got there."""


def boosting(x: Any, y: Any, test: Any, classify: bool, budget_s: float, seed: int) -> Found:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    model = (HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor)(random_state=seed)
    model.fit(x, y)
    return (_spread(model, test, y) if classify else model.predict(test)), "HistGradientBoosting", None, []


def flaml(x: Any, y: Any, test: Any, classify: bool, budget_s: float, seed: int) -> Found:
    from flaml import AutoML

    model = AutoML()
    task, metric = ("classification", "accuracy") if classify else ("regression", "r2")
    with tempfile.TemporaryDirectory() as folder:
        model.fit(
            x,
            y,
            task=task,
            metric=metric,
            time_budget=budget_s,
            seed=seed,
            n_jobs=1,
            verbose=0,
            log_file_name=f"{folder}/log",
        )
    answers = _spread(model, test, y) if classify else model.predict(test)
    return answers, str(model.best_estimator), 1.0 - float(model.best_loss), []


def autogluon(x: Any, y: Any, test: Any, classify: bool, budget_s: float, seed: int) -> Found:
    import pandas
    from autogluon.tabular import TabularPredictor

    names = [f"c{k}" for k in range(x.shape[1])]
    table = pandas.DataFrame(x, columns=names).assign(answer=y)
    folder = tempfile.mkdtemp(prefix="autogluon-")
    few = len(np.unique(y)) == 2
    kind = ("binary" if few else "multiclass") if classify else "regression"
    try:
        model = TabularPredictor(
            "answer",
            problem_type=kind,
            eval_metric="accuracy" if classify else "r2",
            path=folder,
            verbosity=0,
        )
        model.fit(
            table,
            presets="best_quality",
            time_limit=budget_s,
            num_cpus=1,
            num_gpus=0,
            dynamic_stacking=False,
            ag_args_ensemble={"fold_fitting_strategy": "sequential_local"},
        )
        asked = pandas.DataFrame(test, columns=names)
        board = model.leaderboard()
        shown = float(board["score_val"].max())

        def answered(name: str) -> Any:
            if not classify:
                return model.predict(asked, model=name).to_numpy()
            given = model.predict_proba(asked, model=name)
            answers = np.zeros((len(test), int(y.max()) + 1))
            for label in given.columns:
                answers[:, int(label)] = given[label]
            return answers

        # Models are fitted one after the other; whichever validated best so far would have answered.
        path, seconds, best = [], 0.0, -np.inf
        for _, row in board.sort_values("fit_order").iterrows():
            seconds += float(row["fit_time_marginal"])
            if row["score_val"] > best:
                best = row["score_val"]
                path.append((seconds, answered(row["model"])))
        return answered(model.model_best), str(model.model_best), shown, path
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _spread(model: Any, test: Any, y: Any) -> Any:
    answers = np.zeros((len(test), int(y.max()) + 1))
    answers[:, np.asarray(model.classes_, dtype=int)] = model.predict_proba(test)
    return answers


NEEDS = {
    "flaml": ("flaml", "catboost", "lightgbm", "xgboost"),
    "autogluon": ("autogluon.tabular", "catboost", "lightgbm", "xgboost", "torch"),
}
SYSTEMS = {"hist_gradient_boosting": boosting, "flaml": flaml, "autogluon": autogluon}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("system", choices=sorted(SYSTEMS))
    parser.add_argument("data")
    parser.add_argument("answers")
    parser.add_argument("--budget", type=float, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--classify", action="store_true")
    parser.add_argument("--label", default="", help="shown on the command line")
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    given = np.load(wanted.data)
    _import(wanted.system)
    start = time.time() - time.process_time()
    time.time = time.perf_counter = time.monotonic = lambda: start + time.process_time()
    began = time.process_time()
    answers, name, shown, path = SYSTEMS[wanted.system](
        given["x"], given["y"], given["test"], wanted.classify, wanted.budget, wanted.seed
    )
    spent = time.process_time() - began
    np.savez(
        wanted.answers,
        answers=answers,
        name=name,
        shown=np.nan if shown is None else shown,
        cpu_s=spent,
        path_s=[seconds for seconds, _ in path],
        path_answers=[given for _, given in path],
    )
    return 0


def _import(system: str) -> None:
    """Loads what the system needs before its seconds are counted."""
    for name in NEEDS.get(system, ()):
        import_module(name)


if __name__ == "__main__":
    raise SystemExit(main())
