"""The whole pool as one project sees it: its own share, and what all others hold together, unnamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from easel.records.identity import Caller
from easel.store import pool_use
from easel.store.engine import Tx
from easel.store.pool_use import HeldRoom


@dataclass(slots=True)
class Amounts:
    """What some jobs hold of a device together."""

    jobs: int = 0
    vcpu: float = 0.0
    memory_mb: float = 0.0
    gpus: float = 0.0

    def add(self, resources: Mapping[str, Any]) -> None:
        self.jobs += 1
        self.vcpu += float(resources.get("vcpu", 0.0))
        self.memory_mb += float(resources.get("memory_mb", 0.0))
        self.gpus += float(resources.get("gpus", 0.0))


@dataclass(slots=True)
class DeviceUse:
    """What is held of one device: by the project that asks, and by everybody else."""

    mine: Amounts = field(default_factory=Amounts)
    others: Amounts = field(default_factory=Amounts)


@dataclass(frozen=True, slots=True)
class PoolUse:
    """`waiting` counts jobs without room: the project's own, and those of all others."""

    devices: Mapping[str, DeviceUse]
    waiting_mine: int
    waiting_others: int


def use_now(tx: Tx, caller: Caller) -> PoolUse:
    """What the caller's project and all others hold of each device now, and how many jobs of each wait."""
    waiting = pool_use.waiting(tx)
    mine = waiting.get(caller.project_id, 0)
    return PoolUse(shares(pool_use.held(tx), caller.project_id), mine, sum(waiting.values()) - mine)


def gpu_holders(tx: Tx) -> dict[str, Amounts]:
    """What running jobs that hold GPUs hold of each device together, whoever's they are."""
    found: dict[str, Amounts] = {}
    for row in pool_use.held(tx):
        resources = row.resources or {}
        if resources.get("gpus"):
            found.setdefault(row.device, Amounts()).add(resources)
    return found


def shares(rows: Iterable[HeldRoom], project_id: str) -> dict[str, DeviceUse]:
    """Sums by device, the project's own apart from everybody else's."""
    found: dict[str, DeviceUse] = {}
    for row in rows:
        use = found.setdefault(row.device, DeviceUse())
        (use.mine if row.project_id == project_id else use.others).add(row.resources or {})
    return found
