from __future__ import annotations

import itertools

import numpy as np
import pytest

from easel.errors import InvalidInput
from easel.price.design import d_optimal, default_size, full_grid, terms, unit_scaled


def test_the_papers_grid_has_the_product_of_all_levels() -> None:
    grid = full_grid({"epoch": (1, 2, 5), "batch-size": (256, 1024)})
    assert len(grid) == 3 * 3 * 3 * 2
    assert len({tuple(sorted(cell.items())) for cell in grid}) == len(grid)
    assert grid[0] == {"epoch": 1, "batch-size": 256, "cpus": 0.5, "memory_mb": 512}


def test_the_default_design_takes_at_most_half_of_the_grid_and_sees_every_level() -> None:
    grid = full_grid({"epoch": (1, 2, 5), "batch-size": (256, 1024)})
    chosen = d_optimal(grid, default_size(grid))
    assert len(chosen) == len(set(chosen)) <= len(grid) / 2
    for name in grid[0]:
        assert {grid[i][name] for i in chosen} == {cell[name] for cell in grid}


def test_a_small_design_is_as_good_as_the_best_of_all_subsets() -> None:
    grid = full_grid({"n": (1, 10)}, cpus=(1, 2, 4), memories_mb=(512,))
    F = terms(unit_scaled(grid))

    def worth(rows: tuple[int, ...]) -> float:
        return float(np.linalg.slogdet(F[list(rows)].T @ F[list(rows)] + 1e-4 * np.eye(F.shape[1]))[1])

    best = max(worth(rows) for rows in itertools.combinations(range(len(grid)), 5))
    assert worth(tuple(d_optimal(grid, 5))) == pytest.approx(best, abs=1e-6)


def test_an_optimal_design_beats_random_ones_of_its_size() -> None:
    grid = full_grid({"a": (1, 2, 5), "b": (10, 20, 40)})
    F, rng = terms(unit_scaled(grid)), np.random.default_rng(0)

    def worth(rows: list[int]) -> float:
        return float(np.linalg.slogdet(F[rows].T @ F[rows])[1])

    size = default_size(grid)
    random_best = max(worth(list(rng.choice(len(grid), size, replace=False))) for _ in range(500))
    assert worth(d_optimal(grid, size)) > random_best


def test_of_equal_cells_the_cheaper_one_is_run() -> None:
    grid = full_grid({"n": (1, 10)}, cpus=(1,), memories_mb=(512,)) * 2
    assert d_optimal(grid, 2, price=[9, 9, 1, 1]) == [2, 3]


def test_a_grid_without_anything_to_vary_still_has_a_design() -> None:
    grid = full_grid({}, cpus=(1,), memories_mb=(512,))
    assert d_optimal(grid, default_size(grid)) == [0]


@pytest.mark.parametrize(
    ("levels", "cpus"),
    [
        ({"n": ()}, (1.0,)),
        ({"n": (0.0, 1.0)}, (1.0,)),
        ({}, (1.0, 1.0)),
        ({}, (float("nan"),)),
        ({"n": (-1.0,)}, (1.0,)),
    ],
)
def test_wrong_levels_are_refused(levels: dict[str, tuple[float, ...]], cpus: tuple[float, ...]) -> None:
    with pytest.raises(InvalidInput):
        full_grid(levels, cpus)


@pytest.mark.parametrize("count", [0, 10])
def test_impossible_sizes_are_refused(count: int) -> None:
    with pytest.raises(InvalidInput):
        d_optimal(full_grid({}), count)
