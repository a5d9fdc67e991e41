"""Odd input of every kind, made from grammars and a seed, against a server of its own.

    python -m benchmarks.fuzz --minutes 60 --seed 1

Calls are made from the server's own OpenAPI document (paths, queries, bodies), with hostile values and, from the answers, with ids
that exist; texts from the grammars of programs, queries, YAML and CSV; archives, result files, files of examples, requirements and what notebooks leave are
broken on purpose. Nothing may
answer 5xx, raise, or take more than two seconds of processor. What grows faster than its input is found by doubling the input.
Says every finding with the call that shows it as it comes, prints a table at the end, and exits 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import re
import sys
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
from fastapi.testclient import TestClient

from easel.declare.csv_table import read_csv
from easel.declare.friendly import read_program
from easel.declare.moment import parse_duration
from easel.declare.propose import propose_from_table
from easel.errors import EaselError
from easel.flow.apps.feed_files import read_table
from easel.flow.first_start import create_platform_admin
from easel.flow.mlflow.query import parse_filter, parse_order
from easel.lake.paths import parse
from easel.lake.query.language import parse_query
from easel.run.cells import CellReader
from easel.run.code_folder import unzip
from easel.run.entries import JournalEntry, write_line
from easel.run.failure import Failure
from easel.run.notebook_runner import CELLS
from easel.run.requirements import read_requirements
from easel.run.result import NAME, read_result
from easel.serve.app import api_routes, create_app
from easel.serve.settings import Settings
from easel.store.engine import Store
from easel.store.migrate import migrate
from easel.wire.study import study_fields

MOST_CPU_S = 2.0
_WORDS = [
    "a",
    "name",
    "x" * 300,
    "..",
    "/",
    "/a",
    "/a/../b",
    "%2e%2e",
    "a\x00b",
    "\u202e",
    "é",
    "😀",
    "=1+1",
    "-",
    "",
    " ",
]
_TEXTS = [
    *_WORDS,
    "' OR 1=1 --",
    "<script>",
    "{{x}}",
    "$(id)",
    "\ud800",
    "\uffff",
    "a:1",
    "a@b:2",
    "null",
    "NaN",
    "1e999",
]
_NUMBERS = [
    0,
    -1,
    1,
    2**31,
    2**63,
    -(2**63),
    2**64,
    10**40,
    0.5,
    -0.0,
    1e308,
    1e-308,
    float("nan"),
    float("inf"),
]


@dataclass
class Fuzz:
    """One run. `ids` are what answers named, so that later calls meet things that exist."""

    rng: random.Random
    ids: list[str] = field(default_factory=lambda: ["astro", "flowers", "texts"])
    calls: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def find(self, what: str) -> None:
        """Keeps a finding and says it at once: a run is long."""
        if what not in self.found:
            sys.stderr.write(what.encode("utf-8", "replace").decode() + "\n")
            sys.stderr.flush()
        self.found.append(what)

    def note(self, kind: str, what: str, act: Callable[[], object]) -> None:
        """Does it, and notes what must not happen."""
        self.calls[kind] += 1
        began = time.process_time()
        try:
            act()
        except (EaselError, Failure):
            pass
        except Exception as error:
            self.find(f"{kind}: {type(error).__name__}: {str(error)[:150]} at {what[:300]!r}")
        spent = time.process_time() - began
        self.slowest = max(self.slowest, spent)
        if spent > MOST_CPU_S:
            self.find(f"{kind}: {spent:.1f} s of processor at {what[:300]!r}")

    # Values. ------------------------------------------------------------------------------------------------

    def text(self) -> str:
        rng = self.rng
        return rng.choice(
            [
                lambda: rng.choice(_TEXTS),
                lambda: rng.choice(self.ids),
                lambda: "".join(
                    chr(rng.choice([rng.randrange(128), rng.randrange(0x2FFF)]))
                    for _ in range(rng.randrange(30))
                ),
            ]
        )()

    def value(self, depth: int = 0) -> Any:
        rng = self.rng
        kind = rng.randrange(8 if depth < 4 else 5)
        if kind < 2:
            return self.text()
        if kind == 2:
            return rng.choice(_NUMBERS)
        if kind in (3, 4):
            return rng.choice([None, True, False, [], {}])
        if kind in (5, 6):
            return [self.value(depth + 1) for _ in range(rng.randrange(4))]
        return {self.text(): self.value(depth + 1) for _ in range(rng.randrange(4))}

    def fitting(self, schema: dict[str, Any], whole: dict[str, Any], depth: int = 0) -> Any:
        """Mostly what the schema asks for, now and then something else."""
        rng = self.rng
        if rng.random() < 0.12 or depth > 6:
            return self.value()
        if "$ref" in schema:
            return self.fitting(
                whole["components"]["schemas"][schema["$ref"].rpartition("/")[2]], whole, depth + 1
            )
        for key in ("anyOf", "oneOf", "allOf"):
            if key in schema:
                return self.fitting(rng.choice(schema[key]), whole, depth + 1)
        if "enum" in schema:
            return rng.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        if schema.get("examples") and rng.random() < 0.5:
            return rng.choice(schema["examples"])
        match schema.get("type"):
            case "object":
                given = {
                    name: self.fitting(each, whole, depth + 1)
                    for name, each in schema.get("properties", {}).items()
                    if name in schema.get("required", ()) or rng.random() < 0.3
                }
                return (
                    given
                    if schema.get("properties")
                    else {self.text(): self.value() for _ in range(rng.randrange(3))}
                )
            case "array":
                return [
                    self.fitting(schema.get("items", {}), whole, depth + 1) for _ in range(rng.randrange(4))
                ]
            case "integer":
                return rng.choice([rng.randrange(100), rng.choice([1, 2**31, -1])])
            case "number":
                return rng.choice([rng.random(), rng.choice(_NUMBERS)])
            case "boolean":
                return rng.random() < 0.5
            case "null":
                return None
            case "string":
                return self.text()
        return self.value()

    # Grammars. ----------------------------------------------------------------------------------------------

    def broken(self, text: str) -> str:
        """Pieces of a valid text, shuffled, repeated, cut."""
        rng = self.rng
        parts = re.findall(r"\w+|\s+|.", text)
        for _ in range(rng.randrange(6)):
            place = rng.randrange(len(parts) + 1)
            match rng.randrange(4):
                case 0:
                    parts.insert(place, self.text())
                case 1:
                    del parts[place : place + rng.randrange(3)]
                case 2:
                    parts[place:place] = parts[: rng.randrange(5)] * rng.randrange(50)
                case 3:
                    rng.shuffle(parts)
        return "".join(parts)


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


def files(fuzz: Fuzz, folder: Path) -> None:
    """Archives of code and result files, broken."""
    rng = fuzz.rng
    memory = io.BytesIO()
    with zipfile.ZipFile(
        memory, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
    ) as made:
        for name in ("train.py", rng.choice(["../out", "/abs", "a/b", "x" * 200, "a\x01"])):
            made.writestr(name, b"x" * rng.randrange(5000))
    data = bytearray(memory.getvalue())
    for _ in range(rng.randrange(8)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    (folder / "code.zip").write_bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
    fuzz.note("zip", "code.zip", lambda: unzip(folder / "code.zip", folder / "work", 1 << 20))
    outside = [path for path in folder.iterdir() if path.name not in ("code.zip", "work", NAME)]
    if outside:
        fuzz.find(f"zip: wrote {outside}")
    text = json.dumps(fuzz.value()).replace('"', rng.choice(['"', '"', "'"]))
    (folder / NAME).write_text(rng.choice([text, text[: len(text) // 2], "[" * rng.randrange(5000)]))

    def read() -> None:
        json.dumps(read_result(folder), ensure_ascii=False, allow_nan=False).encode()

    fuzz.note("result file", text, read)


def _mutated(rng: random.Random, data: bytes) -> bytes:
    """Some bytes changed, now and then cut off."""
    changed = bytearray(data)
    for _ in range(rng.randrange(1, 6)):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed[: rng.choice([len(changed), rng.randrange(1, len(changed) + 1)])])


def _examples() -> list[tuple[str, bytes]]:
    """A small good file of each kind that can be fed."""
    x, y = np.arange(12.0).reshape(6, 2), np.array(["x", "y"] * 3)
    made = []
    for kind, write in (
        ("npz", lambda out: np.savez(out, x=x, y=y)),
        ("npz", lambda out: np.savez_compressed(out, x=x, y=y)),
        ("parquet", lambda out: pyarrow.parquet.write_table(_arrow(x, y), out)),
        ("xlsx", lambda out: _workbook(out, zipfile.ZIP_STORED)),
        ("xlsx", lambda out: _workbook(out, zipfile.ZIP_LZMA)),
    ):
        out = io.BytesIO()
        write(out)
        made.append((kind, out.getvalue()))
    return made


def _arrow(x: Any, y: Any) -> Any:
    return pyarrow.table({"a": x[:, 0], "b": x[:, 1], "output": y})


def _workbook(out: io.BytesIO, packing: int) -> None:
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    words = [f'<c t="inlineStr"><is><t>{word}</t></is></c>' for word in ("a", "b", "output")]
    rows = [
        f"<row>{''.join(words)}</row>",
        '<row><c><v>1</v></c><c s="0"><v>45000</v></c><c><v>x</v></c></row>',
    ]
    with zipfile.ZipFile(out, "w", packing) as book:
        book.writestr(
            "xl/worksheets/sheet1.xml",
            f"<worksheet {main}><sheetData>{''.join(rows)}</sheetData></worksheet>",
        )
        book.writestr(
            "xl/styles.xml", f'<styleSheet {main}><cellXfs><xf numFmtId="14"/></cellXfs></styleSheet>'
        )


FED = read_program("input: {a: number, b: number}\noutput: [x, y]")
NEEDS = {
    "requirements.txt": "-r base.txt\nnumpy>=2 ; python_version > '3.8'\n--hash=sha256:00\n",
    "pyproject.toml": '[project]\nname = "a"\ndependencies = ["numpy", "scipy"]\n',
    "uv.lock": '[[package]]\nname = "a"\nversion = "1"\nsource = { registry = "x" }\n',
    "environment.yml": "dependencies: [python=3.12, {pip: [numpy]}]\n",
}


def fed_files(fuzz: Fuzz, folder: Path, good: list[tuple[str, bytes]]) -> None:
    """Files of examples, what a job needs, and the cells that a notebook leaves, broken."""
    kind, data = fuzz.rng.choice(good)
    broken = _mutated(fuzz.rng, data)
    fuzz.note(f"file {kind}", broken.hex(), lambda: list(read_table(kind, broken, FED, f"t.{kind}")))
    name = fuzz.rng.choice(list(NEEDS))
    text = fuzz.broken(NEEDS[name])
    (folder / name).write_text(text, errors="replace")
    fuzz.note("requirements", f"{name}: {text}", lambda: read_requirements(folder, name))
    said = {"cell": fuzz.value(), "state": "failed", "said": fuzz.text(), "body": fuzz.value()}
    line = json.dumps(fuzz.rng.choice([said, {**said, "cell": -1, "body": {"cells": fuzz.value()}}]))
    (folder / CELLS).write_text(line + "\n")

    def cells() -> None:
        for entry in CellReader(folder).more():
            write_line(JournalEntry(0, 0.0, entry)).decode()

    fuzz.note("cells of a notebook", line, cells)


def requests(fuzz: Fuzz, http: TestClient, document: dict[str, Any], token: str) -> None:
    """One call of the API."""
    rng = fuzz.rng
    template, operations = rng.choice(list(document["paths"].items()))
    method, operation = rng.choice(list(operations.items()))
    if "stream" in template or template.startswith("/blobs"):
        return
    path, query = template, {}
    for parameter in operation.get("parameters", ()):
        given = fuzz.fitting(parameter.get("schema", {}), document)
        if parameter["in"] == "path":
            chosen = "astro" if parameter["name"] == "project" and rng.random() < 0.9 else str(given)
            path = re.sub(r"{" + parameter["name"] + r"(:path)?}", lambda _: _quoted(chosen), path)  # noqa: B023
        elif parameter["in"] == "query" and rng.random() < 0.4:
            query[parameter["name"]] = str(given).encode("utf-8", "replace").decode()
    body = operation.get("requestBody", {}).get("content", {})
    content, headers = None, {"Authorization": f"Bearer {token}"}
    if body:
        kind, about = next(iter(body.items()))
        headers["Content-Type"] = kind
        content = json.dumps(fuzz.fitting(about.get("schema", {}), document)).encode("utf-8", "replace")
        if rng.random() < 0.05:
            content = content[: rng.randrange(len(content) + 1)]
    what = f"{method.upper()} {path} {query} {content!r}"

    def call() -> None:
        answer = http.request(method, path, params=query, content=content, headers=headers)
        fuzz.calls[f"status {answer.status_code // 100}xx"] += 1
        if answer.status_code >= 500 and answer.status_code != 503:
            fuzz.find(f"{answer.status_code}: {what[:400]} → {answer.text[:200]}")
        if template.endswith("/cordon"):  # a server that takes no work would be asked for little
            http.delete(path, headers=headers)
        if answer.status_code < 300 and len(fuzz.ids) < 500:
            fuzz.ids += re.findall(r'"(?:id|name)":\s*"([^"]{1,60})"', answer.text)[:5]

    fuzz.note("request", what, call)


TOLD = [
    "name",
    "model_id",
    "max_results",
    "version",
    "experiment_id",
    "experiment_ids",
    "page_token",
    "step",
    "path",
    "filter",
    "filter_string",
    "description",
    "timestamp",
    "run_id",
    "run_uuid",
    "run_ids",
    "run_name",
    "order_by",
    "key",
    "value",
    "tags",
    "metric_key",
    "metrics",
    "params",
    "alias",
    "upload_id",
    "status",
    "start_time",
    "end_time",
    "source",
    "new_name",
    "lifecycle_stage",
    "view_type",
    "run_view_type",
    "artifact_location",
    "stages",
    "stage",
    "datasets",
    "dataset_name",
    "dataset_digest",
    "start_step",
    "end_step",
    "num_parts",
    "model_type",
    "model_json",
    "archive_existing_versions",
    "inputs",
    "models",
]
"""Names of fields that clients of MLflow send."""


def undocumented(fuzz: Fuzz, http: TestClient, routes: list[Any], token: str) -> None:
    """One call of a route that is not in our document: nearly all are MLflow's own API."""
    rng = fuzz.rng
    route = rng.choice(routes)
    method = rng.choice(sorted(route.methods))
    path = route.path.replace("{project}", "astro")
    path = re.sub(r"{[^}]*}", lambda _: _quoted(str(fuzz.text())), path)

    def told() -> Any:
        pair = {"key": fuzz.text(), "value": fuzz.text()}
        point = {
            **pair,
            "value": rng.choice(_NUMBERS),
            "timestamp": rng.randrange(10**12),
            "step": rng.randrange(9),
        }
        simple = [rng.choice(fuzz.ids), rng.choice(["0", 1, "1"]), fuzz.broken(rng.choice(FILTERS))]
        return rng.choice([*simple, [pair], [point], [rng.choice(fuzz.ids)], fuzz.value()])

    fields = {name: told() for name in rng.sample(TOLD, rng.randrange(9))}
    headers = {"Authorization": f"Bearer {token}"}
    asked = {name: str(value).encode("utf-8", "replace").decode() for name, value in fields.items()}
    looks = method in ("GET", "HEAD")
    content = b"" if looks else json.dumps(fields).encode("utf-8", "replace")
    params = asked if looks else {}
    what = f"{method} {path} {params} {content!r}"

    def call() -> None:
        answer = http.request(method, path, params=params, content=content, headers=headers)
        fuzz.calls[f"status {answer.status_code // 100}xx"] += 1
        if answer.status_code >= 500 and answer.status_code != 503:
            fuzz.find(f"{answer.status_code}: {what[:400]} → {answer.text[:200]}")
        if answer.status_code < 300 and len(fuzz.ids) < 500:
            fuzz.ids += re.findall(r'"(?:\w*id|name)":\s*"([^"]{1,60})"', answer.text)[:5]

    fuzz.note("request of MLflow and of pages", what, call)


