"""QUANT (Dempster, Schmidt & Webb 2024): quantiles of intervals of a series, its changes and its spectrum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from easel.declare.program import DataType
from easel.match.encode.series import SeriesEncoder, fit_series
from easel.match.examples import Object

DEPTH = 6
STEP = 4
"""An interval of m values gives 1 + (m − 1) // STEP quantiles."""


@dataclass(frozen=True)
class QuantEncoder:
    """`(n, features)` of series that are all stretched to one length."""

    series: SeriesEncoder

    def __call__(self, objects: Sequence[Object]) -> NDArray[np.float64]:
        encoded = self.series(objects)
        x = _stretched(encoded["x"].astype(np.float64), encoded["mask"])
        changes = np.diff(x, axis=2)
        smooth = _smooth(changes) if changes.shape[2] >= 5 else changes
        spectrum = np.abs(np.fft.rfft(x, axis=2))
        views = [x, smooth, np.diff(x, n=2, axis=2), spectrum]
        parts = [_quantiles(view, DEPTH) for view in views if view.shape[2]]
        return np.concatenate(parts, axis=1)


def fit_quant(data_type: DataType, objects: Sequence[Object], normalisation: str) -> QuantEncoder:
    return QuantEncoder(fit_series(data_type, objects, normalisation))


def _stretched(x: NDArray[np.float64], mask: NDArray[np.float32]) -> NDArray[np.float64]:
    """Shorter series drawn out to the common length."""
    lengths = mask.sum(1).astype(int)
    out = x.copy()
    for row in np.flatnonzero(lengths < x.shape[2]):
        own = max(1, lengths[row])
        at = np.linspace(0, own - 1, x.shape[2])
        for channel in range(x.shape[1]):
            out[row, channel] = np.interp(at, np.arange(own), x[row, channel, :own])
    return out


def _smooth(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of five neighbours, the end values repeated."""
    padded = np.pad(x, ((0, 0), (0, 0), (2, 2)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, 5, axis=2)
    mean: NDArray[np.float64] = windows.mean(-1)
    return mean


def _quantiles(x: NDArray[np.float64], depth: int) -> NDArray[np.float64]:
    """Returns quantiles of dyadic intervals, also shifted by half; every second one less its mean."""
    length = x.shape[2]
    parts = []
    for level in range(min(depth, int(np.log2(length)) + 1)):
        width = length / 2**level
        starts = [k * width for k in range(2**level)]
        starts += [(k + 0.5) * width for k in range(2**level - 1)] if level else []
        for start in starts:
            first, last = int(start), max(int(start) + 1, int(start + width))
            part = x[:, :, first:last]
            count = 1 + (part.shape[2] - 1) // STEP
            found = np.quantile(part, [0.5] if count == 1 else np.linspace(0, 1, count), axis=2)
            found[1::2] -= part.mean(2)
            parts.append(found.transpose(1, 2, 0).reshape(len(x), -1))
    return np.concatenate(parts, axis=1)
