"""Tables as people write them, and as spreadsheets must not run them."""

from __future__ import annotations

import pytest

from easel.declare.csv_table import escaped, read_csv, unescaped
from easel.errors import InvalidInput


def test_a_header_of_many_columns_is_read_in_one_pass() -> None:
    names = [f"column{number}" for number in range(50_000)]
    header, rows = read_csv(",".join(names) + "\n", "wide.csv")
    assert (header, list(rows)) == (names, [])
    with pytest.raises(InvalidInput, match="two columns"):
        read_csv(",".join([*names, names[0]]) + "\n", "wide.csv")
    with pytest.raises(InvalidInput, match="at most"):
        read_csv(",".join(map(str, range(100_001))) + "\n", "wide.csv")


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-cmd", "@x", "\tx", "'quoted", "plain", "", "a=b"])
def test_a_cell_that_would_be_a_formula_is_text_and_comes_back_as_it_was(cell: str) -> None:
    assert not escaped(cell).startswith(("=", "+", "-", "@", "\t"))
    assert unescaped(escaped(cell)) == cell
