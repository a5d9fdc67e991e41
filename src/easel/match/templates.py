"""Template matching, top to bottom (ease.ml figure 6), with wildcards.

A pattern is written like a data type. Capital letters stand for any dimension, small ones for any pointer,
`*` for an arbitrary tail. Beside the paper's `Tensor[…]` a field pattern may be a kind:

- `Class`   a class vector `Tensor[D]`, D ≥ 2, or a `Category`
- `Value`   one real number: `Number` or `Tensor[1]`
- `Values`  any number of real numbers
- `Step`    what a series or a tree may carry at each node: `Tensor[A]`, `Number[k]`, `Category`
- `Column`  what a table may hold: the same, `Text` or `Date`
- `Cell`    the same, or a picture
- `Named`   a `Category`: several of them are several answers about one object
- `Text`

and `Kind*` stands for one or more of a kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache

from lark import Lark, Token, Tree

from easel.declare.program import Category, DataType, Date, Field, Number, Program, Tensor, Text, is_picture
from easel.match.kinds import Task, TemplateKind


@dataclass(frozen=True)
class Template:
    """A row of figure 6: patterns of what goes in and comes out, and the kind of workload that is.

    Which families of models fit a kind and a task is written in the families' own records.
    """

    name: str
    kind: TemplateKind
    task: Task
    input: str
    output: str


TEMPLATES: tuple[Template, ...] = (
    Template(
        "image classification", TemplateKind.IMAGE, Task.CLASSIFY, "{[Tensor[A, B, C]], []}", "{[Class], []}"
    ),
    Template(
        "image classification", TemplateKind.IMAGE, Task.CLASSIFY, "{[Tensor[A, B]], []}", "{[Class], []}"
    ),
    Template(
        "image regression", TemplateKind.IMAGE, Task.REGRESS, "{[Tensor[A, B, C]], []}", "{[Values], []}"
    ),
    Template("image regression", TemplateKind.IMAGE, Task.REGRESS, "{[Tensor[A, B]], []}", "{[Values], []}"),
    Template(
        "image recovery",
        TemplateKind.IMAGE,
        Task.RECOVER,
        "{[Tensor[A, B, C]], []}",
        "{[Tensor[D, E, F]], []}",
    ),
    Template(
        "time-series classification",
        TemplateKind.SERIES,
        Task.CLASSIFY,
        "{[Step, Step*], [a]}",
        "{[Class], []}",
    ),
    Template(
        "time-series regression", TemplateKind.SERIES, Task.REGRESS, "{[Step, Step*], [a]}", "{[Values], []}"
    ),
    Template(
        "time-series translation",
        TemplateKind.SERIES,
        Task.TRANSLATE,
        "{[Step, Step*], [a]}",
        "{[Step, Step*], [b]}",
    ),
    Template(
        "tree classification", TemplateKind.TREE, Task.CLASSIFY, "{[Step, Step*], [a, c, *]}", "{[Class], []}"
    ),
    Template("text classification", TemplateKind.TEXT, Task.CLASSIFY, "{[Text], []}", "{[Class], []}"),
    Template("text regression", TemplateKind.TEXT, Task.REGRESS, "{[Text], []}", "{[Value], []}"),
    Template(
        "table classification", TemplateKind.TABLE, Task.CLASSIFY, "{[Column, Column*], []}", "{[Class], []}"
    ),
    Template(
        "table regression", TemplateKind.TABLE, Task.REGRESS, "{[Column, Column*], []}", "{[Value], []}"
    ),
    Template(
        "multi-output regression",
        TemplateKind.MULTI_OUTPUT,
        Task.REGRESS,
        "{[Column, Column*], []}",
        "{[Values, Values*], []}",
    ),
    Template(
        "picture and table classification",
        TemplateKind.TABLE,
        Task.CLASSIFY,
        "{[Cell, Cell*], []}",
        "{[Class], []}",
    ),
    Template(
        "picture and table regression",
        TemplateKind.TABLE,
        Task.REGRESS,
        "{[Cell, Cell*], []}",
        "{[Value], []}",
    ),
    Template(
        "picture and table regression",
        TemplateKind.MULTI_OUTPUT,
        Task.REGRESS,
        "{[Cell, Cell*], []}",
        "{[Values, Values*], []}",
    ),
    *(
        Template(f"{name}, several answers", kind, Task.CLASSIFY, source, "{[Named, Named*], []}")
        for name, kind, source in (
            ("image classification", TemplateKind.IMAGE, "{[Tensor[A, B, C]], []}"),
            ("image classification", TemplateKind.IMAGE, "{[Tensor[A, B]], []}"),
            ("time-series classification", TemplateKind.SERIES, "{[Step, Step*], [a]}"),
            ("text classification", TemplateKind.TEXT, "{[Text], []}"),
            ("table classification", TemplateKind.TABLE, "{[Cell, Cell*], []}"),
        )
    ),
    Template("general classification", TemplateKind.GENERAL, Task.CLASSIFY, "{[*], [*]}", "{[Class], []}"),
    Template("general auto-encoder", TemplateKind.GENERAL, Task.REBUILD, "{[*], [*]}", "{[*], [*]}"),
)


@lru_cache(maxsize=256)
def match_program(program: Program) -> Template:
    """The first template that fits. The last one fits everything."""
    for template in TEMPLATES:
        sides: dict[str, int | None] = {}
        if fits(template.input, program.input, sides) and fits(template.output, program.output, sides):
            return template
    raise AssertionError("the general auto-encoder fits every program")


_GRAMMAR = r"""
start: "{" fields "," pointers "}"
fields: "[" item ("," item)* "]"
item: STAR -> any_tail
    | "Tensor" "[" VAR ("," VAR)* "]" -> tensor
    | KIND STAR -> repeated
    | KIND -> single
