"""What a feed should be told of, though it fits its program: columns and classes from which little can be learned."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from easel.declare.counted import counted
from easel.declare.program import Category, Program
from easel.match.examples import Example, Single
from easel.match.kinds import Task
from easel.match.templates import match_program

FEW_ROWS, NEARLY_ALL = 50, 0.9
SHOWN = 5


class WordCounts:
    """The different words of each category column whose words the program leaves open."""

    def __init__(self, program: Program) -> None:
        source = program.input
        self._columns = {
            k: name
            for k, (name, field) in enumerate(zip(source.field_names, source.fields, strict=True))
            if isinstance(field, Category) and not field.values and not source.pointers
        }
        self._words: dict[int, set[str]] = {k: set() for k in self._columns}
        self._rows = 0

    def add(self, example: Example) -> None:
        if self._columns and isinstance(example.input, Single):
            self._rows += 1
            for k, words in self._words.items():
                words.add(str(example.input.values[k]))

    def remarks(self) -> list[str]:
        """A sentence for each column in which nearly every row has a word of its own."""
        if self._rows < FEW_ROWS:
            return []
        return [
            f"{self._columns[k]}: {counted(len(words), 'different word')} in "
            f"{counted(self._rows, 'example')} tell a model little; "
            "leave the column out if it only names the rows, or write Text if it is text"
            for k, words in self._words.items()
            if len(words) > NEARLY_ALL * self._rows
        ]


def lonely_classes(counts: Mapping[str, int]) -> list[str]:
    """A sentence about classes of one example, where others have more."""
    alone = sorted(name for name, count in counts.items() if count == 1 and name)
    if not alone or len(alone) == len(counts):
        return []
    named = ", ".join(alone[:SHOWN]) + (", …" if len(alone) > SHOWN else "")
    return [f"only one example of {named[:200]}: no score can say how well it is told apart; feed more of it"]


def answer_of(program: Program) -> Callable[[Example], str]:
    """What tells the numbers to predict, spelled alike where they are equal; empty where there are none."""
    if match_program(program).task is not Task.REGRESS:
        return lambda example: ""
    return lambda example: (
        ", ".join(str(value) for value in example.output.values) if isinstance(example.output, Single) else ""
    )
