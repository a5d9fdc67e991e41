"""Template matching, top to bottom (ease.ml figure 6), with wildcards.

A pattern is written like a data type. Capital letters stand for any dimension, small ones for any pointer,
`*` for an arbitrary tail. Beside the paper's `Tensor[…]` a field pattern may be a kind:

- `Class`   a class vector `Tensor[D]`, D ≥ 2, or a `Category`
- `Value`   one real number: `Number` or `Tensor[1]`
- `Values`  any number of real numbers
- `Step`    what a series or a tree may carry at each node: `Tensor[A]`, `Number[k]`, `Category`
- `Column`  what a table may hold: the same, or `Text`
- `Text`

and `Kind*` stands for one or more of a kind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache, lru_cache

from lark import Lark, Token, Tree

from easel.declare.program import Category, DataType, Field, Number, Program, Tensor, Text


class Task(Enum):
    """What is asked for; decides loss, metric and the shape of an answer."""

    CLASSIFY = "classification"
    REGRESS = "regression"
    RECOVER = "recovery"
    TRANSLATE = "translation"
    REBUILD = "reconstruction"


@dataclass(frozen=True)
class Template:
    """A row of figure 6: patterns, the kind of workload, and the model families that fit."""

    name: str
    input: str
    output: str
    task: Task
    families: tuple[str, ...]


_IMAGE_NETS = (
    "convnet",
    "alexnet",
    "resnet18",
    "resnet50",
    "googlenet",
    "squeezenet",
    "vgg16",
    "nin",
    "bn_alexnet",
)
_SERIES_NETS = ("minirocket", "fcn", "rnn", "lstm", "bilstm", "gru")
_TABLE_CLASSIFIERS = (
    "logistic_regression",
    "random_forest",
    "svm",
    "lightgbm",
    "extra_trees",
    "neural_network",
    "boosted_trees",
    "bayes_point",
    "averaged_perceptron",
)
_TABLE_REGRESSORS = (
    "linear",
    "blend",
    "random_forest",
    "svm",
    "lightgbm",
    "extra_trees",
    "neural_network",
    "boosted_trees",
    "bayes_point",
    "averaged_perceptron",
)
_TEXT = ("text_linear", "text_bayes", "text_network")

TEMPLATES: tuple[Template, ...] = (
    Template("image classification", "{[Tensor[A, B, C]], []}", "{[Class], []}", Task.CLASSIFY, _IMAGE_NETS),
    Template("image classification", "{[Tensor[A, B]], []}", "{[Class], []}", Task.CLASSIFY, _IMAGE_NETS),
    Template("image regression", "{[Tensor[A, B, C]], []}", "{[Values], []}", Task.REGRESS, _IMAGE_NETS),
    Template("image regression", "{[Tensor[A, B]], []}", "{[Values], []}", Task.REGRESS, _IMAGE_NETS),
    Template(
        "image recovery",
        "{[Tensor[A, B, C]], []}",
        "{[Tensor[D, E, F]], []}",
        Task.RECOVER,
        ("unet", "autoencoder", "pix2pix_gan"),
    ),
    Template(
        "time-series classification", "{[Step, Step*], [a]}", "{[Class], []}", Task.CLASSIFY, _SERIES_NETS
    ),
    Template("time-series regression", "{[Step, Step*], [a]}", "{[Values], []}", Task.REGRESS, _SERIES_NETS),
    Template(
        "time-series translation",
        "{[Step, Step*], [a]}",
        "{[Step, Step*], [b]}",
        Task.TRANSLATE,
        ("seq2seq",),
    ),
    Template(
        "tree classification",
        "{[Step, Step*], [a, c, *]}",
        "{[Class], []}",
        Task.CLASSIFY,
        ("tree_lstm", "tree_kernel_svm"),
    ),
    Template("text classification", "{[Text], []}", "{[Class], []}", Task.CLASSIFY, _TEXT),
    Template("text regression", "{[Text], []}", "{[Value], []}", Task.REGRESS, ("text_linear",)),
    Template(
        "table classification", "{[Column, Column*], []}", "{[Class], []}", Task.CLASSIFY, _TABLE_CLASSIFIERS
    ),
    Template("table regression", "{[Column, Column*], []}", "{[Value], []}", Task.REGRESS, _TABLE_REGRESSORS),
    Template(
        "multi-output regression",
        "{[Column, Column*], []}",
        "{[Values, Values*], []}",
        Task.REGRESS,
        ("linear", "extra_trees", "random_forest", "neural_network"),
    ),
    Template("general classification", "{[*], [*]}", "{[Class], []}", Task.CLASSIFY, ("bit_rnn",)),
    Template("general auto-encoder", "{[*], [*]}", "{[*], [*]}", Task.REBUILD, ("bit_autoencoder",)),
)


@lru_cache(maxsize=256)
def match_program(program: Program) -> Template:
    """The first template that fits. The last one fits everything."""
    for template in TEMPLATES:
        if fits(template.input, program.input) and fits(template.output, program.output):
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
KIND: /Class|Values|Value|Step|Column|Text/
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


def fits(pattern: str, data_type: DataType) -> bool:
    """Whether `data_type` is an instance of `pattern`."""
    items, pointers = _parse(pattern)
    return _fields_fit(items, list(data_type.fields)) and _pointers_fit(pointers, len(data_type.pointers))


def _pointers_fit(wanted: list[str], count: int) -> bool:
    fixed = sum(name != "*" for name in wanted)
    return count >= fixed if "*" in wanted else count == fixed


def _fields_fit(items: list[Tree[Token]], fields: list[Field]) -> bool:
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
        elif not _KINDS[str(item.children[0])](field):
            return False
    return len(fields) == len(items)


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
    "Column": lambda field: _is_step(field) or isinstance(field, Text),
    "Text": lambda field: isinstance(field, Text),
}
