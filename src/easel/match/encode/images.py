"""Pictures → `(n, channels, height, width)`, all of one size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from easel.match.examples import Array, Object, Single
from easel.match.normalise import Normalisation, fit_normalisation

LARGEST_SIDE = 224


@dataclass(frozen=True)
class PictureEncoder:
    """Every picture is brought to `height × width`, then normalised per channel."""

    height: int
    width: int
    channels: int
    normalisation: Normalisation

    def __call__(self, objects: Sequence[Object]) -> dict[str, Array]:
        """`{"x": (n, channels, height, width)}`"""
        pixels = stack_pictures(objects, self.height, self.width)
        return {"x": np.ascontiguousarray(self.normalisation(pixels).transpose(0, 3, 1, 2), dtype=np.float32)}


def picture_of(one: Object) -> Array:
    """`(height, width, channels)` of a single picture."""
    assert isinstance(one, Single)
    value = one.values[0]
    assert isinstance(value, np.ndarray)
    return value if value.ndim == 3 else value[..., None]


def stack_pictures(objects: Sequence[Object], height: int, width: int) -> Array:
    """`(n, height, width, channels)`, resized with bilinear interpolation where needed."""
    return np.stack([resize(picture_of(one), height, width) for one in objects])


def resize(picture: Array, height: int, width: int) -> Array:
    """`(h, w, c) → (height, width, c)`."""
    if picture.shape[:2] == (height, width):
        return picture
    planes = [
        np.asarray(Image.fromarray(picture[..., c]).resize((width, height), Image.Resampling.BILINEAR))
        for c in range(picture.shape[2])
    ]
    return np.stack(planes, axis=-1)


def fit_pictures(objects: Sequence[Object], normalisation: str, side: int = LARGEST_SIDE) -> PictureEncoder:
    """The common size is the median of the sizes seen, shrunk so that no side is longer than `side`."""
    shapes = np.array([picture_of(one).shape for one in objects])
    height, width = (float(np.median(shapes[:, axis])) for axis in (0, 1))
    shrink = min(1.0, side / max(height, width))
    size = max(1, round(height * shrink)), max(1, round(width * shrink))
    sample = stack_pictures(objects[:: max(1, len(objects) // 2000)], *size)
    return PictureEncoder(*size, int(shapes[0, 2]), fit_normalisation(normalisation, sample))
