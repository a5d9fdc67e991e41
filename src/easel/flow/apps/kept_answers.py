"""The answers that a trial kept beside its model, read without trust: a damaged or lying file is an error in words."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from easel.declare.broken_files import BROKEN_ARRAY
from easel.errors import InvalidInput

MOST_UNPACKED = 2**30


@dataclass(frozen=True)
class KeptAnswers:
    """What a model answered to each example, named by its digest, class by class as `names` says."""

    names: tuple[str, ...]
    digests: tuple[str, ...]
    predicted: NDArray[np.float64]


def read_kept(predictions: bytes, described: bytes) -> KeptAnswers:
    """Returns what `predictions.npz` and `model.json` tell; InvalidInput where they are not what they should be."""
    names = _names(described)
    try:
        with ZipFile(io.BytesIO(predictions)) as packed:
            if sum(member.file_size for member in packed.infolist()) > MOST_UNPACKED:
                raise InvalidInput(f"the kept answers unpack to more than {MOST_UNPACKED:,} bytes")
        with np.load(io.BytesIO(predictions), allow_pickle=False) as kept:
            digests, predicted = kept["digests"], kept["predicted"]
    except BROKEN_ARRAY as error:
        raise InvalidInput(f"the kept answers cannot be read: {error}") from None
    if digests.ndim != 1 or digests.dtype.kind != "U" or predicted.dtype.kind not in "fiub":
        raise InvalidInput("the kept answers are not numbers for examples")
    if predicted.shape != (len(digests), len(names)):
        raise InvalidInput(
            f"{predicted.shape} answers are not those to {len(digests)} examples of {len(names)} classes"
        )
    return KeptAnswers(names, tuple(digests.tolist()), predicted.astype(np.float64))


def _names(described: bytes) -> tuple[str, ...]:
    try:
        found = json.loads(described)["target"]["state"]["names"]
    except (ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        raise InvalidInput(f"the description of the model names no classes: {error}") from None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise InvalidInput("the description of the model names no classes")
    return tuple(found)
