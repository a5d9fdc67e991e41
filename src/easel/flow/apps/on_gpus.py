"""An app's candidates on GPUs: how long they would take there, what they need, and whether that pays. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np

from easel.declare.resources import Resources
from easel.flow.apps.beliefs import GPU_START_S, Costs
from easel.match.candidate import Candidate
from easel.match.packing import packing_of
from easel.match.registry import is_network
from easel.match.summary import DataSummary
from easel.optimise.arrays import Array
from easel.price.book import PriceBook
from easel.records.packing import Packing
from easel.tenancy.places import BESIDE, GPU

DEARER = 4.0
"""A GPU that is faster may cost so many times as much as a core for the same trial: whoever waits pays too."""
SLOWER = 4.0
"""A trial that takes so many times as long on a core waits for a GPU, in a pool that has one."""
HOST_MB = 4096
"""Memory of the machine that a process with a GPU takes at least."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ByKind(Mapping[str, T], Generic[T]):
    """What is worked out for a kind of device when it is first asked for; `made` gives None for kinds unknown to it."""

    made: Callable[[str], T | None]
    _known: dict[str, T | None] = field(default_factory=dict)

    def __getitem__(self, kind: str) -> T:
        if kind not in self._known:
            self._known[kind] = self.made(kind)
        found = self._known[kind]
        if found is None:
            raise KeyError(kind)
        return found

    def __iter__(self) -> Iterator[str]:
        return (kind for kind, found in self._known.items() if found is not None)

    def __len__(self) -> int:
        return sum(found is not None for found in self._known.values())


@dataclass(frozen=True)
class OnGpus:
    """`seconds` `(K,)` and `needs` are those on the reference device."""

    costs: Costs
    app: str
    candidates: Sequence[Candidate]
    summary: DataSummary
    seconds: Array
    needs: tuple[Resources, ...]
    book: PriceBook

    def times(self, kind: str) -> Array | None:
        """`(K,)` on a GPU of this kind; endless for what cannot use one."""
        if not kind.startswith(GPU):
            return None
        there = self.costs.seconds_on(kind, self.candidates)
        return np.where(self._networks, there, np.inf)

    def needs_there(self, kind: str) -> tuple[Resources | None, ...] | None:
        """What each takes of such a device; None for a candidate that is better off elsewhere."""
        if kind.startswith(BESIDE):
            waits = self._better(kind.removeprefix(BESIDE), SLOWER)
            return tuple(None if wait else need for need, wait in zip(self.needs, waits, strict=True))
        if not kind.startswith(GPU):
            return None
        return tuple(
            self._need(one, need) if better else None
            for one, need, better in zip(self.candidates, self.needs, self._better(kind, 1.0), strict=True)
        )

    def packs(self, kind: str) -> tuple[Packing | None, ...] | None:
        """Returns what each may be trained together with on such a device."""
        if not kind.startswith(GPU):
            return None
        found = [packing_of(one, self.summary) for one in self.candidates]
        return tuple(None if one is None else one._replace(begin=GPU_START_S) for one in found)

    def rates(self, kind: str) -> Array | None:
        """`(K,)` money a second on such a device."""
        if not kind.startswith(GPU):
            return None
        return np.array(
            [self._rate(self._need(one, need)) for one, need in zip(self.candidates, self.needs, strict=True)]
        )

    def _better(self, kind: str, times: float) -> Array:
        """`(K,)`: more than `times` as fast on the GPU, at a bill that is not out of proportion."""
        there, rates = self.times(kind), self.rates(kind)
        assert there is not None
        assert rates is not None
        here = np.array([self._rate(need) for need in self.needs]) * self.seconds
        with np.errstate(invalid="ignore"):
            return np.asarray((there * times < self.seconds) & (there * rates <= DEARER * here + 1e-12))

    @cached_property
    def _networks(self) -> Array:
        return np.array([is_network(one) for one in self.candidates], dtype=bool)

    def _need(self, candidate: Candidate, need: Resources) -> Resources:
        share = self.costs.gpu_share(self.app, candidate, self.summary)
        return Resources(need.vcpu, max(need.memory_mb, HOST_MB), share)

    def _rate(self, need: Resources) -> float:
        kind = min(self.book.gpus, key=lambda name: (name != GPU, name), default=None) if need.gpus else None
        return float(self.book.rate(need.vcpu, need.memory_mb, kind, need.gpus)) / 3600.0
