"""Files broken on purpose: archives, results, examples, requirements, cells of a notebook."""

from __future__ import annotations

import io
import json
import random
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet

from benchmarks.fuzzing.values import Fuzz
from easel.declare.friendly import read_program
from easel.flow.apps.feed_files import read_table
from easel.run.cells import CellReader
from easel.run.code_folder import unzip
from easel.run.entries import JournalEntry, write_line
from easel.run.notebook_runner import CELLS
from easel.run.requirements import read_requirements
from easel.run.result import NAME, read_result


def code_and_results(fuzz: Fuzz, folder: Path) -> None:
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


def good_examples() -> list[tuple[str, bytes]]:
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
