"""Programs in friendlier clothes: YAML or JSON.

    input: {age: number, income: optional number, city: category}      input: image 28 x 28 x 1
    output: {species: [setosa, versicolor, virginica]}                 output: [cat, dog]

Each side is a phrase, a list of classes, a mapping from names to those, or, for chains and trees,
`{fields: …, pointers: [left, right]}`. Phrases: `number`, `numbers 4`, `category`, `text`, `date`, `image`,
`image 28 x 28`, `tensor 5 x 3`, `series of <phrase>`; `optional <phrase>` or a trailing `?` (which YAML
admits on a line of its own, not between braces) says that a value may be missing; `category as group` and
`date as time` say what a column is for.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import yaml
from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from easel.declare.parse import parse_program, point_at
from easel.declare.program import (
    MAX_FIELDS,
    ROLES,
    Category,
    ColumnRole,
    DataType,
    Date,
    Field,
    Number,
    Program,
    ProgramError,
    Tensor,
    Text,
)
from easel.declare.yaml_text import load_yaml
from easel.errors import InvalidInput

_PHRASE = r"""
?start: series | plain
series: "series"i "of"i plain
plain: [SAID] kind [OPTIONAL] ["as"i ROLE]
SAID: "optional"i
?kind: ("number"i | "float"i) -> number
    | "numbers"i INT -> numbers
    | INT "numbers"i -> numbers
    | ("category"i | "class"i | "label"i) -> category
    | ("text"i | "string"i) -> text
    | ("date"i | "time"i) -> date
    | "image"i [sides] -> image
    | "tensor"i sides -> tensor
    | "tensor"i "[" side ("," side)* "]" -> bracketed
sides: side (("x"i | "×") side)*
side: INT | OPTIONAL
OPTIONAL: "?"
ROLE: "group"i | "time"i
INT: /[0-9]+/
%ignore /\s+/
"""


@cache
def _phrases() -> Lark:
    return Lark(_PHRASE, parser="lalr", maybe_placeholders=True)


def read_program(text: str) -> Program:
    """A program in any of its written forms: the paper's notation, YAML or JSON."""
    body = text.lstrip()
    if not body:
        raise ProgramError("the program is empty; write  input: image 28 x 28  and  output: [cat, dog]")
    if body.startswith("{") and not body[1:].lstrip().startswith(('"', "'", "}")):
        return parse_program(text)
    try:
        # BaseLoader builds strings, lists and mappings alone: a class called "yes" or "1.0" stays a word.
        value = load_yaml(text, yaml.BaseLoader, yaml.CBaseLoader, "the program")
    except InvalidInput as error:
        raise ProgramError(str(error)) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        position = mark.index if mark is not None else 0
        if "?" in text:
            raise point_at(
                text,
                min(position, len(text)),
                "not readable as YAML: between braces write `optional number`, not `number?`",
            ) from None
        raise point_at(text, min(position, len(text)), f"not readable as YAML: {error.problem}") from None
    except yaml.YAMLError as error:  # a character that no YAML may hold
        raise ProgramError(f"not readable as YAML: {error}") from None
    return program_from_mapping(value)


def program_from_mapping(value: Any) -> Program:
    """Returns the program of plain values: `{"input": side, "output": side}`."""
    if not isinstance(value, dict) or set(value) != {"input", "output"}:
        keys = ", ".join(map(str, value)) if isinstance(value, dict) else type(value).__name__
        raise ProgramError(f'a program has exactly the two parts "input" and "output"; found: {keys}')
    return Program(_side(value["input"], "input"), _side(value["output"], "output"))


def _side(value: Any, where: str) -> DataType:
    if isinstance(value, str):
        fields, series = _phrase(value, None, where)
        return DataType((fields,), ("next",) if series else ())
    if isinstance(value, list) and not any(isinstance(v, dict | list) for v in value):
        return DataType((_classes(value, None, where),))
    if not isinstance(value, dict):
        raise ProgramError(
            f"{where}: expected a phrase, a list of classes or named fields, not {value!r:.60}"
        )
    pointers: tuple[str, ...] = ()
    if set(value) == {"fields", "pointers"}:
        listed = value["pointers"]
        if not isinstance(listed, list) or not all(isinstance(p, str) for p in listed):
            raise ProgramError(f"{where}.pointers: expected a list of names")
        value, pointers = value["fields"], tuple(listed)
        if isinstance(value, str):
            return DataType((_single(value, None, where),), pointers)
        if not isinstance(value, dict):
            raise ProgramError(f"{where}.fields: expected a phrase or named fields")
    if len(value) > MAX_FIELDS:
        raise ProgramError(f"{where}: at most {MAX_FIELDS:,} fields")
    fields_of = tuple(_named(str(name), described, f"{where}.{name}") for name, described in value.items())
    return DataType(fields_of, pointers)


def _named(name: str, described: Any, where: str) -> Field:
    if isinstance(described, str):
        return _single(described, name, where)
    if isinstance(described, list):
        return _classes(described, name, where)
    raise ProgramError(
        f"{where}: expected a phrase (number, text, …) or a list of classes, not {described!r:.60}"
    )


def _classes(values: list[Any], name: str | None, where: str) -> Category:
    if not values:
        raise ProgramError(
            f"{where}: the list of classes is empty; write  category  to take it from the data"
        )
    if any(isinstance(v, dict | list) or v is None for v in values):
        raise ProgramError(f"{where}: a class is a word or a number")
    return Category(tuple(str(value) for value in values), name)


def _single(phrase: str, name: str | None, where: str) -> Field:
    field, series = _phrase(phrase, name, where)
    if series:
        raise ProgramError(f'{where}: "series of" describes a whole side, not one field of it')
    return field


def _phrase(phrase: str, name: str | None, where: str) -> tuple[Field, bool]:
    try:
        tree = _phrases().parse(phrase)
    except UnexpectedInput as error:
        position = getattr(error, "pos_in_stream", None)
        placed = point_at(phrase, len(phrase) if position is None else position, "this phrase is not known")
        raise ProgramError(
            f"{where}: {placed.message}\n  known: number, numbers 4, category, text, date, image, image 28 x 28, "
            "tensor 5 x 3, series of …",
            **placed.details,
        ) from None
    series = tree.data == "series"
    plain = next(tree.find_data("plain"))
    said = [child for child in plain.children if isinstance(child, Token)]
    marked = [child for child in said if child.type != "ROLE"]
    named = next((str(child).lower() for child in said if child.type == "ROLE"), None)
    role = next((one for one in ROLES if one == named), None)
    kind = next(child for child in plain.children if isinstance(child, Tree))
    return _field(kind, name, bool(marked), role, where), series


def _field(kind: Tree[Token], name: str | None, optional: bool, role: ColumnRole | None, where: str) -> Field:
    shape = tuple(
        int(str(side.children[0])) if str(side.children[0]) != "?" else None
        for side in kind.find_data("side")
    )
    match kind.data:
        case "number":
            return Number(1, name, optional, role)
        case "numbers":
            return Number(int(str(kind.children[0])), name, optional, role)
        case "category":
            return Category((), name, optional, role)
        case "text":
            return Text(name, optional, role)
        case "date":
            return Date(name, optional, role)
        case _ if role is not None:
            raise ProgramError(f"{where}: a picture or a tensor can be neither group nor time")
        case "image":
            picture = (*(shape or (None, None)), *((3,) if not shape else (1,) if len(shape) == 2 else ()))
            return Tensor(picture, name)
        case _:
            return Tensor(shape, name)
