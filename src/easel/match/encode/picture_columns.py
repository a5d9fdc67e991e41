"""A picture as columns of a table: a small copy, its colours, and which way its edges run, for tables with pictures."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from easel.match.examples import Array

THUMB, EDGES, CELLS, TURNS = 8, 32, 4, 8
"""Sides of the small copy and of the picture whose edges are looked at; cells a side; directions of an edge."""


def picture_width(channels: int) -> int:
    """How many columns a picture of so many channels becomes."""
    return (THUMB * THUMB + 2) * channels + CELLS * CELLS * TURNS


def picture_columns(picture: Array | None, channels: int) -> NDArray[np.float64]:
    """`(picture_width(channels),)`; unknown throughout where there is no picture."""
    if picture is None:
        return np.full(picture_width(channels), np.nan)
    planes = _planes(np.asarray(picture, dtype=np.float32), channels)
    small = np.stack([_resized(plane, THUMB) for plane in planes])
    grey = _resized(planes.mean(0), EDGES)
    return np.concatenate([small.ravel(), planes.mean((1, 2)), planes.std((1, 2)), _edges(grey)]).astype(
        float
    )


def _planes(picture: Array, channels: int) -> Array:
    """`(channels, h, w)`: a grey picture among coloured ones is grey in all channels."""
    planes = picture[None] if picture.ndim == 2 else picture.transpose(2, 0, 1)
    if len(planes) == channels:
        return planes
    return np.repeat(planes.mean(0, keepdims=True), channels, axis=0)


def _resized(plane: Array, side: int) -> Array:
    return np.asarray(Image.fromarray(plane).resize((side, side), Image.Resampling.BOX), dtype=np.float32)


def _edges(grey: Array) -> NDArray[np.float64]:
    """Histograms of oriented gradients (Dalal and Triggs 2005), one for each cell, together of length 1."""
    down, across = np.gradient(grey.astype(float))
    strength = np.hypot(down, across)
    turn = np.floor((np.arctan2(down, across) % np.pi) / np.pi * TURNS).astype(int) % TURNS
    size = EDGES // CELLS
    cell = np.add.outer(np.arange(EDGES) // size * CELLS, np.arange(EDGES) // size)
    counts = np.bincount((cell * TURNS + turn).ravel(), strength.ravel(), CELLS * CELLS * TURNS)
    found: NDArray[np.float64] = np.asarray(counts, dtype=np.float64)
    return found / max(float(np.linalg.norm(found)), 1e-9)
