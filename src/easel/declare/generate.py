"""Code generation (ease.ml figure 5): a program → typed Python for the people who use the app.

Four sources: a module with the app's types, and the programs feed, refine and infer. The app's id and the
server's address are inside; the token stays outside, in EASEL_TOKEN or in what `easel login` remembered.
"""

from __future__ import annotations

import keyword
import re

from easel.declare.program import Category, DataType, Date, Field, Number, Program, Tensor, Text

MOST_LISTED = 50
"""Classes that are spelled out as a type; more of them are any text."""


def generate(program: Program, name: str, app_id: str, project: str, server: str) -> dict[str, str]:
    """Sources by file name."""
    module = f"{identifier(name)}_app"
    return {
        f"{module}.py": _module(program, name, app_id, project, server),
        "feed.py": _FEED.format(name=name, module=module),
        "refine.py": _REFINE.format(name=name, module=module),
        "infer.py": _INFER.format(name=name, module=module),
    }


def dataclass_source(data_type: DataType, class_name: str) -> str:
    """The system data type of one side: a dataclass with a field for each field and each pointer.

    A name that Python does not allow is changed, and the original kept in `NAMES`.
    """
    names = data_type.field_names
    own = _distinct([identifier(name) for name in (*names, *data_type.pointers)])
    lines = ["@dataclass", f"class {class_name}:"]
    required = [(o, f) for o, f in zip(own, data_type.fields, strict=False) if not _optional(f)]
    optional = [(o, f) for o, f in zip(own, data_type.fields, strict=False) if _optional(f)]
    lines += [f"    {one}: {_hint(field)}" for one, field in required]
    lines += [f"    {one}: {_hint(field)} | None = None" for one, field in optional]
    lines += [f"    {one}: {class_name} | None = None" for one in own[len(names) :]]
    renamed = dict(zip(own, (*names, *data_type.pointers), strict=True))
    lines += ["", f"    NAMES: ClassVar[dict[str, str]] = {renamed!r}"]
    return "\n".join(lines) + "\n"


def identifier(name: str) -> str:
    """The nearest name that Python allows."""
    plain = re.sub(r"\W+", "_", name.strip()).strip("_").lower() or "x"
    if plain[0].isdigit():
        plain = f"x{plain}"
    return f"{plain}_" if keyword.iskeyword(plain) or plain == "names" else plain


def _distinct(names: list[str]) -> list[str]:
    seen: set[str] = set()
    found = []
    for name in names:
        while name in seen:
            name += "_"
        seen.add(name)
        found.append(name)
    return found


def _optional(field: Field) -> bool:
    return not isinstance(field, Tensor) and field.optional


def _hint(field: Field) -> str:
    match field:
        case Tensor(shape):
            return f"Array  # {' × '.join('any' if side is None else str(side) for side in shape)}"
        case Number(count):
            return "float" if count == 1 else f"Sequence[float]  # {count} numbers"
        case Category(values) if 0 < len(values) <= MOST_LISTED:
            return f"Literal[{', '.join(map(repr, values))}]"
        case Category():
            return "str"
        case Text():
            return "str"
        case Date():
            return "str  # a date, best as 2026-11-16 or 2026-11-16 18:30"


def _module(program: Program, name: str, app_id: str, project: str, server: str) -> str:
    return _MODULE.format(
        name=name,
        program=str(program).replace("\\", "\\\\").replace('"""', '\\"\\"\\"'),
        server=server,
        project=project,
        app_id=app_id,
        input=dataclass_source(program.input, "Input"),
        output=dataclass_source(program.output, "Output"),
        input_fields=len(program.input.fields),
        output_fields=len(program.output.fields),
        input_pointers=program.input.pointers,
        output_pointers=program.output.pointers,
    )


