"""Constrained expected improvement and the tests' gains over 100,000 candidates: NumPy against torch on a GPU.

`PYTHONPATH=src python benchmarks/gpu_suggest.py` needs torch, NumPy and SciPy only; prints one JSON object.
Two processes (quality, log cost) with given hyperparameters and 100 or 1,000 observations; 12 dimensions.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

import numpy as np
import torch

from easel.optimise.acquire import constrained_expected_improvement, per_cost, probability_below
from easel.optimise.gp import GP
from easel.optimise.kernels import Constant, Linear, Matern52

WIDTH, REPRESENTATIVES = 12, 120


def world(n: int, candidates: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x, z = rng.random((n, WIDTH)), rng.random((candidates, WIDTH))
    quality = np.sin(3 * x[:, 0]) + x[:, 1] - (x[:, 2] - 0.3) ** 2 + 0.01 * rng.standard_normal(n)
    cost = x[:, 3] + 0.5 * x[:, 4] + 0.01 * rng.standard_normal(n)
    return x, quality, cost, z


def suggest(x: Any, quality: Any, cost: Any, z: Any, z_rep: Any) -> tuple[int, float]:
    """The chosen candidate, and the largest gain that its observation has on a representative."""
    kernel = Constant() * Matern52.ard(WIDTH)
    trend = Linear(np.zeros(WIDTH + 1)) + kernel
    gp_q, gp_c = GP.on(trend, x, quality, 1e-3), GP.on(kernel, x, cost, 1e-3)
    (m, s), (mc, sc) = gp_q.posterior(z), gp_c.posterior(z)
    score = per_cost(
        constrained_expected_improvement(m, s, float(quality.max()), probability_below(mc, sc, 0.5)), mc
    )
    gains = gp_q.between(z, z_rep) / (s + 1e-9)[:, None]
    best = int(score.argmax())
    return best, float(abs(gains[best]).max())


def measure(arrays: list[Any], sync: Any, repeats: int) -> tuple[float, int, float]:
    suggest(*arrays)
    sync()
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        found, gain = suggest(*arrays)
        sync()
        taken.append(time.perf_counter() - began)
    return float(np.median(taken)), found, gain


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--candidates", type=int, default=100_000)
    candidates = parser.parse_args().candidates
    device = "cuda" if torch.cuda.is_available() else "cpu"
    report: dict[str, Any] = {
        "candidates": candidates,
        "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
        "torch": torch.__version__,
    }
    for n in (100, 1000):
        x, q, c, z = world(n, candidates)
        arrays = [x, q, c, z, z[:REPRESENTATIVES]]
        slow, by_numpy, gain_numpy = measure(arrays, lambda: None, 1)
        tensors = [torch.as_tensor(a, dtype=torch.float64, device=device) for a in arrays]
        sync = torch.cuda.synchronize if device == "cuda" else (lambda: None)
        fast, by_torch, gain_torch = measure(tensors, sync, 5)
        report[str(n)] = {
            "numpy_s": slow,
            "torch_s": fast,
            "speedup": slow / fast,
            "same_choice": by_numpy == by_torch,
            "gain_difference": abs(gain_numpy - gain_torch),
        }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
