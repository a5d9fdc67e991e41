"""Tables of what every candidate would reach and cost for every tenant: history, or a world to simulate."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from easel.errors import InvalidInput
from easel.optimise.arrays import Array
from easel.optimise.kernels import Matern52


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """`quality` and `cost` `(n, K)`, rows named by `tenants`, columns by `candidates`; NaN where not run."""

    tenants: tuple[str, ...]
    candidates: tuple[str, ...]
    quality: Array
    cost: Array

    def __post_init__(self) -> None:
        shape = (len(self.tenants), len(self.candidates))
        if self.quality.shape != shape or self.cost.shape != shape:
            raise InvalidInput(
                f"quality {self.quality.shape} and cost {self.cost.shape} must both be {shape}"
            )

    def rows(self, chosen: Iterable[int]) -> Self:
        which = list(chosen)
        return type(self)(
            tuple(self.tenants[i] for i in which), self.candidates, self.quality[which], self.cost[which]
        )

    @property
    def best(self) -> Array:
        """`(n,)`: the highest quality of each tenant; NaN where nothing was run."""
        gone = np.isnan(self.quality)
        top = np.where(gone, -np.inf, self.quality).max(1)
        return np.where(gone.all(1), np.nan, top)

    @property
    def total_cost(self) -> float:
        """Returns the cost of everything that can be run."""
        return float(self.cost[~np.isnan(self.quality) & np.isfinite(self.cost)].sum())


def read_table(
    path: Path,
    tenant: str = "tenant",
    candidate: str = "candidate",
    quality: str = "quality",
    cost: str = "cost",
) -> ScoreTable:
    """One row per finished trial: `tenant,candidate,quality,cost` (other names by argument, more columns ok).

    Of repeated trials the last counts. An empty quality is a failed trial.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            missing = {tenant, candidate, quality, cost} - set(reader.fieldnames or ())
            if missing:
                raise InvalidInput(f"{path} lacks the columns {', '.join(sorted(missing))}")
            rows = list(reader)
    except (UnicodeDecodeError, csv.Error, IsADirectoryError):
        raise InvalidInput(f"{path} is no table of text: give a CSV file in UTF-8") from None
    if not rows:
        raise InvalidInput(f"{path} has no rows: export some history first")
    tenants = list(dict.fromkeys(r[tenant] for r in rows))
    candidates = list(dict.fromkeys(r[candidate] for r in rows))
    at_row, at_column = ({name: i for i, name in enumerate(names)} for names in (tenants, candidates))
    Q = np.full((len(tenants), len(candidates)), np.nan)
    C = Q.copy()
    for number, r in enumerate(rows, start=2):
        i, k = at_row[r[tenant]], at_column[r[candidate]]
        try:
            Q[i, k] = float(r[quality] or "nan")
            C[i, k] = float(r[cost] or "nan")
        except ValueError:
            given = f"{r[quality]!r} and {r[cost]!r}"
            raise InvalidInput(
                f"{path}, line {number}: {quality} and {cost} must be numbers, not {given}"
            ) from None
    return ScoreTable(tuple(tenants), tuple(candidates), Q, C)


def synthetic(
    rng: np.random.Generator,
    tenants: int = 200,
    candidates: int = 100,
    sigma_m: float = 0.5,
    alpha: float = 0.1,
    sigma_b: float = 0.05,
    groups: tuple[float, ...] = (0.75, 0.25),
) -> ScoreTable:
    """SYN(σ_M, α) of ease.ml, arXiv appendix B: `x_ij = clip(b_i + α m_ij, 0, 1)`, costs `U(0, 1)`.

    `b_i ~ N(μ_b, σ_b)` with `μ_b` from the baseline groups in equal numbers; `m_i· ~ N(0, Σ_M)` with
    `Σ_M[j,j'] = exp(−(f_j − f_j')²/σ_M²)`, `f ~ U(0, 1)`.
    """
    f = rng.uniform(size=candidates)
    S = np.exp(-((f[:, None] - f[None, :]) ** 2) / sigma_m**2)
    w, U = np.linalg.eigh(S)
    b = np.array([groups[i * len(groups) // tenants] for i in range(tenants)])
    b = b + sigma_b * rng.standard_normal(tenants)
    m = rng.standard_normal((tenants, candidates)) @ (U * np.sqrt(w.clip(min=0.0))).T
    quality = np.clip(b[:, None] + alpha * m, 0.0, 1.0)
    return _numbered(quality, rng.uniform(size=quality.shape))


def matern_world(
    rng: np.random.Generator, tenants: int = 50, candidates: int = 50
) -> tuple[ScoreTable, Array]:
    """MM-GP-EI §6.3: zero-mean GP with Matérn 5/2 over `U(0, 1)` features, per tenant, shifted to be ≥ 0.

    Costs are `U(0, 1)`. Returns the table and the covariance `(K, K)` that generated it.
    """
    x = rng.uniform(size=(candidates, 1))
    S = Matern52(np.log([0.2]))(x, x)
    w, U = np.linalg.eigh(S)
    quality = rng.standard_normal((tenants, candidates)) @ (U * np.sqrt(w.clip(min=0.0))).T
    quality = quality - quality.min()
    return _numbered(quality, rng.uniform(size=quality.shape)), S


def _numbered(quality: Array, cost: Array) -> ScoreTable:
    n, K = quality.shape
    return ScoreTable(
        tuple(f"t{i:03d}" for i in range(n)), tuple(f"m{k:03d}" for k in range(K)), quality, cost
    )
