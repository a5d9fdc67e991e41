"""The joint model's decision on a GPU against the CPU: `python benchmarks/gpu_joint.py`, prints JSON.

Needs torch and NumPy only. One decision = one result taken in (a pass over all rows of the factor), the
expected improvement per cost of every candidate of every tenant, and the argmax back on the host.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from easel.optimise.acquire import expected_improvement  # noqa: E402 - the path is set above
from easel.optimise.joint import JointGP  # noqa: E402

SIZES = ((200, 100, 4000), (1000, 200, 2000), (2000, 200, 4000))
"""Tenants, candidates, results so far."""


def filled(N: int, K: int, count: int, device: str, seed: int = 0) -> JointGP:
    """A process with `count` rows of small random numbers: the time does not depend on their values."""
    generator = torch.Generator(device=device).manual_seed(seed)
    x = torch.rand((K, 4), dtype=torch.float64, device=device, generator=generator)
    S = 0.02 * torch.exp(-(torch.cdist(x, x) ** 2) / 0.5) + 0.01
    B = 0.3 + 0.7 * torch.eye(N, dtype=torch.float64, device=device)
    mean = torch.full((N, K), 0.7, dtype=torch.float64, device=device)
    empty = JointGP.prior(mean, B, S, 1e-4, capacity=count + 40)
    for begin in range(0, count, 256):
        part = empty.rows.values[begin : min(begin + 256, count)]
        part.normal_(0.0, 1e-4, generator=generator)
    empty.rows.used = count
    return JointGP(empty.B, empty.S, empty.mean, empty.var, 1e-4, empty.rows, count)


def decision_seconds(N: int, K: int, count: int, device: str, rounds: int) -> float:
    process = filled(N, K, count, device)
    cost = 0.1 + 0.9 * torch.rand((N, K), dtype=torch.float64, device=device)
    best = torch.full((N, 1), 0.6, dtype=torch.float64, device=device)
    times, flat = [], 0
    for step in range(rounds + 2):
        began = time.perf_counter()
        i, k = divmod(flat, K)
        process = process.observed(i, k, 0.65 + 0.001 * step)
        score = expected_improvement(process.mean, process.sd, best) / cost
        flat = int(score.argmax())
        times.append(time.perf_counter() - began)
    return float(np.median(times[2:]))


def agreement(device: str) -> float:
    """The largest difference between NumPy and torch on `device` after 50 real results."""
    rng = np.random.default_rng(0)
    N, K = 12, 15
    x = rng.uniform(size=(K, 2))
    S = np.exp(-((x[:, None] - x[None]) ** 2).sum(2))
    B = 0.4 + 0.6 * np.eye(N)
    ours = JointGP.prior(np.zeros((N, K)), B, S, 1e-2)
    mean, rows, columns = (torch.tensor(a, device=device) for a in (np.zeros((N, K)), B, S))
    theirs = JointGP.prior(mean, rows, columns, 1e-2)
    for _ in range(50):
        i, k, y = int(rng.integers(N)), int(rng.integers(K)), float(rng.normal())
        ours, theirs = ours.observed(i, k, y), theirs.observed(i, k, y)
    return float(np.abs(ours.mean - theirs.mean.cpu().numpy()).max())


def main() -> None:
    gpu = torch.cuda.is_available()
    report: dict[str, Any] = {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "gpu": torch.cuda.get_device_name(0) if gpu else None,
        "cpu threads": torch.get_num_threads(),
        "difference to NumPy, CPU": agreement("cpu"),
    }
    if gpu:
        report["difference to NumPy, GPU"] = agreement("cuda")
    for N, K, count in SIZES:
        label = f"{N} tenants x {K} candidates, {count} results"
        report[f"CPU ms, {label}"] = 1e3 * decision_seconds(N, K, count, "cpu", 3)
        if gpu:
            report[f"GPU ms, {label}"] = 1e3 * decision_seconds(N, K, count, "cuda", 20)
            torch.cuda.empty_cache()
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
