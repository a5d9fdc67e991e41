"""Time of one suggestion over 1,440 candidates, against Optuna's GPSampler and BoTorch on the same data.

`python -m benchmarks.suggest [--quick]`, one core (OMP_NUM_THREADS=1). CPU seconds of the process, so that other work
on the machine does not count; each figure includes learning the models' hyperparameters from the history anew.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings

import numpy as np

from benchmarks.papers.cloud_jobs import RESULTS, Job, data, load, stamp
from easel.declare.goal import maximise, minimise
from easel.declare.space import Point
from easel.tune import surrogate
from easel.tune.encode import Codec
from easel.tune.exchange.optuna import to_optuna
from easel.tune.tuner import Tuner

OURS: dict[str, tuple[str, dict[str, object], bool]] = {
    "fabulinus": ("fabulinus", {"initial": 1}, False),
    "auto": ("auto", {"initial": 1}, False),
    "nephele h=0": ("nephele", {"initial": 2}, True),
    "nephele h=1": ("nephele", {"initial": 2, "horizon": 1}, True),
    "ei-c": ("ei-c", {"initial": 1}, False),
}


def chosen(job: Job, count: int, *, full: bool) -> list[Point]:
    points = [p for p in job.space.grid() if not full or p["s"] == 1.0]
    rng = np.random.default_rng(0)
    return [points[i] for i in rng.choice(len(points), min(count, len(points) - 8), replace=False)]


def ours(job: Job, name: str, count: int, repeats: int) -> float:
    strategy, options, cheapest = OURS[name]
    goal = (
        minimise("cost", "accuracy >= 0.85", "time <= 300", budget={"cost": 1e3}, at="any")
        if cheapest
        else maximise("accuracy", "cost <= 0.1", budget={"cost": 1e3})
    )
    tuner = Tuner(job.space, goal, strategy, options=options)
    for point in chosen(job, count, full=strategy == "ei-c"):
        tuner.tell(point, job(point))
    taken = []
    for _ in range(repeats):
        surrogate.forget()
        tuner.forget()
        began = time.process_time()
        tuner.strategy.suggest(tuner.state)
        taken.append(time.process_time() - began)
    return float(np.median(taken))


def optuna_gp(job: Job, count: int) -> float:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")

    def limit(trial: optuna.trial.FrozenTrial) -> list[float]:
        return [float(trial.user_attrs["cost"]) - 0.1]

    sampler = optuna.samplers.GPSampler(seed=0, constraints_func=limit, n_startup_trials=1)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    space = to_optuna(job.space)
    for point in chosen(job, count, full=True):
        values = job(point)
        study.add_trial(
            optuna.trial.create_trial(
                params=dict(point),
                distributions=space,
                value=values["accuracy"],
                user_attrs={"cost": values["cost"]},
                system_attrs={"constraints": [values["cost"] - 0.1]},
            )
        )
    began = time.process_time()
    study.ask(space)
    return time.process_time() - began


def botorch_ei(job: Job, count: int) -> float:
    import torch
    from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from gpytorch.mlls import SumMarginalLogLikelihood

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    points = chosen(job, count, full=True)
    x = torch.tensor(Codec(job.space).table(points).x)
    grid = torch.tensor(Codec(job.space).table(p for p in job.space.grid() if p["s"] == 1.0).x)
    y = torch.tensor([[job(p)["accuracy"]] for p in points], dtype=torch.float64)
    c = torch.tensor([[np.log(job(p)["cost"])] for p in points], dtype=torch.float64)
    began = time.process_time()
    model = ModelListGP(*(SingleTaskGP(x, v, outcome_transform=Standardize(1)) for v in (y, c)))
    fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
    best = float(y[c <= np.log(0.1)].max())
    acquisition = LogConstrainedExpectedImprovement(model, best, 0, {1: (None, float(np.log(0.1)))})
    with torch.no_grad():
        acquisition(grid[:, None, :]).argmax()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="30 observations, ours only, written nowhere")
    arguments = parser.parse_args()
    job = load(data("trimtuner/cnn.csv"), extrapolated=False)
    rows: dict[str, dict[str, float]] = {}
    for count in (30,) if arguments.quick else (100, 1000):
        for name in OURS:
            rows.setdefault(name, {})[str(count)] = ours(job, name, count, 3 if count <= 100 else 1)
            print(count, name, rows[name], flush=True)
    if not arguments.quick:
        for name, measure in (("optuna GPSampler, constrained", optuna_gp), ("botorch EI_c", botorch_ei)):
            rows[name] = {"100": measure(job, 100)}
            print(name, rows[name], flush=True)
        RESULTS.mkdir(parents=True, exist_ok=True)
        lines = [
            "# Time of one suggestion",
            "",
            "`OMP_NUM_THREADS=1 python -m benchmarks.suggest`: CPU seconds, 1,440 candidates, hyperparameters learnt anew.",
            "Optuna and BoTorch see 100 observations on full data and choose among 288 points, as our EI_c does from its",
            "full-data rows; Fabulinus, auto and Nephele choose among all 1,440. EI_c's second column has 280 observations, as",
            "full data has only 288 points.",
            "",
            stamp(),
            "",
            "| strategy | 100 observations | 1,000 observations |",
            "|---|---|---|",
            *(
                f"| {n} | {r['100']:.3f} | {r['1000']:.3f} |"
                if "1000" in r
                else f"| {n} | {r['100']:.3f} | – |"
                for n, r in rows.items()
            ),
            "",
        ]
        (RESULTS / "suggest.md").write_text("\n".join(lines), encoding="utf-8")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
