"""Reading the language, e.g. `job.creator = john and job.create_time = today and precision > 0.5`.

A value in quotes is text. Without quotes it is a number, a time (`2026-11-16`, `2026-11-16T09:30`,
`today`, `yesterday`, `now`, `-7d`, `-3h`) or else text. Times without a zone are UTC.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import re2
from lark import Lark, Token, Transformer, v_args
from lark.exceptions import LarkError, VisitError

from easel.errors import EaselError, InvalidInput
from easel.lake.query.ast import (
    EVERYTHING,
    And,
    Compare,
    Day,
    Expression,
    Has,
    Key,
    Not,
    OneOf,
    Op,
    Or,
    Value,
)

MAX_LENGTH = 4000
MAX_TERMS = 100
MAX_VALUES = 200

_GRAMMAR = r"""
    ?or_: and_ (OR and_)*
    ?and_: not_ (AND not_)*
    ?not_: NOT not_ -> negation
         | "(" or_ ")"
         | KEY OP value -> comparison
         | KEY IN "(" value ("," value)* ")" -> one_of
         | HAS KEY -> has
    ?value: BARE | QUOTED
    OR.2: /or\b/i
    AND.2: /and\b/i
    NOT.2: /not\b/i
    IN.2: /in\b/i
    HAS.2: /has\b/i
    OP: "!=" | "<=" | ">=" | "^=" | "=" | "<" | ">" | "~"
    KEY: /[A-Za-z_][A-Za-z0-9_.-]*/
    QUOTED: /"(\\.|[^"\\])*"|'(\\.|[^'\\])*'/
    BARE: /[^\s()<>=!~^,"']+/
    %ignore /\s+/
"""
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,63}")
_RELATIVE = re.compile(r"-(\d{1,6})([mhdw])")
_UNIT = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})?")


def parse_query(text: str, now: datetime) -> Expression:
    """The expression, or InvalidInput that says where it went wrong. Empty text asks for everything."""
    if len(text) > MAX_LENGTH:
        raise InvalidInput(f"the query has {len(text)} characters: at most {MAX_LENGTH}")
    if not text.strip():
        return EVERYTHING
    try:
        tree = _parser().parse(text)
        if sum(1 for _ in tree.scan_values(_counts)) > MAX_TERMS:
            raise InvalidInput(f"the query has more than {MAX_TERMS} terms: ask for less")
        if sum(1 for _ in tree.scan_values(_is_value)) > MAX_VALUES:
            raise InvalidInput(f"the query has more than {MAX_VALUES} values: ask for less at once")
        found: Expression = _QueryReader(now).transform(tree)
    except VisitError as error:
        if isinstance(error.orig_exc, EaselError):
            raise error.orig_exc from None
        raise
    except LarkError as error:
        column = getattr(error, "column", None)
        at = f" near column {column}" if isinstance(column, int) and column > 0 else ""
        raise InvalidInput(
            f"the query cannot be read{at}: write e.g. model = BERT and (precision > 0.5 or has reviewed)"
        ) from None
    return found


def tag_key(text: str) -> str:
    """A valid key of a tag."""
    if not _KEY.fullmatch(text):
        raise InvalidInput(
            f"{text[:80]!r} is not a key: use 1 to 64 letters, digits, '_', '-' and '.', beginning with a letter"
        )
    return text


def parse_value(text: str, now: datetime) -> Value:
    """A value without quotes: a number, a time, a day, or else text."""
    if text in {"today", "yesterday"}:
        return _day(now.date().isoformat(), back=1 if text == "yesterday" else 0)
    if text == "now":
        return now
    if found := _RELATIVE.fullmatch(text):
        return _shift(now, int(found[1]), _UNIT[found[2]])
    try:
        if _DATE.fullmatch(text):
            return _day(text)
        if _MOMENT.fullmatch(text):
            moment = datetime.fromisoformat(text)
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{text!r} looks like a time but is none: {error}") from error
    return parse_number(text) if _is_number(text) else text


def parse_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise InvalidInput(f"{text[:40]!r} is not a number") from None
    if not math.isfinite(number):
        raise InvalidInput(f"{text[:40]!r} cannot be compared: use a finite number")
    return number


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text) is not None


def _day(text: str, back: int = 0) -> Day:
    start = datetime.fromisoformat(text).replace(tzinfo=UTC) - timedelta(days=back)
    return Day(start, start + timedelta(days=1))


def _shift(now: datetime, count: int, unit: str) -> datetime:
    try:
        return now - timedelta(**{unit: count})
    except OverflowError as error:
        raise InvalidInput(f"{count} {unit} ago is before all time") from error


def _counts(token: Any) -> bool:
    return token.type in {"KEY", "NOT"}


def _is_value(token: Any) -> bool:
    return token.type in {"BARE", "QUOTED"}


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", lexer="contextual", start="or_")


@v_args(inline=True)
class _QueryReader(Transformer[Token, Expression]):
    def __init__(self, now: datetime) -> None:
        super().__init__()
        self._now = now

    def or_(self, *terms: Any) -> Expression:
        return Or(_terms(terms))

    def and_(self, *terms: Any) -> Expression:
        return And(_terms(terms))

    def negation(self, _not: Token, term: Expression) -> Expression:
        return Not(term)

    def comparison(self, key: Token, op: Token, value: Token) -> Expression:
        return _checked(Compare(_key(key), Op(str(op)), self._value(value)))

    def one_of(self, key: Token, _in: Token, *values: Token) -> Expression:
        return OneOf(_key(key), tuple(self._value(value) for value in values))

    def has(self, _has: Token, key: Token) -> Expression:
        return Has(_key(key))

    def _value(self, token: Token) -> Value:
        if token.type == "QUOTED":
            return re.sub(r"\\(.)", r"\1", str(token)[1:-1])
        return parse_value(str(token), self._now)


def _terms(found: tuple[Any, ...]) -> tuple[Expression, ...]:
    return tuple(term for term in found if not isinstance(term, Token))


def _key(token: Token) -> Key:
    of_job = token.startswith("job.")
    return Key(tag_key(str(token).removeprefix("job.")), of_job)


def _checked(found: Compare) -> Compare:
    if found.op in {Op.MATCH, Op.PREFIX} and not isinstance(found.value, str):
        raise InvalidInput(f"{found.key} {found.op} needs text: put the value in quotes")
    if found.op is Op.MATCH:
        # Expressions that could take exponential time do not compile here.
        options = re2.Options()
        options.log_errors = False
        try:
            re2.compile(found.value, options)
        except re2.error as error:
            why = error.args[0].decode(errors="replace")
            raise InvalidInput(f"{found.value!r} is not a regular expression (RE2): {why}") from None
    return found
