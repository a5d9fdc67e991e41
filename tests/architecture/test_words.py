"""Names say one thing: no class is defined twice, apart from a record and its wire twin."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

SRC = Path(__file__).parents[2] / "src" / "easel"


def classes() -> dict[str, list[str]]:
    """Returns the modules that define each class name, private ones and those nested in functions included."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SRC.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(path.relative_to(SRC).with_suffix("").as_posix())
    return found


def test_a_class_name_is_defined_once_or_by_a_record_and_its_wire_twin() -> None:
    twice = {
        name: places
        for name, places in classes().items()
        if len(places) > 1
        and not (len(places) == 2 and sum(place.startswith("wire/") for place in places) == 1)
    }
    assert twice == {}
