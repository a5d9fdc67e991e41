"""Several candidates of an app learned in one process: its examples are read once, its networks trained as one program.

Each trial keeps its own output and its own end; one that fails or is killed leaves the others running.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from easel.declare.program import Program
from easel.flow.apps.trial import LearningContext, Read, Work, everything, keep_work, open_work, read_examples
from easel.match.examples import Example
from easel.match.fit_packed import Left
from easel.match.fit_rounds import best_bags
from easel.match.stored import Wanted
from easel.match.train import conclude, prepare
from easel.match.train_network import Encoded, encode, learned_of


class SharedContext(LearningContext, Protocol):
    """The part of a trial's context that is needed where it shares its process."""

    @property
    def input_key(self) -> str: ...
    def was_killed(self) -> bool: ...


@dataclass(frozen=True)
class _Begun:
    """A trial whose examples are read and encoded."""

    place: SharedContext
    work: Work
    encoded: Encoded


def learn_together(
    places: Sequence[SharedContext], told: Callable[[int, Mapping[str, Any] | BaseException], None]
) -> None:
    """Learn several candidates of networks; `told` hears, by its number, what came of each, as soon as that is over."""
    read, begun = _ReadOnce(), dict[int, _Begun]()
    for number, place in enumerate(places):
        try:
            begun[number] = _begin(place, read)
        except Exception as error:  # noqa: BLE001  of one trial: the others go on
            told(number, error)
    numbers, gone = list(begun), set[int]()

    def left(k: int) -> bool:
        if k not in gone and begun[numbers[k]].place.was_killed():
            gone.add(k)
            told(numbers[k], Left("was stopped"))  # nobody need wait for the others to hear it
        return k in gone

    for k, found in best_bags([one.encoded.fitting for one in begun.values()], left):
        if isinstance(found, Exception):
            told(numbers[k], found)
            continue
        one = begun[numbers[k]]
        try:
            trained = conclude(one.encoded.prepared, learned_of(one.encoded, found))
            told(numbers[k], {**keep_work(one.place, one.work, trained), "together": len(begun)})
        except Exception as error:  # noqa: BLE001  of one trial: the others go on
            told(numbers[k], error)


def _begin(place: SharedContext, read: _ReadOnce) -> _Begun:
    work = open_work(place, read.of(place))

    def stop() -> bool:
        return place.asked_to_give_way() or place.was_killed()

    conditions = replace(work.conditions, give_way=stop)
    prepared = prepare(work.candidate, work.program, work.examples, work.folds, conditions)
    return _Begun(place, work, encode(prepared))


class _ReadOnce:
    """Reads the examples of an input once for all trials that learn from the same ones."""

    def __init__(self) -> None:
        self._found: dict[Any, tuple[list[str], list[int], list[Example]]] = {}

    def of(self, place: SharedContext) -> Read:
        """Returns what reads for this trial."""

        def read(
            program: Program, _: LearningContext, side: int, wanted: Wanted
        ) -> tuple[list[str], list[int], list[Example]]:
            if wanted is not everything:
                return read_examples(program, place, side, wanted)
            key = (place.input_key, program, side, frozenset(place.arguments.get("off", ())))
            if key not in self._found:
                self._found[key] = read_examples(program, place, side, wanted)
            return self._found[key]

        return read
