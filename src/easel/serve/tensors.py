"""The Open Inference Protocol's tensors (version 2): a program as inputs and outputs, requests and answers by them.

Each field of the program's input is a tensor whose first side counts the objects. Objects that are no table or array
(series, trees) are one tensor of JSON texts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from easel.declare.program import Category, DataType, Field, Number, Program, Tensor
from easel.errors import InvalidInput

NUMBERS = (
    "FP64",
    "FP32",
    "FP16",
    "INT64",
    "INT32",
    "INT16",
    "INT8",
    "UINT64",
    "UINT32",
    "UINT16",
    "UINT8",
    "BOOL",
)
WORDS = "BYTES"
OBJECT = "object"
MOST_OBJECTS = 10_000


def describe(program: Program) -> dict[str, list[dict[str, Any]]]:
    """The inputs and outputs of a program as the protocol's metadata."""
    outputs = _described(program.output)
    goal = program.output.fields[0]
    if len(outputs) == 1 and isinstance(goal, Category) and not program.output.pointers:
        chances = {"datatype": "FP64", "shape": [-1, len(goal.values) or -1]}
        outputs.append({"name": f"{outputs[0]['name']}_probabilities", **chances})
    return {"inputs": _described(program.input), "outputs": outputs}


def _described(data_type: DataType) -> list[dict[str, Any]]:
    if data_type.pointers:
        return [{"name": OBJECT, "datatype": WORDS, "shape": [-1]}]
    names = data_type.field_names
    return [{"name": n, **_kind(f)} for n, f in zip(names, data_type.fields, strict=True)]


def _kind(field: Field) -> dict[str, Any]:
    match field:
        case Tensor(shape):
            return {"datatype": "FP32", "shape": [-1, *(-1 if side is None else side for side in shape)]}
        case Number(count):
            return {"datatype": "FP64", "shape": [-1] if count == 1 else [-1, count]}
    return {"datatype": WORDS, "shape": [-1]}


def read_tensors(program: Program, asked: Any) -> list[Any]:
    """The objects of a request, as our own form has them."""
    if not isinstance(asked, Mapping) or not isinstance(asked.get("inputs"), list):
        raise InvalidInput('a request of the Open Inference Protocol has "inputs": a list of tensors')
    given = {str(one.get("name")): one for one in asked["inputs"] if isinstance(one, Mapping)}
    wanted = [OBJECT] if program.input.pointers else list(program.input.field_names)
    if len(given) < len(asked["inputs"]):
        raise InvalidInput("inputs: each is a tensor with a name of its own")
    unknown = [name for name in given if name not in wanted]
    if unknown:
        raise InvalidInput(
            f"inputs: there is no {unknown[0][:60]!r}; the inputs are {', '.join(wanted)[:300]}"
        )
    rows = {name: _rows(name, one) for name, one in given.items()}
    counts = {len(some) for some in rows.values()}
    if len(counts) != 1:
        told = ", ".join(f"{name} {len(some)}" for name, some in rows.items())[:300]
        raise InvalidInput(f"inputs: every tensor has one row for each object; these have {told or 'none'}")
    [count] = counts
    if count > MOST_OBJECTS:
        raise InvalidInput(f"at most {MOST_OBJECTS:,} objects a request; these are {count:,}")
    if program.input.pointers:
        return [_parsed(text) for text in rows[OBJECT]]
    if len(wanted) == 1:
        return rows[wanted[0]]
    return [{name: some[k] for name, some in rows.items()} for k in range(count)]


def _rows(name: str, tensor: Mapping[str, Any]) -> list[Any]:
    """The rows of a tensor, whose data may come nested or flat."""
    kind, shape, data = tensor.get("datatype"), tensor.get("shape"), tensor.get("data")
    where = f"inputs, {name[:60]}"
    if kind != WORDS and kind not in NUMBERS:
        raise InvalidInput(f"{where}: the datatype is one of {', '.join((WORDS, *NUMBERS))}")
    if not isinstance(shape, list) or not shape or not all(type(s) is int and s >= 0 for s in shape):
        raise InvalidInput(
            f"{where}: the shape is a list of whole numbers, the first of them counts the objects"
        )
    if not isinstance(data, list):
        raise InvalidInput(f"{where}: data is a list (tensors as binary data are not taken)")
    flat = _flat(data)
    if len(flat) != math.prod(shape):
        raise InvalidInput(f"{where}: {len(flat):,} values do not fill {' × '.join(map(str, shape))}")
    right = str if kind == WORDS else (int, float)
    wrong = next((each for each in flat if each is not None and not isinstance(each, right)), None)
    if wrong is not None:
        raise InvalidInput(f"{where}: {str(wrong)[:60]!r} is no {'text' if kind == WORDS else 'number'}")
    if len(shape) == 2 and shape[1] == 1 and kind == WORDS:
        shape = shape[:1]
    return _nested(flat, shape)


def _flat(data: list[Any]) -> list[Any]:
    while data and all(isinstance(each, list) for each in data):
        data = [value for each in data for value in each]
    return data


def _nested(flat: list[Any], shape: Sequence[int]) -> list[Any]:
    for side in reversed(shape[1:]):
        flat = [flat[at : at + side] for at in range(0, len(flat), side)] if side else flat
    # A column of one number a row is that number.
    return [row[0] for row in flat] if len(shape) == 2 and shape[1] == 1 else flat


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise InvalidInput(f"inputs, {OBJECT}: each is the JSON text of an object") from None


def write_tensors(program: Program, asked: Any, answers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers as tensors under the names of the program's outputs; of `asked` outputs only those."""
    made = _outputs(program, answers)
    wanted = [str(one.get("name")) for one in asked.get("outputs") or [] if isinstance(one, Mapping)]
    missing = [name for name in wanted if name not in {each["name"] for each in made}]
    if missing:
        raise InvalidInput(
            f"outputs: there is no {missing[0][:60]!r}; the outputs are {', '.join(each['name'] for each in made)}"
        )
    return [each for each in made if not wanted or each["name"] in wanted]


def _outputs(program: Program, answers: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    name = program.output.field_names[0]
    first = answers[0] if answers else {}
    if "label" in first and "each" not in first:
        classes = list(first["probabilities"])
        chances = [p for one in answers for p in one["probabilities"].values()]
        return [
            _tensor(name, WORDS, [len(answers)], [one["label"] for one in answers]),
            {
                **_tensor(f"{name}_probabilities", "FP64", [len(answers), len(classes)], chances),
                "parameters": {"classes": ",".join(classes)},
            },
        ]
    if "outputs" in first:
        return [
            _tensor(
                each,
                WORDS if "each" in first else "FP64",
                [len(answers)],
                [one["outputs"][each] for one in answers],
            )
            for each in first["outputs"]
        ]
    for key in ("value", "tensor"):
        if key in first:
            shape = _shape(first[key])
            if all(_shape(one[key]) == shape for one in answers):
                data = _flat([one[key] for one in answers])
                return [_tensor(name, "FP64", [len(answers), *shape], data)]
    texts = [json.dumps(one, separators=(",", ":")) for one in answers]
    return [_tensor(OBJECT if program.output.pointers else name, WORDS, [len(answers)], texts)]


def _tensor(name: str, kind: str, shape: list[int], data: list[Any]) -> dict[str, Any]:
    return {"name": name, "datatype": kind, "shape": shape, "data": data}


def _shape(value: Any) -> list[int]:
    found = []
    while isinstance(value, list):
        found.append(len(value))
        value = value[0] if value else None
    return found
