"""Names say one thing, and docstrings say what is done."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SRC = Path(__file__).parents[2] / "src" / "easel"
RIDDLES = {
    *(
        "After",
        "Among",
        "As",
        "At",
        "Behind",
        "Beside",
        "Between",
        "Both",
        "By",
        "Everybody",
        "False",
        "For",
        "From",
    ),
    *(
        "In",
        "It",
        "Its",
        "No",
        "Nobody",
        "None",
        "Nothing",
        "Of",
        "Only",
        "So",
        "Somebody",
        "Such",
        "Their",
        "These",
    ),
    *("They", "Those", "Under", "Unless", "Until", "While", "Whoever", "With", "Without"),
}
"""First words of docstrings that begin in the middle: "Unless somebody holds it." does not say what is done."""


@cache
def nodes() -> list[tuple[str, ast.AST]]:
    """Returns every statement of the source with its module; migrations are left out: they are never edited."""
    return [
        (path.relative_to(SRC).with_suffix("").as_posix(), node)
        for path in sorted(set(SRC.rglob("*.py")) - set(SRC.rglob("migrations/versions/*.py")))
        for node in statements(ast.parse(path.read_text()))
    ]


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yields the statements under a node: definitions are none of an expression's parts, which are most of a tree."""
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        for child in getattr(node, part, ()):
            yield child
            yield from statements(child)


def classes() -> dict[str, dict[str, ast.ClassDef]]:
    """Returns the definitions of each class name by module, private ones and those nested in functions included."""
    found: dict[str, dict[str, ast.ClassDef]] = defaultdict(dict)
    for module, node in nodes():
        if isinstance(node, ast.ClassDef):
            found[node.name][module + f":{node.lineno}"] = node
    return found


def fields_of(node: ast.ClassDef) -> set[str]:
    """Returns the names of a class's fields or members."""
    targets = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
    targets += [to for one in node.body if isinstance(one, ast.Assign) for to in one.targets]  # type: ignore[misc]
    return {to.id for to in targets if isinstance(to, ast.Name)}


def test_a_class_name_is_defined_once_or_by_a_record_and_its_wire_twin() -> None:
    twice = {
        name: list(places)
        for name, places in classes().items()
        if len(places) > 1
        and not (len(places) == 2 and sum(place.startswith("wire/") for place in places) == 1)
    }
    assert twice == {}


def test_a_record_and_its_wire_twin_have_fields_in_common() -> None:
    """Otherwise they are two things by one name."""
    pairs = {name: list(places.values()) for name, places in classes().items() if len(places) == 2}
    assert len(pairs) > 40
    assert [name for name, (one, two) in pairs.items() if not fields_of(one) & fields_of(two)] == []


def test_a_docstring_of_a_function_begins_with_what_is_returned_or_done() -> None:
    """Words with which a sentence begins that is understood only after the function was read."""
    functions = [
        (module, node)
        for module, node in nodes()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(node)
    ]
    riddles = [
        f"{module}:{node.lineno} {node.name}"
        for module, node in functions
        if (ast.get_docstring(node) or "").split()[0].rstrip(",.:;") in RIDDLES
    ]
    assert riddles == []


def test_pool_names_the_devices_and_nothing_else() -> None:
    """Thread pools, connection pools, pooling layers and CatBoost's Pool are other people's words."""
    at_home = (
        "flow/operate/",
        "flow/pool",  # how much of the devices is used
        "wire/pool",
        "records/tenant",
        "run/forecast",
        "run/pool_sizes",
        "wire/simulation",  # what larger pools would bring
        "match/zoo/",  # a network's layer that pools, as everybody calls it
        "schedule/",
        "serve/",
        "tenancy/",
        "testing/",
    )
    strange = {
        name: list(places)
        for name, places in classes().items()
        if "pool" in name.lower() and not all(place.startswith(at_home) for place in places)
    }
    assert strange == {}
