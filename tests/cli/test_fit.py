"""Tables that fit a window: columns leave from the right, texts are cut between words."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from easel.cli.fit import GAP, LEAST, fit_columns, shorten


def test_a_table_that_fits_is_left_alone() -> None:
    found = fit_columns([6, 20, 8], [False, True, False], [True, True, True], 80)
    assert (found.shown, found.widths) == ((0, 1, 2), (6, 20, 8))


def test_long_texts_give_way_before_a_column_leaves() -> None:
    found = fit_columns([6, 60, 8], [False, True, False], [True, False, False], 50)
    assert found.shown == (0, 1, 2)
    assert sum(found.widths) + 2 * GAP == 50
    assert found.widths == (6, 32, 8)


def test_columns_leave_from_the_right_and_the_important_ones_stay() -> None:
    found = fit_columns([30, 10, 30, 8], [False] * 4, [True, False, False, True], 52)
    assert found.shown == (0, 1, 3)


@given(
    st.lists(st.tuples(st.integers(1, 200), st.booleans(), st.booleans()), min_size=1, max_size=9),
    st.integers(20, 300),
)
def test_what_may_be_cut_or_left_out_never_makes_the_table_too_wide(
    columns: list[tuple[int, bool, bool]], room: int
) -> None:
    widths, texts, kept = (list(each) for each in zip(*columns, strict=True))
    found = fit_columns(widths, texts, kept, room)
    total = sum(found.widths) + GAP * (len(found.shown) - 1)
    if total > room:  # only where what must stay is too wide by itself
        assert all(kept[i] for i in found.shown)
        assert all(w <= max(LEAST, 0) or not texts[i] for i, w in zip(found.shown, found.widths, strict=True))
    assert all(i in found.shown for i in range(len(widths)) if kept[i])


def test_texts_are_cut_between_words() -> None:
    assert shorten("exit code 1", 20) == "exit code 1"
    assert shorten("no device can hold it", 16) == "no device can…"
    assert shorten("job_01m7nhwf00vb9zh4c8prg6pzhm", 10) == "job_01m7n…"
    assert len(shorten("a " * 50, 11)) <= 11
    assert shorten("convnet(augment=flip, lr=0.003, side=64)", 30) == "convnet(augment=flip, lr=0.00…", (
        "far away"
    )
