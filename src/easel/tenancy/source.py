"""The one interface between the pool and those who want it: what they offer, start this, this ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeAlias, TypeVar

from easel.declare.resources import Resources
from easel.ids import JobId
from easel.records.decision import StartTrial
from easel.records.device import Device
from easel.records.event import Event
from easel.records.queue import Owner
from easel.records.standing import Obstacle
from easel.records.tenant import PoolTurn, Terms
from easel.schedule.state import Tenant
from easel.store.engine import Tx


@dataclass(frozen=True)
class Flight:
    """A trial that was started and has not ended: its job and in whose name that runs, the decision, what it takes of
    its device, and on how many examples it runs."""

    job_id: JobId
    trial: StartTrial
    resources: Resources
    owner: Owner
    examples: int = 0
    stops: bool = False
    """Whether it gives way within seconds when it is asked to, and keeps what it has learned by then."""
    goes_back: bool = False
    """Whether it gives way by being stopped: the same job goes on later, from the checkpoint that it keeps."""


@dataclass(frozen=True, eq=False)
class TenantOffer:
    """A tenant as it stands now. `owners` are those who are served together, by id, each with its owner.

    `best` is its best quality in its own metric. `obstacle` is what keeps all of it from starting, as far as the
    source knows; `until`, a time in seconds, is when that ends by itself.
    `changed_at` is when it last learned something.
    """

    tenant: Tenant
    owners: Mapping[str, Owner]
    terms: Terms
    best: float | None = None
    flights: tuple[Flight, ...] = ()
    obstacle: Obstacle | None = None
    until: float | None = None
    changed_at: datetime | None = None

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(self.owners)


@dataclass(frozen=True)
class TrialEnded:
    """The trial of `job_id` ended with `score` (NaN: it failed) as the policy compares them, and was billed `bill`.

    `reached` is how far the trial is, `seconds` what this slice of it took in time of the reference device.
    """

    job_id: JobId
    trial: StartTrial
    score: float
    bill: float
    best: float | None
    reached: float = 1.0
    seconds: float | None = None


@dataclass(frozen=True)
class TenantGone:
    """The tenant is no more, or has nothing to offer."""

    name: str


Change: TypeAlias = TenantOffer | TrialEnded | TenantGone


@dataclass(frozen=True)
class StartGrant:
    """What a trial gets: how long it may run and what it takes of its device. `members` are those of the tenant whose
    owners may start something now; `turn` is the number of the start, `wants` the labels of its device."""

    limit_s: float
    resources: Resources
    turn: int
    members: frozenset[str]
    wants: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""
    """The kind of its device, where trials take another time there than on the reference device."""
    pool: Sequence[Device] | None = None
    """The devices as they were when the trial was chosen; None where whoever starts it must look."""


Settlement = TypeVar("Settlement")


class TenantSource(Protocol[Settlement]):
    """Something that turns records into tenants. Whatever it keeps in memory is what the records say.

    Methods that write take a transaction and change nothing in memory; the keeper calls `started` and `settled` once
    the transaction is committed. `Settlement` is what the source writes down about jobs that ended.
    """

    def load(self, tx: Tx, turn: PoolTurn) -> list[TenantOffer]:
        """Returns all tenants, from records alone."""
        ...

    def touched(self, event: Event) -> str | None:
        """The tenant (or would-be tenant) that this event changes, to be read again."""
        ...

    def read(self, tx: Tx, name: str) -> list[Change]:
        """One tenant again, from records alone; with it those whose offer changes too."""
        ...

    def prepare(self) -> list[Change]:
        """What takes long and needs no transaction, such as working out what to offer."""
        ...

    def learnable(self) -> int | None:
        """Up to which past trial beliefs should be learned from now on; None: as they are."""
        ...

    def relearn(self, as_of: int) -> list[TenantOffer]:
        """Everybody's offer under beliefs learned up to `as_of`."""
        ...

    def start(self, tx: Tx, trial: StartTrial, grant: StartGrant) -> Flight:
        """Submit the trial and note it; an `EaselError` says why it cannot be."""
        ...

    def started(self, flight: Flight, grant: StartGrant) -> None:
        """The start was committed."""
        ...

    def settle(self, tx: Tx, jobs: Sequence[JobId]) -> Settlement:
        """Note what came of jobs that are over."""
        ...

    def settled(self, settlement: Settlement) -> list[Change]:
        """The settlement was committed: what changes for whom."""
        ...
