"""Programs as Python type hints.

@dataclass
class Flower:
    petal: float
    colour: Literal["red", "white"]
    weight: float | None                 # may be missing
    picture: Annotated[Any, Shape(28, 28, 1)]
    next: Flower | None                  # a pointer: objects of the same type form a chain

program_from_types(Flower, Literal["rose", "tulip"])
"""

from __future__ import annotations

import types
import typing
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from easel.declare.program import Category, DataType, Date, Field, Number, Program, ProgramError, Tensor, Text


@dataclass(frozen=True, init=False)
class Shape:
    """The shape of an array in `Annotated[…, Shape(28, 28, 1)]`; `None` for a side that varies."""

    sides: tuple[int | None, ...]

    def __init__(self, *sides: int | None) -> None:
        object.__setattr__(self, "sides", sides)


def program_from_types(source: Any, target: Any) -> Program:
    """Returns the program of the types of an input and an output object."""
    return Program(data_type_of(source), data_type_of(target))


def program_from_function(function: typing.Callable[..., Any]) -> Program:
    """Returns the program of a function of one annotated argument (the input) with an annotated result (the output)."""
    hints = typing.get_type_hints(function, include_extras=True)
    target = hints.pop("return", None)
    if target is None or len(hints) != 1:
        raise ProgramError(f"{function.__name__} must have one annotated argument and an annotated result")
    return program_from_types(next(iter(hints.values())), target)


def data_type_of(hint: Any) -> DataType:
    """A dataclass becomes named fields and pointers; any other hint one unnamed field."""
    if not (isinstance(hint, type) and is_dataclass(hint)):
        return DataType((_field(hint, None, "the type"),))
    resolved = typing.get_type_hints(hint, include_extras=True)
    found: list[Field] = []
    pointers: list[str] = []
    for field in fields(hint):
        inner, optional = _without_none(resolved[field.name])
        if inner is hint:
            if not optional:
                raise ProgramError(
                    f"{hint.__name__}.{field.name} must be {hint.__name__} | None: a chain has to end"
                )
            pointers.append(field.name)
        else:
            found.append(_field(resolved[field.name], field.name, f"{hint.__name__}.{field.name}"))
    return DataType(tuple(found), tuple(pointers))


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (Union, types.UnionType):
        rest = [argument for argument in get_args(hint) if argument is not type(None)]
        if len(rest) == 1 and len(rest) < len(get_args(hint)):
            return rest[0], True
    return hint, False


def _field(hint: Any, name: str | None, where: str) -> Field:
    inner, optional = _without_none(hint)
    if get_origin(inner) is Literal:
        return Category(tuple(str(value) for value in get_args(inner)), name, optional)
    if get_origin(inner) is Annotated:
        for extra in get_args(inner)[1:]:
            if isinstance(extra, Shape):
                return Tensor(extra.sides, name)
        raise ProgramError(f"{where}: Annotated[…] needs a Shape, such as Annotated[Any, Shape(28, 28, 1)]")
    if inner is float or inner is int:
        return Number(1, name, optional)
    if inner is datetime or inner is date:
        return Date(name, optional)
    if inner is str:
        return Text(name, optional)
    raise ProgramError(
        f"{where}: {hint!r} is not understood; use float, str, date, Literal[…] or Annotated[…, Shape(…)]"
    )