pointers: "[" [pointer ("," pointer)*] "]"
pointer: STAR | NAME
KIND: /Class|Named|Values|Value|Step|Column|Cell|Text/
VAR: /[A-Z]/
NAME: /[a-z]/
STAR: "*"
%ignore " "
"""


@cache
def _parse(pattern: str) -> tuple[list[Tree[Token]], list[str]]:
    tree = Lark(_GRAMMAR, parser="lalr", maybe_placeholders=False).parse(pattern)
    fields, pointers = tree.children
    assert isinstance(fields, Tree)
    assert isinstance(pointers, Tree)
    items = [item for item in fields.children if isinstance(item, Tree)]
    return items, [str(pointer.children[0]) for pointer in pointers.find_data("pointer")]


def fits(pattern: str, data_type: DataType, sides: dict[str, int | None] | None = None) -> bool:
    """Whether `data_type` is an instance of `pattern`. A variable that is used twice means one size; `sides` holds
    those that were found so far, so that input and output may share some.
    """
    items, pointers = _parse(pattern)
    found = {} if sides is None else sides
    fields = list(data_type.fields)
    return _fields_fit(items, fields, found) and _pointers_fit(pointers, len(data_type.pointers))


def _pointers_fit(wanted: list[str], count: int) -> bool:
    fixed = sum(name != "*" for name in wanted)
    return count >= fixed if "*" in wanted else count == fixed


def _fields_fit(items: list[Tree[Token]], fields: list[Field], sides: dict[str, int | None]) -> bool:
    for position, item in enumerate(items):
        if item.data == "any_tail":
            return True
        if item.data == "repeated":
            return all(_KINDS[str(item.children[0])](field) for field in fields[position:])
        if position >= len(fields):
            return False
        field = fields[position]
        if item.data == "tensor":
            if not (isinstance(field, Tensor) and field.rank == len(item.children)):
                return False
            if not _sides_fit([str(name) for name in item.children], field.shape, sides):
                return False
        elif not _KINDS[str(item.children[0])](field):
            return False
    return len(fields) == len(items)


def _sides_fit(names: list[str], shape: tuple[int | None, ...], sides: dict[str, int | None]) -> bool:
    """Bind every variable to its side, or compare with what it is bound to; an open side fits open sides only."""
    return all(sides.setdefault(name, side) == side for name, side in zip(names, shape, strict=True))


def _is_class(field: Field) -> bool:
    vector = isinstance(field, Tensor) and field.rank == 1 and field.shape != (1,) and None not in field.shape
    return vector or isinstance(field, Category)


def _is_value(field: Field) -> bool:
    return (isinstance(field, Number) and field.count == 1) or (
        isinstance(field, Tensor) and field.shape == (1,)
    )


def _is_step(field: Field) -> bool:
    if isinstance(field, Tensor):
        return field.rank == 1 and None not in field.shape
    return isinstance(field, Number | Category)


_KINDS: dict[str, Callable[[Field], bool]] = {
    "Class": _is_class,
    "Value": _is_value,
    "Values": lambda field: _is_value(field) or isinstance(field, Number),
    "Step": _is_step,
    "Column": lambda field: _is_step(field) or isinstance(field, Text | Date),
    "Cell": lambda field: _is_step(field) or isinstance(field, Text | Date) or is_picture(field),
    "Named": lambda field: isinstance(field, Category),
    "Text": lambda field: isinstance(field, Text),
}
