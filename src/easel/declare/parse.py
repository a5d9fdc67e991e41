"""The text of a program → its value, with errors that point at the character."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.resources import files
from typing import TypeVar

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from easel.declare.program import (
    MAX_CELLS,
    MAX_SIDE,
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

_SPOKEN = {
    "LBRACE": '"{"',
    "RBRACE": '"}"',
    "LSQB": '"["',
    "RSQB": '"]"',
    "COMMA": '","',
    "COLON": '":"',
    "INPUT": '"input"',
    "OUTPUT": '"output"',
    "TENSOR": '"Tensor[…]"',
    "NUMBER": '"Number"',
    "CATEGORY": '"Category"',
    "TEXT": '"Text"',
    "DATE": '"Date"',
    "OPTIONAL": '"?"',
    "AS": '"as group" or "as time"',
    "LIKE": '"like"',
    "ROLE": '"group" or "time"',
    "INT": "a whole number",
    "NAME": "a name of a-z and 0-9",
    "VALUE": "a value",
    "QUOTED": "something in double quotes",
    "$END": "the end",
}
T = TypeVar("T")
_WORDS = ("input", "output", "Tensor", "Number", "Category", "Text", "Date")


@cache
def _parser() -> Lark:
    grammar = files("easel.declare").joinpath("program.lark").read_text(encoding="utf-8")
    return Lark(grammar, start="program", parser="lalr", propagate_positions=True, maybe_placeholders=True)


@lru_cache(maxsize=256)
def parse_program(text: str) -> Program:
    """Read `{input: {[…], […]}, output: {[…], […]}}`; a `ProgramError` shows the place with a caret."""
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise _syntax_error(text, error) from None
    return _ProgramBuilder(text).program(tree)


def _syntax_error(text: str, error: UnexpectedInput) -> ProgramError:
    start: int | None = None
    expected: set[str] = set()
    if isinstance(error, UnexpectedToken):
        expected = set(error.accepts or error.expected)
        start = None if error.token.type == "$END" else error.token.start_pos
    elif isinstance(error, UnexpectedCharacters):
        expected = set(error.allowed or ())
        start = error.pos_in_stream
    elif isinstance(error, UnexpectedEOF):
        expected = set(error.expected)
    found = "the end of the text" if start is None else f'"{_word_at(text, start)}"'
    start = len(text.rstrip()) if start is None else start
    # The grammar's only unnamed token is "::".
    wanted = [_SPOKEN[name] for name in _SPOKEN if name in expected] or ['"::"']
    word = text[:start].rstrip().split(" ")[-1].split("[")[-1] if wanted == ['"::"'] else found.strip('"')
    hint = _suggestion(word)
    return point_at(text, start, f"expected {_alternatives(wanted)} but found {found}{hint}")


def _suggestion(word: str) -> str:
    close = difflib.get_close_matches(word, _WORDS, n=1, cutoff=0.6) or difflib.get_close_matches(
        word.capitalize(), _WORDS, n=1, cutoff=0.6
    )
    return f"; did you mean {close[0]}?" if close and close[0] != word else ""


def _word_at(text: str, start: int) -> str:
    end = start
    while end < len(text) and (text[end].isalnum() or text[end] in "_-."):
        end += 1
    return text[start : max(end, start + 1)]


def _alternatives(wanted: list[str]) -> str:
    return wanted[0] if len(wanted) == 1 else ", ".join(wanted[:-1]) + " or " + wanted[-1]


def point_at(text: str, position: int, problem: str) -> ProgramError:
    """The error for `problem` at a character: line, column, the line itself and a caret under the place."""
    line_start = text.rfind("\n", 0, position) + 1
    line_end = text.find("\n", position)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    number, column = text.count("\n", 0, position) + 1, position - line_start + 1
    shown_from = max(0, column - 70)
    caret = " " * (column - 1 - shown_from) + "^"
    message = (
        f"line {number}, character {column}: {problem}\n  {line[shown_from : shown_from + 110]}\n  {caret}"
    )
    return ProgramError(message, line=number, character=column)


class _ProgramBuilder:
    """Tree → values. Every refusal of a value is re-raised with the place of the text that asked for it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.listed: dict[str, tuple[str, ...]] = {}

    def program(self, tree: Tree[Token]) -> Program:
        source, target = (self.data_type(child) for child in _trees(tree))
        return self._placed(tree, lambda: Program(source, target))

    def data_type(self, tree: Tree[Token]) -> DataType:
        fields_tree, pointers_tree = _trees(tree)
        fields = tuple(self.field(child) for child in _trees(fields_tree))
        pointers = tuple(self.name(child) for child in _trees(pointers_tree))
        return self._placed(tree, lambda: DataType(fields, pointers))

    def field(self, tree: Tree[Token]) -> Field:
        name_tree, kind = tree.children
        name = self.name(name_tree) if isinstance(name_tree, Tree) else None
        assert isinstance(kind, Tree)
        optional = any(isinstance(child, Token) and child.type == "OPTIONAL" for child in kind.children)
        first = kind.children[0] if kind.children else None
        role = next((_role(c) for c in kind.children if isinstance(c, Token) and c.type == "ROLE"), None)
        match kind.data:
            case "tensor":
                assert isinstance(first, Tree)
                shape = tuple(self.side(dim) for dim in _trees(first))
                if not shape:
                    raise self._at(kind, "a Tensor needs at least one dimension, such as Tensor[5]")
                return self._placed(kind, lambda: Tensor(shape, name))
            case "number":
                count = int(first) if isinstance(first, Token) and first.type == "INT" else 1
                return self._placed(kind, lambda: Number(count, name, optional, role))
            case "category":
                values = tuple(self.name(v) for v in _trees(first)) if isinstance(first, Tree) else ()
                if name is not None and values:
                    self.listed.setdefault(name, values)
                return self._placed(kind, lambda: Category(values, name, optional, role))
            case "same":
                assert isinstance(first, Tree)
                shared = self.shared(first)
                return self._placed(kind, lambda: Category(shared, name, optional, role))
            case "date":
                return Date(name, optional, role)
            case _:
                return Text(name, optional, role)

    def shared(self, tree: Tree[Token]) -> tuple[str, ...]:
        """The values of a Category that was listed before under this name."""
        name = self.name(tree)
        if name not in self.listed:
            known = ", ".join(self.listed) or "none so far"
            raise self._at(
                tree, f'no Category before this one lists its values as "{name}"; such are: {known}'
            )
        return self.listed[name]

    def side(self, tree: Tree[Token]) -> int | None:
        token = tree.children[0]
        assert isinstance(token, Token)
        if token.type == "OPTIONAL":
            return None
        side = int(token) if len(token) < 12 else MAX_CELLS
        if not 1 <= side <= MAX_SIDE:
            raise self._at(tree, f"a dimension must be between 1 and {MAX_SIDE:,}; this one is {token}")
        return side

    def name(self, tree: Tree[Token]) -> str:
        token = str(tree.children[0])
        if not token.startswith('"'):
            return token
        unescaped = re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], token[1:-1])
        if not unescaped.strip():
            raise self._at(tree, "a name between quotes may not be empty")
        return unescaped

    def _placed(self, tree: Tree[Token], make: Callable[[], T]) -> T:
        try:
            return make()
        except ProgramError as error:
            raise self._at(tree, error.message) from None

    def _at(self, tree: Tree[Token], problem: str) -> ProgramError:
        start = 0 if tree.meta.empty else tree.meta.start_pos
        return point_at(self.text, start, problem)


def _role(token: Token) -> ColumnRole:
    return next(role for role in ROLES if role == str(token))


def _trees(tree: Tree[Token]) -> list[Tree[Token]]:
    return [child for child in tree.children if isinstance(child, Tree)]
