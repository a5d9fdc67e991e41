"""Pictures → `(n, channels, height, width)`, all of one size."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from easel.match.candidate import Candidate
from easel.match.examples import Array, Example, Object, Single
from easel.match.normalise import Normalisation, fit_normalisation
from easel.match.pictures import LARGEST_SIDE
from easel.match.registry import family_of

IN_MEMORY = 256 * 2**20
"""Encoded pictures that take more bytes lie in a file that is mapped into memory, and is gone with the process."""
AT_ONCE = 128


@dataclass(frozen=True)
class PictureEncoder:
    """Every picture is shrunk to `side` on its longer side (0: as it is), brought to `height × width`, then
    normalised per channel.
    """

    height: int
    width: int
    channels: int
    normalisation: Normalisation
    side: int = 0

    def __call__(self, objects: Sequence[Object]) -> dict[str, Array]:
        """`{"x": (n, channels, height, width)}`"""
        x = _room((len(objects), self.channels, self.height, self.width))
        for start in range(0, len(objects), AT_ONCE):
            part = objects[start : start + AT_ONCE]
            pixels = stack_pictures(part, self.height, self.width, self.side)
            x[start : start + len(part)] = self.normalisation(pixels).transpose(0, 3, 1, 2)
        return {"x": x}

    def in_bytes(self, objects: Sequence[Object]) -> dict[str, Array] | None:
        """The same pictures in bytes, before they are normalised; None where one is not made of bytes."""
        x = _room((len(objects), self.channels, self.height, self.width), np.uint8)
        for start in range(0, len(objects), AT_ONCE):
            part = objects[start : start + AT_ONCE]
            pixels = stack_pictures(part, self.height, self.width, self.side)
            if pixels.dtype != np.uint8:
                return None
            x[start : start + len(part)] = pixels.transpose(0, 3, 1, 2)
        return {"x": x}

    def byte_values(self) -> Array:
        """`(channels, 256)`: what each byte of a channel is after normalisation."""
        every = np.repeat(np.arange(256, dtype=np.float32)[:, None], self.channels, axis=1)
        return np.ascontiguousarray(self.normalisation(every).T, dtype=np.float32)


def _room(shape: tuple[int, int, int, int], dtype: type[np.generic] = np.float32) -> Array:
    if np.dtype(dtype).itemsize * int(np.prod(shape)) <= IN_MEMORY:
        return np.empty(shape, dtype=dtype)
    with tempfile.TemporaryFile() as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)


def picture_of(one: Object) -> Array:
    """`(height, width, channels)` of a single picture."""
    assert isinstance(one, Single)
    value = one.values[0]
    assert isinstance(value, np.ndarray)
    return value if value.ndim == 3 else value[..., None]


def stack_pictures(objects: Sequence[Object], height: int, width: int, side: int = 0) -> Array:
    """`(n, height, width, channels)`, resized with bilinear interpolation where needed."""
    return np.stack([resize(compact(picture_of(one), side), height, width) for one in objects])


def resize(picture: Array, height: int, width: int) -> Array:
    """`(h, w, c) → (height, width, c)`."""
    if picture.shape[:2] == (height, width):
        return picture
    planes = [
        np.asarray(Image.fromarray(picture[..., c]).resize((width, height), Image.Resampling.BILINEAR))
        for c in range(picture.shape[2])
    ]
    return np.stack(planes, axis=-1)


def compact(picture: Array, side: int) -> Array:
    """`(h, w, c)`, no longer than `side` (0: as it is) and in bytes where all values are whole from 0 to 255.

    Doing it twice changes nothing more: a trial does it to each picture as it is read, so that thousands of
    photographs fit into memory; the encoder does it again, so that whoever asks later meets the same pixels.
    """
    if picture.dtype != np.uint8 and _are_bytes(picture):
        picture = picture.astype(np.uint8)
    if not side or max(picture.shape[:2]) <= side:
        return picture
    return resize(picture, *_shrunk(picture.shape, side))


def looks_at(candidate: Candidate) -> int:
    """The longest side of a picture that a candidate looks at; models of tables see very small ones."""
    return family_of(candidate).looks_at(candidate) or LARGEST_SIDE


def compact_example(example: Example, side: int) -> Example:
    """Shrinks its pictures, on both sides, to no more than any model of this `side` will look at."""
    return Example(_compact_object(example.input, side), _compact_object(example.output, side))


def _compact_object(one: Object, side: int) -> Object:
    if not isinstance(one, Single):
        return one
    return Single(
        tuple(
            compact(value, side) if isinstance(value, np.ndarray) and value.ndim == 3 else value
            for value in one.values
        )
    )


def _are_bytes(picture: Array) -> bool:
    return bool(picture.min() >= 0 and picture.max() <= 255 and (picture == np.rint(picture)).all())


def _shrunk(shape: tuple[int, ...], side: int) -> tuple[int, int]:
    height, width = shape[:2]
    shrink = min(1.0, side / max(height, width))
    return max(1, round(height * shrink)), max(1, round(width * shrink))


def fit_pictures(objects: Sequence[Object], normalisation: str, side: int = LARGEST_SIDE) -> PictureEncoder:
    """The common size is the median of the sizes seen, each shrunk so that no side is longer than `side`."""
    shapes = np.array([_shrunk(picture_of(one).shape, side) for one in objects])
    height, width = (max(1, round(float(np.median(shapes[:, axis])))) for axis in (0, 1))
    sample = stack_pictures(objects[:: max(1, len(objects) // 500)], height, width, side)
    channels = picture_of(objects[0]).shape[2]
    return PictureEncoder(height, width, channels, fit_normalisation(normalisation, sample), side)