_MODULE = '''"""The app {name} in Python, made by `easel generate`. Needs `pip install easel-ml`.

    {program}

The token is not in here: run `easel login`, or set EASEL_TOKEN.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from easel import Client

SERVER = os.environ.get("EASEL_SERVER", {server!r})
PROJECT = {project!r}
APP = {app_id!r}

Array = Any
"""A NumPy array, nested lists, or for pictures the Path or the bytes of a file."""


{input}

{output}

def connect() -> Client:
    return Client(SERVER, project=PROJECT)


def feed(pairs: Iterable[tuple[Input, Output]]) -> int:
    """Add examples; how many of them were new."""
    with connect() as client:
        return client.apps.feed(APP, ((_input(x), _output(y)) for x, y in pairs)).new


def refine(digests: Sequence[str], *, on: bool) -> list[str]:
    """Switch examples off or on; those that changed."""
    with connect() as client:
        return client.apps.refine(APP, digests, on=on)


def infer(objects: Sequence[Input]) -> list[dict[str, Any]]:
    """The answers of the best model so far."""
    with connect() as client:
        return client.apps.infer(APP, [_input(one) for one in objects]).answers


def _input(one: Input) -> Any:
    return _plain(one, {input_fields}, {input_pointers})


def _output(one: Output) -> Any:
    return _plain(one, {output_fields}, {output_pointers})


def _plain(one: Any, fields: int, pointers: tuple[str, ...]) -> Any:
    """A typed object as JSON: by name, a single field as itself, a chain as a list of its steps."""
    if len(pointers) == 1:
        steps = []
        own = next(key for key, name in one.NAMES.items() if name == pointers[0])
        while one is not None:
            steps.append(_values(one, fields, skip=pointers))
            one = getattr(one, own)
        return steps
    if not pointers:
        return _values(one, fields, skip=())
    made = _values(one, 0, skip=pointers)
    for own, name in one.NAMES.items():
        if name in pointers and getattr(one, own) is not None:
            made[name] = _plain(getattr(one, own), fields, pointers)
    return made


def _values(one: Any, fields: int, skip: tuple[str, ...]) -> Any:
    values = {{name: getattr(one, own) for own, name in one.NAMES.items() if name not in skip}}
    return next(iter(values.values())) if fields == 1 else values
'''

_FEED = '''"""Feed {name}: python feed.py FILE_OR_FOLDER

A CSV, Parquet, npz or JSON-lines file, or a folder of pictures with one folder for each class. Without a
name, JSON lines {{"input": …, "output": …}} are read from a pipe.
"""

import sys

from {module} import APP, connect
from easel.sdk.examples import json_pairs

with connect() as client:
    if len(sys.argv) > 1:
        fed = client.apps.feed_path(APP, sys.argv[1])
    else:
        fed = client.apps.feed(APP, json_pairs(sys.stdin))
    print(f"{{fed.new}} new, {{fed.known}} known already, {{fed.total}} in all")
'''

_REFINE = '''"""Refine {name}: python refine.py [list [FILTER …] | off DIGEST … | on DIGEST … | suspects | undo]"""

import sys

from {module} import APP, connect

verb, *rest = sys.argv[1:] or ["list"]


def told(switched):
    return f"{{len(switched)}} example{{'' if len(switched) == 1 else 's'}}"


with connect() as client:
    if verb in ("on", "off"):
        print(f"{{told(client.apps.refine(APP, rest, on=verb == 'on'))}} switched {{verb}}")
    elif verb == "undo":
        print(f"{{told(client.apps.undo(APP))}} switched back")
    elif verb == "suspects":
        for suspect in client.apps.suspects(APP).items:
            one = suspect.example
            print(one.digest, f"{{suspect.loss:.3f}}", one.answer, one.preview, sep="\\t")
    else:
        for one in client.apps.examples(APP, *rest):
            print(one.digest, "on" if one.on else "off", one.answer, one.preview, sep="\\t")
'''

_INFER = '''"""Infer with {name}: python infer.py FILE_OR_FOLDER_OR_JSON

A CSV or JSON-lines file, a picture, a folder of pictures, or one object as JSON. One JSON line for each answer.
"""

import json
import sys
from pathlib import Path

from {module} import APP, connect

with connect() as client:
    given = sys.argv[1] if len(sys.argv) > 1 else sys.exit(__doc__)
    if len(given) < 4096 and Path(given).exists():
        found = client.apps.infer_path(APP, given)
    else:
        found = client.apps.infer(APP, [json.loads(given)])
    print(f"{{found.candidate}} ({{found.model}}), validation score {{found.quality:.4f}}", file=sys.stderr)
    for answer in found.answers:
        print(json.dumps(answer))
'''
