"""Questions that come at the same time are answered by one call of the model.

Most of what a small question costs is the same for a hundred: whoever finds the model busy waits, and the next one to
have it takes along everybody who waits. A question that comes alone waits for nobody.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from easel.match.examples import Object
from easel.match.model import Model

MAX_BATCH = 256


@dataclass(eq=False)
class _Question:
    inputs: Sequence[Object]
    answer: NDArray[Any] | None = None


class Batched:
    """One loaded model that many threads ask."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._model_is_free = threading.Lock()
        self._list_is_free = threading.Lock()
        self._waiting: list[_Question] = []

    @property
    def waiting(self) -> int:
        """How many questions nobody has taken yet."""
        return len(self._waiting)

    def predict(self, inputs: Sequence[Object]) -> NDArray[Any]:
        """Answers as the model itself does; an error of one question is not the others' error."""
        mine = _Question(inputs)
        with self._list_is_free:
            self._waiting.append(mine)
        with self._model_is_free:
            if mine.answer is None:
                self._answer(self._together(mine))
        return self.model.predict(inputs) if mine.answer is None else mine.answer

    def _together(self, mine: _Question) -> list[_Question]:
        """Returns the questions that wait, this one among them, as far as they are not too many at once."""
        with self._list_is_free:
            chosen, size = [mine], len(mine.inputs)
            rest: list[_Question] = []
            for one in self._waiting:
                if one is mine:
                    continue
                if size + len(one.inputs) <= MAX_BATCH:
                    chosen.append(one)
                    size += len(one.inputs)
                else:
                    rest.append(one)
            self._waiting = rest
        return chosen

    def _answer(self, questions: Sequence[_Question]) -> None:
        """Asks the model once for all; where that fails they stay without an answer, and each asks for itself."""
        try:
            found = self.model.predict([one for question in questions for one in question.inputs])
        except Exception:
            if len(questions) == 1:
                raise
            return
        ends = np.cumsum([len(question.inputs) for question in questions])
        for question, answer in zip(questions, np.split(found, ends[:-1]), strict=True):
            question.answer = answer
