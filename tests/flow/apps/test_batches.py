"""Questions at the same time: one call of the model for all who wait, and each gets its own answer."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.match import worlds

from easel.flow.apps.batches import MAX_BATCH, Batched
from easel.match.candidate import Candidate
from easel.match.examples import Object, Single
from easel.match.model import Model
from easel.match.targets import Values
from easel.testing.engine import until


@dataclass
class Doubling:
    """Answers a number with its double, once it may; a negative one is beyond it."""

    may_answer: threading.Event
    calls: list[int] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return "doubling"

    def predict(self, inputs: Sequence[Object]) -> NDArray[Any]:
        self.calls.append(len(inputs))
        assert self.may_answer.wait(60)
        numbers = np.array([[float(one.values[0])] for one in inputs if isinstance(one, Single)])  # type: ignore[arg-type]
        if (numbers < 0).any():
            raise ArithmeticError("negative")
        return 2.0 * numbers

    def save(self, folder: Path) -> None:
        folder.mkdir()


def asked_at_once(numbers: list[list[float]]) -> tuple[Doubling, list[Any]]:
    """The first question holds the model until all others wait; what each was told, or its error."""
    body = Doubling(threading.Event())
    model = Model(worlds.line()[0], Candidate("linear"), None, Values(1, (0.0,), (1.0,)), body)
    batched = Batched(model)
    questions = [[Single((number,)) for number in some] for some in numbers]
    with ThreadPoolExecutor(len(questions)) as threads:
        told = [threads.submit(batched.predict, questions[0])]
        until(lambda: len(body.calls) == 1)
        told += [threads.submit(batched.predict, question) for question in questions[1:]]
        until(lambda: batched.waiting == len(questions) - 1)
        body.may_answer.set()
        return body, [one.exception(60) or one.result(60)[:, 0].tolist() for one in told]


def test_those_who_wait_are_answered_together_and_each_gets_its_own() -> None:
    body, told = asked_at_once([[1.0], [2.0, 3.0], [4.0], [5.0]])
    assert told == [[2.0], [4.0, 6.0], [8.0], [10.0]]
    assert body.calls == [1, 4]


def test_a_question_that_fails_is_nobody_elses_error() -> None:
    _, told = asked_at_once([[1.0], [2.0], [-1.0], [3.0]])
    assert [answer for answer in told if isinstance(answer, list)] == [[2.0], [4.0], [6.0]]
    (error,) = [answer for answer in told if not isinstance(answer, list)]
    assert isinstance(error, ArithmeticError)


def test_large_questions_are_not_put_together() -> None:
    many = [1.0] * MAX_BATCH
    body, told = asked_at_once([[1.0], many, many])
    assert body.calls == [1, MAX_BATCH, MAX_BATCH]
    assert [len(answer) for answer in told] == [1, MAX_BATCH, MAX_BATCH]


@pytest.mark.parametrize("count", [1, 3])
def test_one_alone_waits_for_nobody(count: int) -> None:
    body = Doubling(threading.Event())
    body.may_answer.set()
    model = Model(worlds.line()[0], Candidate("linear"), None, Values(1, (0.0,), (1.0,)), body)
    answer = Batched(model).predict([Single((float(k),)) for k in range(count)])
    assert answer[:, 0].tolist() == [2.0 * k for k in range(count)]
