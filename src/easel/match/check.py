"""A stored model answers a few validated examples before it takes over: the same as in memory, sanely and in time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.errors import Conflict
from easel.match.examples import Object
from easel.match.model import Model, load_model, present
from easel.match.targets import Classes

MOST_CHECKED, ALONE = 64, 8
"""So many examples are asked together, and the first of them one by one."""
ANSWER_LIMIT_S = 2.0
"""A model whose usual answer takes longer than this is not let to answer people."""
_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """What the check found: how many examples were answered, and the median milliseconds of one alone."""

    answered: int
    median_ms: float


def check_stored(
    folder: Path,
    trained: Model,
    inputs: Sequence[Object],
    clock: Callable[[], float] = time.perf_counter,
    limit_s: float = ANSWER_LIMIT_S,
) -> ModelCheck:
    """Load the model as whoever serves it will, and ask it; raises Conflict with what is wrong."""
    asked = list(inputs[:MOST_CHECKED])
    if not asked:
        return ModelCheck(0, 0.0)
    stored = load_model(folder)
    found, wanted = stored.predict(asked), trained.predict(asked)
    wrong = insane(stored, found)
    if wrong is None and found.shape != wanted.shape:
        wrong = f"its stored form answers {found.shape}, the trained one {wanted.shape}"
    if wrong is None and not np.allclose(found, wanted, rtol=_TOLERANCE, atol=_TOLERANCE):
        wrong = "its stored form answers otherwise than the trained one"
    if wrong is not None:
        raise Conflict(f"the model does not take over: {wrong}")
    present(stored, found)
    times = []
    for one in asked[:ALONE]:
        began = clock()
        stored.predict([one])
        times.append(clock() - began)
    median = float(np.median(times))
    if median > limit_s:
        raise Conflict(
            f"the model does not take over: one answer takes {median:.1f} s, and at most {limit_s:g} s are allowed"
        )
    return ModelCheck(len(asked), round(1e3 * median, 3))


def insane(model: Model, found: NDArray[Any]) -> str | None:
    """What no answer may be, in words; None where all is well."""
    values = np.asarray(found, dtype=np.float64)
    if not np.isfinite(values).all():
        return f"{int((~np.isfinite(values)).sum())} of its {values.size} answers are not finite"
    if isinstance(model.target, Classes):
        if values.min() < -1e-6 or values.max() > 1 + 1e-6:
            return "some of its probabilities are below 0 or above 1"
        if not np.allclose(values.sum(-1), 1.0, atol=1e-3):
            return "its probabilities do not add up to 1"
    return None
