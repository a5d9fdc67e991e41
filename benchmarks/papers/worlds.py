"""The data sets of the multi-tenant papers, and how they are split into history and tenants.

Read from `../shared/data` next to the repository, or from the folder that EASEL_DATA names.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from easel.schedule.table import ScoreTable, read_table, synthetic

DATA = Path(os.environ.get("EASEL_DATA", Path(__file__).parents[2].parent / "shared" / "data"))


def available() -> bool:
    return DATA.is_dir()


def _wide(path: Path) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray]:
    with path.open(newline="") as file:
        header, *rows = list(csv.reader(file))
    values = np.array([[float(cell) if cell else np.nan for cell in row[1:]] for row in rows])
    return tuple(r[0] for r in rows), tuple(header[1:]), values


@cache
def deeplearning() -> ScoreTable:
    users, models, quality = _wide(DATA / "easeml_deeplearning" / "quality_22x8.csv")
    return ScoreTable(users, models, quality, _wide(DATA / "easeml_deeplearning" / "time_22x8.csv")[2])


@cache
def azure_like() -> ScoreTable:
    path = DATA / "azure_like" / "azure_like_17x8.csv"
    return read_table(path, "dataset_id", "azure_model", "quality_tuned", "runtime_tuned_s")


@cache
def oboe() -> ScoreTable:
    return read_table(DATA / "oboe" / "results.csv", "dataset_id", "model_id", "quality", "runtime_s")


@cache
def _classifiers() -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray]:
    users, models, quality = _wide(DATA / "classifier179" / "quality_121x179.csv")
    # a few cells are written as percentages a hair above one
    return users, models, np.where(quality > 1.0, 1.0, quality)


def classifiers179(rng: np.random.Generator) -> ScoreTable:
    users, models, quality = _classifiers()
    return ScoreTable(users, models, quality, rng.uniform(size=quality.shape))


@dataclass(frozen=True)
class Setting:
    """One data set under ease.ml's protocol (§6.2): `users` tenants drawn at random, the rest are history.

    Each policy runs for `share` of the total cost of everything that the tenants could run.
    """

    name: str
    make: Callable[[np.random.Generator], ScoreTable]
    users: int = 10
    share: float = 0.1
    real_cost: bool = True


def _syn(sigma_m: float, alpha: float) -> Setting:
    return Setting(
        f"SYN({sigma_m:g},{alpha:.1f})",
        lambda rng: synthetic(rng, sigma_m=sigma_m, alpha=alpha),
        real_cost=False,
    )


SETTINGS: dict[str, Setting] = {
    s.name: s
    for s in (
        Setting("DEEPLEARNING", lambda rng: deeplearning()),
        Setting("AZURE-like", lambda rng: azure_like()),
        Setting("179CLASSIFIER", classifiers179, real_cost=False),
        Setting("Oboe", lambda rng: oboe(), users=20, share=0.02),
        _syn(0.01, 0.1),
        _syn(0.01, 1.0),
        _syn(0.5, 0.1),
        _syn(0.5, 1.0),
    )
}


@dataclass(frozen=True, eq=False)
class Split:
    """One repetition: earlier tenants, and those to serve."""

    history: ScoreTable
    tenants: ScoreTable


def split(setting: Setting, repetition: int, users: int | None = None) -> Split:
    rng = np.random.default_rng([7, repetition])
    table = setting.make(rng)
    order = rng.permutation(len(table.tenants))
    n = setting.users if users is None else users
    return Split(table.rows(order[n:]), table.rows(order[:n]))
