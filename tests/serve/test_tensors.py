"""The Open Inference Protocol's tensors against programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from easel.declare.friendly import read_program
from easel.errors import InvalidInput
from easel.serve.tensors import describe, read_tensors, write_tensors

TABLE = read_program("input: {size: number, town: category}\noutput: {sold: [no, yes]}")
PICTURE = read_program("input: image 2 x 2\noutput: [a, b]")
SERIES = read_program("input: series of number\noutput: [a, b]")


def tensor(name: str, kind: str, shape: list[int], data: list[Any]) -> dict[str, Any]:
    return {"name": name, "datatype": kind, "shape": shape, "data": data}


def asked(*inputs: dict[str, Any]) -> dict[str, Any]:
    return {"inputs": list(inputs)}


def test_a_program_is_described_by_one_tensor_for_each_field() -> None:
    found = describe(TABLE)
    assert found["inputs"] == [
        {"name": "size", "datatype": "FP64", "shape": [-1]},
        {"name": "town", "datatype": "BYTES", "shape": [-1]},
    ]
    assert [one["name"] for one in found["outputs"]] == ["sold", "sold_probabilities"]
    assert describe(PICTURE)["inputs"][0]["shape"] == [-1, 2, 2, 1]
    assert describe(SERIES)["inputs"] == [{"name": "object", "datatype": "BYTES", "shape": [-1]}]


def test_rows_come_from_columns_nested_or_flat() -> None:
    size = tensor("size", "FP32", [2, 1], [[1.0], [2]])
    town = tensor("town", "BYTES", [2], ["Bern", "Chur"])
    rows = [{"size": 1.0, "town": "Bern"}, {"size": 2, "town": "Chur"}]
    assert read_tensors(TABLE, asked(size, town)) == rows
    pixels = list(range(8))
    nested = read_tensors(PICTURE, asked(tensor(PICTURE.input.field_names[0], "UINT8", [2, 2, 2, 1], pixels)))
    assert nested == [[[[0], [1]], [[2], [3]]], [[[4], [5]], [[6], [7]]]]
    texts = [json.dumps([1, 2, 3])]
    assert read_tensors(SERIES, asked(tensor("object", "BYTES", [1], texts))) == [[1, 2, 3]]


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        ({}, 'has "inputs"'),
        (asked(tensor("weight", "FP32", [1], [1.0])), "there is no 'weight'"),
        (asked(tensor("size", "COMPLEX", [1], [1.0])), "the datatype is one of"),
        (asked(tensor("size", "FP32", [2], [1.0])), "1 values do not fill 2"),
        (asked(tensor("size", "FP32", [1], ["x"])), "'x' is no number"),
        (asked(tensor("size", "FP32", [-1], [1.0])), "the shape is a list"),
        (
            asked(tensor("size", "FP32", [1], [1.0]), tensor("town", "BYTES", [2], ["a", "b"])),
            "size 1, town 2",
        ),
        (asked({"name": "size", "datatype": "FP32", "shape": [1]}), "data is a list"),
        (asked(tensor("size", "FP32", [1], [1.0]), tensor("size", "FP32", [1], [1.0])), "a name of its own"),
        (asked(), "these have none"),
    ],
)
def test_what_is_wrong_is_said(request_: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInput, match=told.replace("[", r"\[")):
        read_tensors(TABLE, request_)


def test_answers_come_under_the_names_of_the_outputs() -> None:
    answers = [{"label": "no", "probabilities": {"no": 0.8, "yes": 0.2}}]
    sold, chances = write_tensors(TABLE, {}, answers)
    assert sold == tensor("sold", "BYTES", [1], ["no"])
    assert (chances["name"], chances["shape"], chances["data"]) == ("sold_probabilities", [1, 2], [0.8, 0.2])
    assert write_tensors(TABLE, {"outputs": [{"name": "sold"}]}, answers) == [sold]
    with pytest.raises(InvalidInput, match="there is no 'price'"):
        write_tensors(TABLE, {"outputs": [{"name": "price"}]}, answers)
    two = read_program("input: {a: number}\noutput: {x: number, y: number}")
    named = [{"value": [1.0, 2.0], "outputs": {"x": 1.0, "y": 2.0}}]
    assert [(one["name"], one["data"]) for one in write_tensors(two, {}, named)] == [
        ("x", [1.0]),
        ("y", [2.0]),
    ]
