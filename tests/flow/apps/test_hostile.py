"""Files and values by somebody careless or hostile: each is refused in words, and nothing of it is kept."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest

from easel.declare.friendly import read_program
from easel.errors import InvalidInput
from easel.flow.apps import feed_files as feeding
from easel.flow.apps import parquet
from easel.flow.apps.declare import declare_app
from easel.flow.apps.feed import feed
from easel.flow.apps.feed_files import read_table
from easel.flow.apps.ready import lacking
from easel.match.read import read_example
from easel.match.remarks import WordCounts
from easel.records.app import Fed
from easel.records.identity import Caller
from easel.store import app_examples, apps
from easel.testing.engine import EngineUnderTest

TABLE = "input: {size: number}\noutput: [no, yes]"
WORDS = "input: {town: category, note: text}\noutput: category"


def packed(write: Callable[[io.BytesIO], Any]) -> bytes:
    out = io.BytesIO()
    write(out)
    return out.getvalue()


def objects(out: io.BytesIO) -> None:
    np.savez(out, x=np.array([{"a": 1}], dtype=object), y=np.array([1]))


def damaged(out: io.BytesIO) -> None:
    made = packed(lambda inner: np.savez_compressed(inner, x=np.arange(100.0), y=np.arange(100)))
    out.write(made[:60] + b"\xff" * 20 + made[80:])


def encrypted(out: io.BytesIO) -> None:
    made = bytearray(packed(lambda inner: np.savez(inner, x=np.arange(3.0), y=np.arange(3))))
    for entry in (made.find(b"PK\1\2"), made.rfind(b"PK\1\2")):
        made[entry + 8] |= 1
    out.write(made)


def array(header: str) -> bytes:
    return b"\x93NUMPY\1\0" + (len(header) + 1).to_bytes(2, "little") + header.encode() + b"\n"


def pair_of(x: np.ndarray, y: np.ndarray) -> bytes:
    return packed(lambda out: np.savez(out, x=x, y=y))


@pytest.mark.parametrize(
    ("kind", "data", "says"),
    [
        ("npz", packed(damaged), "is not an npz file of plain arrays"),
        ("npz", packed(encrypted), "is encrypted"),
        ("npz", pair_of(np.zeros((5, 0)), np.zeros(5)), "hold nothing"),
        ("csv", b"", "is empty"),
        ("csv", b"size,gr\xf6\x00\n1,2\n", "is not text"),
        ("xlsx", b"size,label\n1,yes\n", "is not an Excel workbook"),
        ("csv", b"size,label\n1,yes\n2,no,maybe\n", "line 3: 3 cells under 2 columns"),
        ("csv", b"size,size,label\n1,2,yes\n", "two columns are called 'size'"),
        ("csv", b"size,label\n" + b"1" * (2**22 + 1) + b",yes\n", "field larger than field limit"),
        ("jsonl", b'{"input": 1}\n', "each line is"),
        ("jsonl", b'{"input": ' + b"[" * 100_000, "line 1 is not JSON"),
        ("npz", b"hello", "is not an npz file"),
        ("npz", packed(objects), "is not an npz file of plain arrays"),
        ("parquet", b"PAR1 junk PAR1", "is not a Parquet file"),
    ],
)
def test_a_file_that_is_not_what_it_says_is_refused(kind: str, data: bytes, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        list(read_table(kind, data, read_program(TABLE), f"file.{kind}"))


@pytest.mark.parametrize("header", ["(((", "\t1\n 2", "'''", "[" * 5000, "{'descr': '<f8'}"])
def test_the_header_of_an_array_is_no_python_that_breaks_its_reader(header: str) -> None:
    with pytest.raises(InvalidInput, match="is not an npy file of a plain array"):
        feeding._array(array(header), "x.npy")


def test_answers_of_several_words_are_values_like_any_other() -> None:
    data = pair_of(np.zeros(2), np.array([["a", "b"], ["c", "d"]]))
    pairs = read_table("npz", data, read_program(TABLE), "f.npz")
    assert [answer for _, answer in pairs] == [["a", "b"], ["c", "d"]]


def arrow(columns: dict[str, Any]) -> bytes:
    return packed(lambda out: pyarrow.parquet.write_table(pyarrow.table(columns), out))


def repeated(text: str, count: int) -> Any:
    return pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * count, pyarrow.int32()), [text])


@pytest.mark.parametrize(
    ("limit", "columns"),
    [
        ("MOST_CELLS", {"size": [1.0] * 2001}),
        ("MOST_CELLS", {"size": [1.0] * 1001, "label": ["yes"] * 1001}),
        ("MOST_LISTED", {"size": [[0] * 2001]}),
        ("MOST_TEXT", {"size": repeated("z" * 101, 20)}),
        ("MOST_TEXT", {"size": [["z" * 101] * 20]}),
        ("MOST_TEXT", {"size": [{"a": "z" * 101}] * 20}),
    ],
)
def test_a_small_parquet_file_that_stands_for_a_large_table_is_not_unpacked(
    monkeypatch: pytest.MonkeyPatch, limit: str, columns: dict[str, Any]
) -> None:
    names, rows = parquet.read_parquet(io.BytesIO(arrow(columns)), "small.parquet")
    assert names == list(columns)
    assert len(list(rows)) == len(next(iter(columns.values())))
    monkeypatch.setattr(parquet, limit, 2000)
    with pytest.raises(InvalidInput, match=r"small.parquet.* (columns|values|gigabyte)"):
        list(parquet.read_parquet(io.BytesIO(arrow(columns)), "small.parquet")[1])


def test_what_parquet_holds_arrives_as_it_was() -> None:
    columns: dict[str, list[Any]] = {
        "text": ["é", "", None],
        "lists": [["p", "q"], [], None],
        "parts": [{"u": "abc", "v": 1}, {"u": "", "v": 2}, None],
        "bytes": [b"1", None, b"3"],
        "number": [1.5, None, -2.0],
    }
    _, rows = parquet.read_parquet(io.BytesIO(arrow(columns)), "t.parquet", 2)
    assert list(rows) == [{name: values[row] for name, values in columns.items()} for row in range(3)]


def test_semicolons_and_tabs_part_columns_too() -> None:
    for mark in (b",", b";", b"\t"):
        data = b"size,label\n1,yes\n2,no\n".replace(b",", mark)
        assert list(read_table("csv", data, read_program(TABLE), "f.csv")) == [
            ({"size": "1"}, "yes"),
            ({"size": "2"}, "no"),
        ]


def test_an_archive_that_unpacks_to_far_more_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeding, "LARGEST_TABLE", 2**20)

    def bomb(out: io.BytesIO) -> None:
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.npy", b"\0" * 2**21)

    with pytest.raises(InvalidInput, match="unpacks to more than 1,048,576 bytes"):
        list(read_table("npz", packed(bomb), read_program(TABLE), "bomb.npz"))


@pytest.mark.parametrize(
    ("source", "target", "says"),
    [
        ({"size": 10**400}, "yes", "is not a usable number"),
        ({"size": 1e300}, "yes", "is not a usable number"),
        ({"size": float("nan")}, "yes", "the number is missing"),
        ({"size": float("inf")}, "yes", "inf is not a usable number"),
        ({"size": "-inf"}, "yes", "-inf is not a usable number"),
        ({"size": 1}, float("nan"), "the answer is missing"),
        (json.loads("[" * 900 + "]" * 900), "yes", "nested too deeply"),
        ({"size": 1}, b"yes", "bytes cannot be part"),
    ],
)
def test_a_value_nobody_can_learn_from_is_explained(
    engine: EngineUnderTest, source: Any, target: Any, says: str
) -> None:
    ana = engine.caller()
    with engine.store.write() as tx:
        declare_app(tx, ana, "app", TABLE)
    with pytest.raises(InvalidInput, match=says):
        feed(engine.lake, ana, "app", [(source, target)])
    assert feed(engine.lake, ana, "app", [(source, target), ({"size": 1}, "no")], skip_bad=True).new == 1


def test_names_in_any_script_are_kept_and_broken_ones_refused(engine: EngineUnderTest) -> None:
    ana = engine.caller()
    with engine.store.write() as tx:
        declare_app(tx, ana, "app", WORDS)
    fine = [({"town": "Zürich 🍃", "note": "ja\0nein"}, "大")]
    assert feed(engine.lake, ana, "app", fine) == Fed(1, 0, 1)
    for town, label, says in (
        ("\ud800", "a", "half a character"),
        ("a", "b\0", "NUL"),
        ("a", "x" * 2000, "1000"),
    ):
        with pytest.raises(InvalidInput, match=says):
            feed(engine.lake, ana, "app", [({"town": town, "note": ""}, label)])


def test_one_class_alone_is_refused_when_it_is_declared(engine: EngineUnderTest) -> None:
    ana = engine.caller()
    with engine.store.write() as tx, pytest.raises(InvalidInput, match="nothing to tell apart"):
        declare_app(tx, ana, "app", "input: {size: number}\noutput: [yes]")


def lacks(engine: EngineUnderTest, ana: Caller, name: str) -> str | None:
    with engine.store.read() as tx:
        app = apps.find(tx, ana.project_id, name)
        return lacking(app, app_examples.counts(tx, [app.id])[app.id])


def test_a_target_that_is_always_the_same_waits_for_another_and_says_so(engine: EngineUnderTest) -> None:
    ana = engine.caller()
    with engine.store.write() as tx:
        declare_app(tx, ana, "app", "input: {size: number}\noutput: {price: number}")
    feed(engine.lake, ana, "app", [({"size": k}, 7.0) for k in range(10)])
    assert "so far all are 7.0" in (lacks(engine, ana, "app") or "")
    feed(engine.lake, ana, "app", [({"size": k}, 7) for k in range(10, 20)])
    assert "so far all are 7.0" in (lacks(engine, ana, "app") or "")
    feed(engine.lake, ana, "app", [({"size": 30}, 8.0)])
    assert lacks(engine, ana, "app") is None


def test_a_class_of_one_example_and_a_column_of_names_are_remarked_on_and_kept(
    engine: EngineUnderTest,
) -> None:
    ana = engine.caller()
    with engine.store.write() as tx:
        declare_app(tx, ana, "app", "input: {size: number, name: category}\noutput: category")
    pairs = [({"size": k, "name": f"word {k}"}, "ab"[k % 2]) for k in range(100)]
    found = feed(engine.lake, ana, "app", [*pairs, ({"size": 1, "name": "word x"}, "c")])
    assert found.new == 101
    words, lonely = found.notes[:2]
    assert words.startswith("name: 101 different words in 101 examples")
    assert lonely.startswith("only one example of c")
    assert lacks(engine, ana, "app") is None
    more = [({"size": k, "name": "Bern"}, "c") for k in range(200, 300)]
    later = feed(engine.lake, ana, "app", more).notes
    assert not [note for note in later if "different words" in note or note.startswith("only one example")]


def test_ten_thousand_different_words_are_one_remark() -> None:
    program = read_program(WORDS)
    counts = WordCounts(program)
    for number in range(10_000):
        counts.add(read_example(program, {"town": f"w{number}", "note": ""}, "a"))
    [remark] = counts.remarks()
    assert "10,000 different words" in remark