def _quoted(text: str) -> str:
    from urllib.parse import quote

    return quote(text.encode("utf-8", "replace"), safe="") or "x"


def run(minutes: float, seed: int) -> Fuzz:
    fuzz = Fuzz(random.Random(seed))
    until = time.monotonic() + minutes * 60
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "home"
        home.mkdir(mode=0o700)
        (Path(name) / "files").mkdir()
        (Path(name) / "fed").mkdir()
        store = Store(f"sqlite:///{home}/easel.sqlite")
        migrate(store, backup=lambda _revision: None)
        token = create_platform_admin(store)
        assert token is not None
        good = _examples()
        app = create_app(Settings(home=home, failed_logins_per_minute=10**6), store)
        with TestClient(app, raise_server_exceptions=False) as http:
            http.post(
                "/api/v1/projects", json={"name": "astro"}, headers={"Authorization": f"Bearer {token}"}
            )
            document = http.get("/api/openapi.json").json()
            others = [route for route in api_routes(app) if route.path not in document["paths"]]
            growing(fuzz)
            while time.monotonic() < until:
                for _ in range(5):
                    requests(fuzz, http, document, token)
                    undocumented(fuzz, http, others, token)
                grammars(fuzz)
                files(fuzz, Path(name) / "files")
                fed_files(fuzz, Path(name) / "fed", good)
        store.close()
    return fuzz


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--minutes", type=float, default=1.0)
    asked.add_argument("--seed", type=int, default=1)
    given = asked.parse_args()
    fuzz = run(given.minutes, given.seed)
    print(f"| what | calls (seed {given.seed}, {given.minutes:g} minutes) |\n|---|---|")
    for kind, count in sorted(fuzz.calls.items()):
        print(f"| {kind} | {count} |")
    print(f"| processor time of all | {time.process_time():.0f} s |")
    print(f"| most processor time of one call | {fuzz.slowest:.2f} s |\n| findings | {len(fuzz.found)} |")
    return 1 if fuzz.found else 0


if __name__ == "__main__":
    sys.exit(main())
