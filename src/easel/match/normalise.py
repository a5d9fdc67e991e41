"""Scales for wide dynamic ranges: standardisation, logarithm, and the paper's family f_k(x) = −x^{2k} + x^k.

Each is fitted on the training inputs and is elementwise afterwards: a stored model repeats it exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]

NORMALISATIONS = ("standard", "log", "f_0.25", "f_0.5", "f_1", "f_2", "none")


@dataclass(frozen=True)
class Normalisation:
    """`name` and what was measured per channel: lowest, highest, then mean and deviation after the map."""

    name: str
    low: tuple[float, ...]
    high: tuple[float, ...]
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __call__(self, x: Floats) -> Floats:
        """`(…, channels)` → the same shape, about zero mean and unit deviation; missing values become 0."""
        if self.name == "none":
            return np.nan_to_num(x)
        mapped = _map(self.name, x, np.asarray(self.low), np.asarray(self.high))
        scaled = (mapped - np.asarray(self.mean)) / np.asarray(self.deviation)
        filled: Floats = np.nan_to_num(np.clip(scaled, -20.0, 20.0)).astype(np.float32)
        return filled


def fit_normalisation(name: str, x: Floats) -> Normalisation:
    """Learns from training values `(…, channels)`; NaN is ignored, a constant channel gets deviation 1."""
    if name not in NORMALISATIONS:
        raise ValueError(f"unknown normalisation {name}")
    flat = np.where(np.isfinite(x), x, np.nan).reshape(-1, x.shape[-1]).astype(np.float64)
    flat = np.concatenate([flat, np.zeros((1, flat.shape[1]))]) if np.isnan(flat).all(axis=0).any() else flat
    low, high = np.nanmin(flat, axis=0), np.nanmax(flat, axis=0)
    mapped = _map(name, flat, low, high)
    mean, deviation = np.nanmean(mapped, axis=0), np.nanstd(mapped, axis=0)
    deviation = np.where(deviation > 1e-8, deviation, 1.0)
    return Normalisation(
        name, tuple(low.tolist()), tuple(high.tolist()), tuple(mean.tolist()), tuple(deviation.tolist())
    )


def _map(name: str, x: Floats, low: Floats, high: Floats) -> Floats:
    if name in ("standard", "none"):
        return x
    if name == "log":
        shifted: Floats = np.log1p(np.maximum(x - low, 0.0))
        return shifted
    unit = np.clip((x - low) / np.maximum(high - low, 1e-12), 0.0, 1.0)
    return f_k(unit, float(name.removeprefix("f_")))


def f_k(x: Floats, k: float) -> Floats:
    """f_k(x) = −x^{2k} + x^k on [0, 1] (ease.ml §3.1): small k lifts the faint end of a wide range."""
    power: Floats = x**k
    return power - power**2
