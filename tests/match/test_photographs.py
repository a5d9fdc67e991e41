"""Photographs of any size: kept small, encoded piece by piece, and seen alike when learning and when asked."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest
from PIL import Image
from tests.match.worlds import World, world

from easel.declare.program import Tensor
from easel.match.candidate import Candidate
from easel.match.encode import images
from easel.match.encode.images import compact, compact_example, fit_pictures, looks_at
from easel.match.examples import Single
from easel.match.pictures import LARGEST_SIDE, decode_picture
from easel.match.split import assign_folds
from easel.match.summary import strata
from easel.match.train import Conditions, train

CANDIDATE = Candidate("convnet", (("augment", "flip"), ("lr", 3e-3), ("side", 16), ("width", 0.25)))


def photographs(n: int = 16) -> World:
    """Large pictures of several sizes, dark or light."""
    rng = np.random.default_rng(0)
    pairs = []
    for k in range(n):
        height, width = rng.integers(30, 60, size=2)
        pairs.append((rng.integers(0, 90, (height, width, 3)) + 100 * (k % 2), ["dark", "light"][k % 2]))
    return world("{input: {[Tensor[?, ?, 3]], []}, output: {[Category], []}}", pairs)


def test_a_model_learns_the_same_from_pictures_that_were_made_small_before() -> None:
    program, examples = photographs()
    small = [compact_example(example, looks_at(CANDIDATE)) for example in examples]
    assert max(max(e.input.values[0].shape) for e in small if isinstance(e.input, Single)) == 16  # type: ignore[union-attr]
    folds = [fold % 2 for fold in assign_folds(strata(program, examples))]
    conditions = Conditions(0, 600.0, time.monotonic, epochs=2)
    large, compacted = (train(CANDIDATE, program, some, folds, conditions) for some in (examples, small))
    inputs = [example.input for example in examples]
    np.testing.assert_allclose(
        large.model.predict(inputs), compacted.model.predict(inputs), rtol=1e-4, atol=1e-5
    )


def test_many_pictures_lie_in_a_file_and_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = [example.input for example in photographs(12)[1]]
    encoder = fit_pictures(inputs, "standard", side=20)
    in_memory = encoder(inputs)["x"]
    monkeypatch.setattr(images, "IN_MEMORY", 0)
    monkeypatch.setattr(images, "AT_ONCE", 5)
    mapped = encoder(inputs)["x"]
    assert isinstance(mapped, np.memmap)
    np.testing.assert_array_equal(mapped, in_memory)


@pytest.mark.parametrize("whole", [True, False])
def test_making_a_picture_small_twice_changes_nothing_more(whole: bool) -> None:
    rng = np.random.default_rng(0)
    picture = rng.integers(0, 256, (50, 30, 3)).astype(np.float32) + (0.0 if whole else 0.5)
    once = compact(picture, 16)
    assert once.shape == (16, 10, 3)
    assert once.dtype == (np.uint8 if whole else np.float32)
    np.testing.assert_array_equal(compact(once, 16), once)


def test_a_photograph_is_read_no_larger_than_any_network_looks_at() -> None:
    out = io.BytesIO()
    Image.fromarray(np.full((1500, 1000, 3), 200, np.uint8)).save(out, "JPEG")
    assert decode_picture(out.getvalue(), Tensor((None, None, 3))).shape == (LARGEST_SIDE, 149, 3)
    assert decode_picture(out.getvalue(), Tensor((30, 20, 3))).shape == (30, 20, 3)
