"""Texts from grammars, broken on purpose, and texts that grow: what reads them refuses them soon."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from benchmarks.fuzzing.values import Fuzz
from easel.declare.csv_table import read_csv
from easel.declare.friendly import read_program
from easel.declare.moment import parse_duration
from easel.declare.propose import propose_from_table
from easel.flow.mlflow.query import parse_filter, parse_order
from easel.lake.paths import parse
from easel.lake.query.language import parse_query
from easel.wire.study import study_fields

PROGRAMS = [
    "{input: {[Tensor[28, 28]], []}, output: {[Tensor[10]], []}}",
    "input: image 28 x 28\noutput: [cat, dog]",
    "input: {age: number, town: [a, b]}\noutput: number",
]
QUERIES = [
    "model = BERT and (precision > 0.5 or has reviewed)",
    "job.create_time >= -7d and not a in (1, 2, 'x')",
]
STUDIES = [
    "name: s\njob: {command: [train, '{rate}']}\nspace: [{name: rate, type: float, low: 0, high: 1}]\ngoal: {minimise: loss}\n"
]
FILTERS = ["metrics.loss < 0.5 and params.rate = '1' and tags.kind LIKE 'a%'", "metrics.`a b` DESC"]
PATHS = ["/data/train.json@Hot:1", "/data/", "/a\\:b:2", "/@set:3"]
TABLES = ["size,label\n1,a\n2,b\n", 'a;b\n"x;y";2\n', "a\tb\n1\t2\n"]


def grammars(fuzz: Fuzz) -> None:
    moment = datetime.now(UTC)
    readers: list[tuple[str, list[str], Callable[[str], object]]] = [
        ("duration", ["1h 30m", "2 days"], parse_duration),
        ("MLflow filter", FILTERS, lambda text: (parse_filter(text), parse_order([text]))),
        ("proposal", TABLES, lambda text: _propose(text)),
        ("program", PROGRAMS, read_program),
        ("query", QUERIES, lambda text: parse_query(text, moment)),
        ("study YAML", STUDIES, study_fields),
        ("path", PATHS, parse),
        ("CSV", TABLES, lambda text: list(read_csv(text, "t.csv")[1])),
    ]
    for kind, seeds, read in readers:
        text = fuzz.broken(fuzz.rng.choice(seeds))
        fuzz.note(kind, text, lambda read=read, text=text: read(text))  # type: ignore[misc]


def _propose(text: str) -> None:
    header, rows = read_csv(text, "t.csv")
    body = list(rows)
    propose_from_table({name: [str(row.get(name) or "") for row in body] for name in header})


def growing(fuzz: Fuzz) -> None:
    """Inputs that double: what takes four times as long is quadratic, and is noted when it takes long."""
    moment = datetime.now(UTC)
    deep = {"[": "]", "not (": ")", "{a: ": "}", "(": ")", "- ": ""}
    for opening, closing in deep.items():
        for size in (100, 1000, 10_000):
            text = opening * size + "1" + closing * size
            fuzz.note("deep", f"{opening!r} × {size}", lambda text=text: read_program(text))  # type: ignore[misc]
            fuzz.note("deep", f"{opening!r} × {size}", lambda text=text: study_fields(text))  # type: ignore[misc]
            fuzz.note("deep", f"{opening!r} × {size}", lambda text=text: parse_query(text, moment))  # type: ignore[misc]
            fuzz.note("deep", f"{opening!r} × {size}", lambda text=text: parse_filter(text))  # type: ignore[misc]
    for size in (1000, 10_000, 50_000):
        wide = ",".join(f"c{i}" for i in range(size))
        fuzz.note("wide CSV", str(size), lambda wide=wide: read_csv(wide + "\n", "t.csv"))  # type: ignore[misc]
        classes = ", ".join(f"c{i}" for i in range(size // 10))
        query = " and ".join(f"a{i} = {i}" for i in range(size // 10))
        fuzz.note("wide query", str(size), lambda query=query: parse_query(query, moment))  # type: ignore[misc]
        fuzz.note("wide filter", str(size), lambda query=query: parse_filter(query))  # type: ignore[misc]
        text = f"input: number\noutput: [{classes}]"
        fuzz.note("wide program", str(size), lambda text=text: read_program(text))  # type: ignore[misc]
