"""MLflow's filter and order language as values: `metrics.acc > 0.9 AND params.lr = '0.1'`, `metrics.acc DESC`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any

from lark import Lark, Token, Transformer
from lark.exceptions import LarkError, VisitError

from easel.flow.mlflow.errors import invalid

MAX_FILTER = 20_000
_GRAMMAR = r"""
start: comparison (_AND comparison)*
comparison: IDENT OPERATOR value          -> compare
          | IDENT (LIKE | ILIKE) STRING   -> match
          | IDENT IN _list                -> within
          | IDENT NOT IN _list            -> without
          | IDENT IS NULL                 -> missing
          | IDENT IS NOT NULL             -> present
_list: "(" STRING ("," STRING)* ","? ")"
value: STRING | NUMBER

_AND: /and\b/i
LIKE.2: /like\b/i
ILIKE.2: /ilike\b/i
IN.2: /in\b/i
NOT.2: /not\b/i
IS.2: /is\b/i
NULL.2: /null\b/i
OPERATOR: ">=" | "<=" | "!=" | "=" | ">" | "<"
IDENT: /(?:(?:\w+|`\w+`)\s*\.\s*)?(?:`[^`]+`|"[^"]+"|[A-Za-z_][\w.\/\-]*)/
STRING: /'[^']*'|"[^"]*"/
NUMBER: /[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?/
%ignore /\s+/
"""


class Operator(StrEnum):
    EQ = "="
    NE = "!="
    GT = ">"
    GE = ">="
    LT = "<"
    LE = "<="
    LIKE = "LIKE"
    ILIKE = "ILIKE"
    IN = "IN"
    NOT_IN = "NOT IN"
    IS_NULL = "IS NULL"
    IS_NOT_NULL = "IS NOT NULL"


ORDERED = frozenset({Operator.EQ, Operator.NE, Operator.GT, Operator.GE, Operator.LT, Operator.LE})
TEXTUAL = frozenset({Operator.EQ, Operator.NE, Operator.LIKE, Operator.ILIKE})
LISTED = TEXTUAL | {Operator.IN, Operator.NOT_IN}
NULLABLE = TEXTUAL | {Operator.IS_NULL, Operator.IS_NOT_NULL}


class Entity(StrEnum):
    METRIC = "metric"
    PARAM = "parameter"
    TAG = "tag"
    ATTRIBUTE = "attribute"
    DATASET = "dataset"


_ENTITIES = {
    "metric": Entity.METRIC,
    "metrics": Entity.METRIC,
    "parameter": Entity.PARAM,
    "parameters": Entity.PARAM,
    "param": Entity.PARAM,
    "params": Entity.PARAM,
    "tag": Entity.TAG,
    "tags": Entity.TAG,
    "attribute": Entity.ATTRIBUTE,
    "attributes": Entity.ATTRIBUTE,
    "attr": Entity.ATTRIBUTE,
    "run": Entity.ATTRIBUTE,
    "dataset": Entity.DATASET,
    "datasets": Entity.DATASET,
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """`value` is text, a number, a list of texts, or None for IS NULL and IS NOT NULL."""

    entity: Entity
    key: str
    operator: Operator
    value: str | float | tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class OrderKey:
    entity: Entity
    key: str
    descending: bool


def parse_filter(text: str | None) -> Sequence[Comparison]:
    """The comparisons that must all hold. What is no filter is refused with the reason."""
    if not text or not text.strip():
        return ()
    if len(text) > MAX_FILTER:
        raise invalid(f"The filter string is longer than {MAX_FILTER} characters.")
    return _parsed(text)


@lru_cache(maxsize=200)
def _parsed(text: str) -> tuple[Comparison, ...]:
    """Pages ask the same again and again, and parsing takes as long as a search."""
    try:
        tree = _parser().parse(text)
    except LarkError as error:
        where = getattr(error, "pos_in_stream", None)
        rest = text[where : where + 60] if isinstance(where, int) and where >= 0 else text[-60:]
        raise invalid(f"Invalid clause(s) in filter string: {rest!r}") from error
    try:
        found: list[Comparison] = _Reader().transform(tree)
    except VisitError as error:
        raise error.orig_exc from None
    return tuple(found)


def parse_order(texts: Sequence[str]) -> list[OrderKey]:
    """`metrics.acc DESC`, `start_time`, … in the order of their weight."""
    found = []
    for text in texts:
        match = _ORDER.fullmatch(text.strip())
        if match is None:
            raise invalid(f"Invalid order_by clause '{text}'. Could not be parsed.")
        entity, key = _identifier(match["name"])
        found.append(OrderKey(entity, key, (match["way"] or "").lower() == "desc"))
    return found


_ORDER = re.compile(
    r"(?P<name>(?:(?:\w+|`\w+`)\s*\.\s*)?(?:`[^`]+`|\"[^\"]+\"|[^\s`\"]+(?:\s+[Nn]ame)?))(?:\s+(?P<way>asc|desc))?",
    re.IGNORECASE,
)


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", lexer="contextual")


