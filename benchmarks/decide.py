"""How long one decision takes after one new result, and how much memory a large pool needs.

`python benchmarks/decide.py [--quick]` prints JSON; peers are measured in the same run: scikit-learn's
GaussianProcessRegressor and BoTorch, each refitting the tenant with the new result and rescoring everybody.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from easel.optimise.joint import JointGP
from easel.records.decision import StartTrial
from easel.schedule.policies import Policy, named
from easel.schedule.prior import Prior
from easel.schedule.related import RelatedBelief
from easel.schedule.state import PoolDevice, PoolState, Tenant

RESULTS_EACH = 20
DEVICE = PoolDevice("d0")


def features(K: int, rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(size=(K, 4))


def prior_over(x: np.ndarray) -> Prior:
    d2 = ((x[:, None, :] - x[None, :, :]) ** 2).sum(2)
    return Prior(np.full(len(x), 0.7), 0.02 * np.exp(-d2 / 0.5) + 0.01, 1e-4, dof=10.0)


def pool(N: int, K: int, seed: int = 0) -> PoolState:
    """`N` tenants with `RESULTS_EACH` results each."""
    rng = np.random.default_rng(seed)
    prior = prior_over(features(K, rng))
    names = tuple(f"m{k}" for k in range(K))
    members = {}
    for i in range(N):
        belief = prior.belief()
        taken = np.zeros(K, dtype=bool)
        best = 0.0
        for k in rng.choice(K, size=min(RESULTS_EACH, K // 2), replace=False):
            y = float(rng.normal(0.7, 0.1))
            belief, best = belief.observed(int(k), y), max(best, y)
            taken[k] = True
        cost = rng.uniform(0.1, 1.0, size=K)
        members[f"t{i}"] = Tenant(f"t{i}", names, belief, cost, ceiling=1.0, best=best, taken=taken)
    return PoolState(members, DEVICE)


def decision_time(state: PoolState, policy: Policy, rounds: int) -> float:
    """Median seconds from a result to the next decision, everything else already known to the policy.

    Of the processor, not of the wall: one thread does it all, and a machine shared with others must not count.
    """
    rng = np.random.default_rng(1)
    decision = policy.decide(state)
    times = []
    for _ in range(rounds):
        assert isinstance(decision, StartTrial)
        state = state.started(decision)
        began = time.process_time()
        state = state.finished(decision, float(rng.normal(0.7, 0.1)), 1.0)
        decision = policy.decide(state)
        times.append(time.process_time() - began)
    return float(np.median(times))


def best_of_three(state: PoolState, policy: Policy, rounds: int) -> float:
    """Growth is told from the least disturbed of three runs."""
    return min(decision_time(state, policy, rounds) for _ in range(3))


def scikit_learn_time(N: int, K: int) -> float:
    """Refit one tenant (hyperparameters included), then mean, deviation and EI per cost for everybody."""
    from scipy.stats import norm
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern

    rng = np.random.default_rng(0)
    x = features(K, rng)
    A = rng.choice(K, size=RESULTS_EACH, replace=False)
    y, cost = rng.normal(0.7, 0.1, size=RESULTS_EACH), rng.uniform(0.1, 1.0, size=K)
    kernel = ConstantKernel() * Matern(np.ones(4), nu=2.5)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(kernel, alpha=1e-4, normalize_y=True).fit(x[A], y)
    best = -np.inf
    for _ in range(N):
        m, s = model.predict(x, return_std=True)
        u = (m - y.max()) / s
        best = max(best, float((s * (u * norm.cdf(u) + norm.pdf(u)) / cost).max()))
    return time.process_time() - began


def botorch_time(N: int, K: int) -> float:
    """The same with a SingleTaskGP and its analytic EI."""
    import torch
    from botorch.acquisition.analytic import ExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    rng = np.random.default_rng(0)
    x = torch.tensor(features(K, rng))
    A = rng.choice(K, size=RESULTS_EACH, replace=False)
    y = torch.tensor(rng.normal(0.7, 0.1, size=(RESULTS_EACH, 1)))
    cost = torch.tensor(rng.uniform(0.1, 1.0, size=K))
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SingleTaskGP(x[A], y)
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        with torch.no_grad():
            for _ in range(N):
                score = ExpectedImprovement(model, float(y.max()))(x[:, None, :]) / cost
                score.max()
    return time.process_time() - began


def joint_time(N: int, K: int, rounds: int) -> float:
    """One decision with one process over `N` correlated tenants, `RESULTS_EACH` results each.

    The rows of the factor are filled with small random numbers: the time does not depend on their values.
    """
    rng = np.random.default_rng(0)
    prior = prior_over(features(K, rng))
    B = 0.3 + 0.7 * np.eye(N)
    count = N * RESULTS_EACH
    process = JointGP.prior(np.full((N, K), 0.7), B, prior.cov, 1e-4, capacity=count + rounds + 2)
    process.rows.values[:count] = 1e-4 * rng.standard_normal((count, N * K), dtype=np.float32)
    process.rows.used = count
    seen = JointGP(process.B, process.S, process.mean, process.var, 1e-4, process.rows, count)
    names = tuple(f"m{k}" for k in range(K))
    members = {
        f"t{i}": Tenant(
            f"t{i}", names, RelatedBelief(seen, i), rng.uniform(0.1, 1.0, size=K), ceiling=1.0, best=0.6
        )
        for i in range(N)
    }
    return decision_time(PoolState(members, DEVICE), named("easel"), rounds)


def memory_mb(N: int, K: int) -> float:
    """Growth of the resident set of a fresh process that holds such a pool and has decided once."""
    code = (
        "import os, psutil, sys; sys.path.insert(0, '.');"
        "from benchmarks.decide import pool; from easel.schedule.policies import named;"
        "me = psutil.Process(os.getpid()); before = me.memory_info().rss;"
        f"state = pool({N}, {K}); named('easel').decide(state);"
        "print((me.memory_info().rss - before) / 2**20)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def measured(function: Callable[..., float], *arguments: Any) -> float | None:
    """None where the peer is not installed."""
    try:
        return function(*arguments)
    except ImportError:
        return None


def run(quick: bool) -> dict[str, Any]:
    N, K, rounds = (100, 50, 10) if quick else (1000, 200, 50)
    policy = named("easel")
    ours = decision_time(pool(N, K), policy, rounds)
    sizes = [(N // 4, K), (N // 2, K), (N, K), (2 * N, K), (4 * N, K), (N, K // 2), (N, 2 * K), (N, 4 * K)]
    growth = {f"{n}x{k}": 1e3 * best_of_three(pool(n, k), policy, rounds) for n, k in sizes}
    sk, bo = measured(scikit_learn_time, N, K), measured(botorch_time, N, K)
    joint = (20, 20) if quick else (200, 100)
    large = 200 if quick else 10_000
    return {
        "pool": f"{N} tenants x {K} candidates, {RESULTS_EACH} results each",
        "decision ms": 1e3 * ours,
        "decision ms by size": growth,
        "scikit-learn ms": None if sk is None else 1e3 * sk,
        "faster than scikit-learn": None if sk is None else sk / ours,
        "botorch ms": None if bo is None else 1e3 * bo,
        "faster than botorch": None if bo is None else bo / ours,
        "joint": f"{joint[0]} tenants x {joint[1]} candidates",
        "joint decision ms": 1e3 * joint_time(*joint, rounds=5),
        "memory MB": memory_mb(large, K),
        "memory of": f"{large} tenants x {K} candidates",
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    print(json.dumps(run(parser.parse_args().quick), indent=2))
