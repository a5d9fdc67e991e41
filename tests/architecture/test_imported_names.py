"""What benchmarks and scripts import of the project is there. They are read, not run: some need what is not here."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = {"easel": ROOT / "src", "benchmarks": ROOT, "tests": ROOT}
PROGRAMS = sorted([*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")])


def file_of(module: str) -> Path | None:
    """Returns the file of a module of ours; None where there is no such module."""
    at = PLACES[module.partition(".")[0]].joinpath(*module.split("."))
    return next((path for path in (at.with_suffix(".py"), at / "__init__.py") if path.exists()), None)


@cache
def names_in(path: Path) -> frozenset[str]:
    """Returns what a module has by name; `__getattr__` where it makes names when they are asked for."""
    return frozenset(_bound(ast.parse(path.read_text()).body))


def _bound(body: list[ast.stmt]) -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.Import() | ast.ImportFrom():
                yield from ((one.asname or one.name).partition(".")[0] for one in node.names)
            case _:
                yield from (n.id for n in ast.walk(node) if isinstance(n, ast.Name))
                yield from _bound([n for n in ast.iter_child_nodes(node) if isinstance(n, ast.stmt)])


def wanted(program: Path) -> Iterator[tuple[str, str]]:
    """Yields each module of ours that a program imports, with the name that it wants of it, if any."""
    for node in ast.walk(ast.parse(program.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", one.name) for one in node.names)
        elif isinstance(node, ast.Import):
            yield from ((one.name, "") for one in node.names)


def is_there(module: str, name: str) -> bool:
    if module.partition(".")[0] not in PLACES:
        return True
    at = file_of(module)
    if at is None or not name or file_of(f"{module}.{name}") is not None:
        return at is not None
    return name in names_in(at) or "__getattr__" in names_in(at)


@pytest.mark.parametrize("program", PROGRAMS, ids=[str(path.relative_to(ROOT)) for path in PROGRAMS])
def test_a_program_imports_only_what_is_there(program: Path) -> None:
    assert [f"{module}: {name}" for module, name in wanted(program) if not is_there(module, name)] == []
