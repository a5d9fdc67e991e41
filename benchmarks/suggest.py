"""Time of one suggestion over 1,440 candidates, against Optuna's GPSampler and BoTorch on the same data.

`python -m benchmarks.suggest [--quick]`, one core (OMP_NUM_THREADS=1). CPU seconds of the process, so that other work
on the machine does not count; each figure includes learning the models' hyperparameters from the history anew.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.papers.cloud_jobs import RESULTS, Job, data, load, stamp
from easel.declare.goal import maximise, minimise
from easel.declare.space import Point
from easel.records.study import Finished
from easel.tune import surrogate
from easel.tune.encode import Codec
from easel.tune.exchange.optuna import to_optuna
from easel.tune.tuner import Tuner

C_MAX = 0.1
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


def optuna_study(job: Job, startup: int, seed: int = 0) -> tuple[Any, dict[str, Any]]:
    """Optuna's GPSampler with the constraint, over the full-data points."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")

    def limit(trial: Any) -> list[float]:
        return [float(trial.user_attrs["cost"]) - C_MAX]

    sampler = optuna.samplers.GPSampler(seed=seed, constraints_func=limit, n_startup_trials=startup)
    space = {name: d for name, d in to_optuna(job.space).items() if name != "s"}
    return optuna.create_study(direction="maximize", sampler=sampler), space


def optuna_knows(study: Any, space: Mapping[str, Any], job: Job, point: Point) -> None:
    import optuna

    values = job(point)
    study.add_trial(
        optuna.trial.create_trial(
            params={name: value for name, value in point.items() if name != "s"},
            distributions=dict(space),
            value=values["accuracy"],
            user_attrs={"cost": values["cost"]},
            system_attrs={"constraints": [values["cost"] - C_MAX]},
        )
    )


def optuna_gp(job: Job, count: int) -> float:
    study, space = optuna_study(job, startup=1)
    for point in chosen(job, count, full=True):
        optuna_knows(study, space, job, point)
    began = time.process_time()
    study.ask(space)
    return time.process_time() - began


def botorch_choice(job: Job, points: Sequence[Point], offered: Sequence[Point]) -> int:
    """The next of `offered` by BoTorch's constrained EI; the likeliest feasible one while none is known."""
    import torch
    from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.models.transforms import Standardize
    from gpytorch.mlls import SumMarginalLogLikelihood

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    bound = float(np.log(C_MAX))
    x, grid = (torch.tensor(Codec(job.space).table(some).x) for some in (points, offered))
    y = torch.tensor([[job(p)["accuracy"]] for p in points], dtype=torch.float64)
    c = torch.tensor([[np.log(job(p)["cost"])] for p in points], dtype=torch.float64)
    model = ModelListGP(*(SingleTaskGP(x, v, outcome_transform=Standardize(1)) for v in (y, c)))
    fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
    ok = y[c <= bound]
    best = float(ok.max()) if len(ok) else float(y.min()) - 10.0
    acquisition = LogConstrainedExpectedImprovement(model, best, 0, {1: (None, bound)})
    with torch.no_grad():
        return int(acquisition(grid[:, None, :]).argmax())


def botorch_ei(job: Job, count: int) -> float:
    points = chosen(job, count, full=True)
    grid = [p for p in job.space.grid() if p["s"] == 1.0]
    began = time.process_time()
    botorch_choice(job, points, grid)
    return time.process_time() - began


# The same budget of trials for everybody, from the same first points. -----------------------------------------

INITIAL, TRIALS = 4, 20


def start(job: Job, seed: int) -> list[Point]:
    full = [p for p in job.space.grid() if p["s"] == 1.0]
    rng = np.random.default_rng(seed)
    return [full[i] for i in rng.choice(len(full), INITIAL, replace=False)]


def play_ours(job: Job, seed: int) -> list[Point]:
    goal = maximise("accuracy", f"cost <= {C_MAX}", budget={"count": TRIALS})
    tuner = Tuner(job.space, goal, "ei-c", seed=seed, options={"initial": 1})
    for point in start(job, seed):
        tuner.tell(point, job(point))
    while not isinstance(answer := tuner.ask(), Finished):
        tuner.tell(answer.number, job(answer.point))
    return [o.point for o in tuner.observations]


def play_optuna(job: Job, seed: int) -> list[Point]:
    study, space = optuna_study(job, startup=1, seed=seed)
    played = start(job, seed)
    for point in played:
        optuna_knows(study, space, job, point)
    while len(played) < TRIALS:
        trial = study.ask(space)
        point = {**trial.params, "s": 1.0}
        played.append(point)
        trial.set_user_attr("cost", job(point)["cost"])
        study.tell(trial, job(point)["accuracy"])
    return played


def play_botorch(job: Job, seed: int) -> list[Point]:
    played = start(job, seed)
    while len(played) < TRIALS:
        left = [p for p in job.space.grid() if p["s"] == 1.0 and p not in played]
        played.append(left[botorch_choice(job, played, left)])
    return played


def quality(job: Job, seeds: int) -> dict[str, dict[str, float]]:
    """Best feasible accuracy after `TRIALS` runs, as a share of the best there is, and runs until 95 % of it."""
    feasible = [v for k, v in job.measured.items() if dict(k)["s"] == 1.0 and v["cost"] <= C_MAX]
    best = max(v["accuracy"] for v in feasible)
    found = {}
    for name, play in (("ei-c", play_ours), ("optuna", play_optuna), ("botorch", play_botorch)):
        ends, reached, took = [], [], []
        for seed in range(seeds):
            began = time.process_time()
            values = [job(p) for p in play(job, seed)]
            took.append(time.process_time() - began)
            so_far = np.maximum.accumulate([v["accuracy"] if v["cost"] <= C_MAX else 0.0 for v in values])
            ends.append(float(so_far[-1]) / best)
            reached.append(
                int(np.argmax(so_far >= 0.95 * best)) + 1 if so_far[-1] >= 0.95 * best else TRIALS + 1
            )
        found[name] = {
            "end": float(np.mean(ends)),
            "worst": float(np.min(ends)),
            "runs": float(np.mean(reached)),
            "seconds": float(np.mean(took)),
        }
        print(name, found[name], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="30 observations, ours only, written nowhere")
    parser.add_argument("--seeds", type=int, default=10, help="for the comparison of results")
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
        results = quality(job, arguments.seeds)
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
            f"## Results with the same {TRIALS} runs",
            f"Full data, cost ≤ $0.10, {INITIAL} random runs for everybody, then {TRIALS - INITIAL} of their own; mean of {arguments.seeds} seeds.",
            "Accuracy is that of the best feasible run as a share of the best there is.",
            "",
            "| strategy | accuracy at the end | worst seed | runs until 95 % | CPU seconds in all |",
            "|---|---|---|---|---|",
            *(
                f"| {n} | {r['end']:.4f} | {r['worst']:.4f} | {r['runs']:.1f} | {r['seconds']:.1f} |"
                for n, r in results.items()
            ),
            "",
        ]
        (RESULTS / "suggest.md").write_text("\n".join(lines), encoding="utf-8")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