def _identifier(text: str) -> tuple[Entity, str]:
    match = re.fullmatch(r"(?:(`?)(\w+)\1\s*\.\s*)?(.+)", text, re.DOTALL)
    assert match is not None
    entity, key = match[2], match[3]
    if len(key) >= 2 and key[0] == key[-1] and key[0] in "`\"'":
        key = key[1:-1]
    if entity is None:
        return Entity.ATTRIBUTE, key
    if entity not in _ENTITIES:
        raise invalid(f"Invalid entity type '{entity}'. Valid values are {[each.value for each in Entity]}")
    return _ENTITIES[entity], key


class _Reader(Transformer[Token, Any]):
    def start(self, children: list[Comparison]) -> list[Comparison]:
        return children

    def value(self, children: list[Token]) -> str | float:
        (token,) = children
        return str(token)[1:-1] if token.type == "STRING" else float(token)

    def compare(self, children: list[Any]) -> Comparison:
        name, operator, value = children
        return Comparison(*_identifier(name), Operator(operator), value)

    def match(self, children: list[Token]) -> Comparison:
        name, operator, pattern = children
        return Comparison(*_identifier(name), Operator(operator.upper()), str(pattern)[1:-1])

    def within(self, children: list[Token]) -> Comparison:
        return Comparison(*_identifier(children[0]), Operator.IN, _texts(children[2:]))

    def without(self, children: list[Token]) -> Comparison:
        return Comparison(*_identifier(children[0]), Operator.NOT_IN, _texts(children[3:]))

    def missing(self, children: list[Token]) -> Comparison:
        return Comparison(*_identifier(children[0]), Operator.IS_NULL, None)

    def present(self, children: list[Token]) -> Comparison:
        return Comparison(*_identifier(children[0]), Operator.IS_NOT_NULL, None)


def _texts(tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(str(token)[1:-1] for token in tokens)


def holds(comparison: Comparison, value: Any) -> bool:
    """Whether a value at hand fulfils a comparison; for the few things that are not searched in the database."""
    operator, wanted = comparison.operator, comparison.value
    if operator is Operator.IS_NULL:
        return value is None
    if value is None:
        return False
    match operator:
        case Operator.IS_NOT_NULL:
            return True
        case Operator.LIKE | Operator.ILIKE:
            flags = re.DOTALL | (re.IGNORECASE if operator is Operator.ILIKE else 0)
            return re.fullmatch(_regular(str(wanted)), str(value), flags) is not None
        case Operator.IN | Operator.NOT_IN:
            assert isinstance(wanted, tuple)
            return (value in wanted) is (operator is Operator.IN)
    if isinstance(value, str) != isinstance(wanted, str):
        raise invalid(
            f"Invalid value {wanted!r} for '{comparison.key}': compare text with text, numbers with numbers"
        )
    return bool(_COMPARE[operator](value, wanted))


def _regular(pattern: str) -> str:
    return "".join(".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)


_COMPARE = {
    Operator.EQ: lambda a, b: a == b,
    Operator.NE: lambda a, b: a != b,
    Operator.GT: lambda a, b: a > b,
    Operator.GE: lambda a, b: a >= b,
    Operator.LT: lambda a, b: a < b,
    Operator.LE: lambda a, b: a <= b,
}
