"""The learned part of models that need no torch, stored with skops or in their library's own safe form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.errors import InvalidInput
from easel.match.candidate import Candidate
from easel.match.encode.texts import text_of
from easel.match.estimators import probabilities
from easel.match.examples import Object
from easel.match.family import ModelFiles
from easel.match.registry import estimator_family
from easel.match.targets import Classes

_TRUSTED = ("sklearn.", "lightgbm.", "numpy.", "scipy.", "collections.OrderedDict", "builtins.")


def matrix(source: Any, inputs: Sequence[Object]) -> Any:
    """What an estimator reads: a matrix, or the texts themselves where there is no encoder."""
    if source is None:
        return [text_of(one) for one in inputs]
    encoded = source(inputs)
    return encoded["x"].reshape(len(inputs), -1) if isinstance(encoded, dict) else encoded


@dataclass(frozen=True)
class EstimatorBody:
    """A fitted pipeline with the encoders around it, stored as its family says."""

    candidate: Candidate
    estimator: Any
    source: Any
    target: Any

    @property
    def kind(self) -> str:
        return "estimator"

    def predict(self, inputs: Sequence[Object]) -> NDArray[Any]:
        return predict_matrix(self.estimator, matrix(self.source, inputs), self.target)

    def save(self, folder: Path) -> None:
        (estimator_family(self.candidate).files or SKOPS).save(self.estimator, folder)


def predict_matrix(estimator: Any, x: Any, target: Any) -> NDArray[Any]:
    if isinstance(target, Classes):
        return probabilities(estimator, x, len(target.names))
    values = np.asarray(estimator.predict(x), dtype=np.float64)
    return values.reshape(len(values), -1)


def load_estimator(folder: Path, candidate: Candidate, source: Any, target: Any) -> EstimatorBody:
    files = estimator_family(candidate).files or SKOPS
    return EstimatorBody(candidate, files.load(folder), source, target)


def _save_skops(estimator: Any, folder: Path) -> None:
    import skops.io  # two seconds: only where a model is stored or read

    skops.io.dump(estimator, folder / "estimator.skops")


def _load_skops(folder: Path) -> Any:
    """Refuses a file that names any type outside the libraries that models are made of."""
    import skops.io

    path = folder / "estimator.skops"
    wanted = skops.io.get_untrusted_types(file=path)
    strange = [name for name in wanted if not name.startswith(_TRUSTED)]
    if strange:
        raise InvalidInput(f"the model file names types that are not allowed: {', '.join(strange)[:200]}")
    return skops.io.load(path, trusted=wanted)


SKOPS = ModelFiles(_save_skops, _load_skops)
"""What scikit-learn's and LightGBM's models are stored as."""
