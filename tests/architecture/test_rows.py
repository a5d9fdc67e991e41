"""No row of the database leaves `store/`: what it gives to others has a name and fields with types."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "easel"
STORE = SOURCE / "store"
ROWS = {"AnyRow", "RowMapping"}
BETWEEN_QUERIES = {("paging", "fetch")}
"""Functions that only other queries call, which make records of what they return."""


def imported(path: Path) -> Iterator[str]:
    """Yields what a module imports, as `module.name`."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def is_row(name: str) -> bool:
    module, _, last = name.rpartition(".")
    return last in ROWS or (last in {"Row", "CursorResult"} and module.startswith("sqlalchemy"))


def test_nothing_above_the_store_imports_the_type_of_a_row() -> None:
    paths = [path for path in SOURCE.rglob("*.py") if STORE not in path.parents]
    assert len(paths) > 300
    found = {
        path.relative_to(SOURCE).as_posix(): name for path in paths for name in imported(path) if is_row(name)
    }
    assert found == {}


def test_no_query_returns_rows() -> None:
    queries = [
        (path, node)
        for path in STORE.rglob("*.py")
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")
    ]
    assert len(queries) > 300
    found = [
        f"{path.stem}.{node.name}"
        for path, node in queries
        if node.returns is not None
        and any(isinstance(each, ast.Name) and each.id in {*ROWS, "Row"} for each in ast.walk(node.returns))
        and (path.stem, node.name) not in BETWEEN_QUERIES
    ]
    assert found == []


def test_a_row_would_be_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from sqlalchemy import Row, select\nfrom easel.store.engine import AnyRow, Tx\n")
    assert [name for name in imported(wrong) if is_row(name)] == [
        "sqlalchemy.Row",
        "easel.store.engine.AnyRow",
    ]
