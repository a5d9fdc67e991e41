"""Subsamples are stratified and nested."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easel.errors import InvalidInput
from easel.flow.studies.sample import is_kept, sample_table, take

labels = st.lists(st.sampled_from("abc"), min_size=10, max_size=80)
shares = st.floats(0.01, 1.0)


@given(labels, shares, shares)
def test_a_smaller_sample_lies_inside_a_larger_one(strata: list[str], one: float, other: float) -> None:
    members = [str(i) for i in range(len(strata))]
    small, large = sorted((one, other))
    assert set(take(members, strata, small)) <= set(take(members, strata, large))


@given(labels, shares)
def test_every_stratum_keeps_its_share_and_never_becomes_empty(strata: list[str], share: float) -> None:
    members = [str(i) for i in range(len(strata))]
    whole, kept = Counter(strata), Counter(strata[i] for i in take(members, strata, share))
    for stratum, count in whole.items():
        assert 1 <= kept[stratum] <= count
        assert abs(kept[stratum] - share * count) < 1


def test_numbers_as_labels_are_no_strata() -> None:
    members = [str(i) for i in range(100)]
    assert len(take(members, [str(i / 7) for i in range(100)], 0.1)) == 10


def test_all_of_the_data_is_all_of_the_data() -> None:
    assert take(["a", "b", "c", "d"], ["x", "x", "y", "y"], 1.0) == [0, 1, 2, 3]


def test_rows_of_a_table_are_drawn_alike_and_stay_as_they_were_written() -> None:
    rows = [f'{i},"a, ""quoted""\ncell",{"even" if i % 2 == 0 else "odd"}' for i in range(40)]
    text = "n,t,parity\n" + "\n".join(rows) + "\n"
    sampled = sample_table(text, "/d/t.csv", "parity", 0.25)
    kept = [row for row in rows if f"\n{row}\n" in sampled]
    assert sampled == "n,t,parity\n" + "".join(f"{row}\n" for row in kept)
    assert Counter(row.rsplit(",", 1)[1] for row in kept) == {"even": 5, "odd": 5}


def test_json_lines_are_drawn_by_their_field() -> None:
    text = "".join(f'{{"y": "{"ab"[i % 2]}", "i": {i}}}\n' for i in range(10))
    assert len(sample_table(text, "/t.jsonl", "y", 0.4).splitlines()) == 4


@pytest.mark.parametrize(
    ("path", "text"), [("/t.csv", "a,b\n1,2\n"), ("/t.jsonl", '{"a": 1}\n'), ("/t.jsonl", "no\n")]
)
def test_a_table_without_the_label_is_an_error_that_names_the_file(path: str, text: str) -> None:
    with pytest.raises(InvalidInput, match=path):
        sample_table(text, path, "label", 0.5)


def test_patterns_say_which_files_come_whole() -> None:
    assert is_kept("/data/test/1.png", ["/data/test/*"])
    assert is_kept("/data/test/1.png", ["test/*"])
    assert is_kept("/data/test/a/1.png", ["/data/test/**"])
    assert not is_kept("/data/train/1.png", ["/data/test/*"])
