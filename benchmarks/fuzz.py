"""Odd input of every kind, made from grammars and a seed, against a server of its own.

    python -m benchmarks.fuzz --minutes 60 --seed 1

Calls are made from the server's own OpenAPI document (paths, queries, bodies), with hostile values and, from the answers, with ids
that exist; texts from the grammars of programs, queries, YAML and CSV; archives and result files are broken on purpose. Nothing may
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
from pathlib import Path
from typing import Any

from fastapi.testclient import TestClient

from easel.declare.csv_table import read_csv
from easel.declare.friendly import read_program
from easel.errors import EaselError
from easel.flow.first_start import create_platform_admin
from easel.lake.paths import parse
from easel.lake.query.language import parse_query
from easel.run.code_folder import unzip
from easel.run.failure import Failure
from easel.run.result import NAME, read_result
from easel.serve.app import create_app
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
PATHS = ["/data/train.json@Hot:1", "/data/", "/a\\:b:2", "/@set:3"]
TABLES = ["size,label\n1,a\n2,b\n", 'a;b\n"x;y";2\n', "a\tb\n1\t2\n"]


def grammars(fuzz: Fuzz) -> None:
    now = time.time()
    from datetime import UTC, datetime

    moment = datetime.fromtimestamp(now, UTC)
    readers: list[tuple[str, list[str], Callable[[str], object]]] = [
        ("program", PROGRAMS, read_program),
        ("query", QUERIES, lambda text: parse_query(text, moment)),
        ("study YAML", STUDIES, study_fields),
        ("path", PATHS, parse),
        ("CSV", TABLES, lambda text: list(read_csv(text, "t.csv")[1])),
    ]
    for kind, seeds, read in readers:
        text = fuzz.broken(fuzz.rng.choice(seeds))
        fuzz.note(kind, text, lambda read=read, text=text: read(text))  # type: ignore[misc]


def growing(fuzz: Fuzz) -> None:
    """Inputs that double: what takes four times as long is quadratic, and is noted when it takes long."""
    deep = {"[": "]", "{a: ": "}", "(": ")", "- ": ""}
    for opening, closing in deep.items():
        for size in (100, 1000, 10_000):
            text = opening * size + "1" + closing * size
            fuzz.note("deep", f"{opening!r} × {size}", lambda text=text: read_program(text))  # type: ignore[misc]
            fuzz.note("deep", f"{opening!r} × {size}", lambda text=text: study_fields(text))  # type: ignore[misc]
    for size in (1000, 10_000, 50_000):
        wide = ",".join(f"c{i}" for i in range(size))
        fuzz.note("wide CSV", str(size), lambda wide=wide: read_csv(wide + "\n", "t.csv"))  # type: ignore[misc]
        classes = ", ".join(f"c{i}" for i in range(size // 10))
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
        store = Store(f"sqlite:///{home}/easel.sqlite")
        migrate(store, backup=lambda _revision: None)
        token = create_platform_admin(store)
        assert token is not None
        app = create_app(Settings(home=home, failed_logins_per_minute=10**6), store)
        with TestClient(app, raise_server_exceptions=False) as http:
            http.post(
                "/api/v1/projects", json={"name": "astro"}, headers={"Authorization": f"Bearer {token}"}
            )
            document = http.get("/api/openapi.json").json()
            growing(fuzz)
            while time.monotonic() < until:
                for _ in range(5):
                    requests(fuzz, http, document, token)
                grammars(fuzz)
                files(fuzz, Path(name) / "files")
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
    print(f"| most processor time of one call | {fuzz.slowest:.2f} s |\n| findings | {len(fuzz.found)} |")
    return 1 if fuzz.found else 0


if __name__ == "__main__":
    sys.exit(main())
