"""What the whole installation does now, as monitoring reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from easel.store import devices, events, leases, outbox, pool_counts, shares
from easel.store.engine import Store

CONTROLLER_LEASE = "controller"


@dataclass(frozen=True, slots=True)
class PoolMeasures:
    """`attempts` are those that ended after the attempt numbered `since`; `last_attempt` is the newest."""

    jobs: Mapping[str, int]
    oldest_queued_s: float
    attempts: Mapping[str, int]
    last_attempt: int
    devices: Mapping[str, int]
    gpus: int
    gpus_held: float
    vcpu: float
    vcpu_held: float
    events: int
    controller_leads: bool
    messages: Mapping[str, int]


def measure(store: Store, since: int) -> PoolMeasures:
    """Returns the state of jobs and devices; of attempts only what ended after number `since`."""
    with store.read() as tx:
        oldest = pool_counts.oldest_queued(tx)
        last, attempts = pool_counts.attempts_after(tx, since)
        pool = devices.machines(tx)
        held = [each for each in shares.held_now(tx) if each.started_at is not None]
        lease = leases.stand(tx, CONTROLLER_LEASE)
        connected = [device for device in pool if device.connected]
        return PoolMeasures(
            jobs=pool_counts.unfinished(tx),
            oldest_queued_s=(tx.now - oldest).total_seconds() if oldest else 0.0,
            attempts=attempts,
            last_attempt=last,
            devices={
                "connected": sum(device.open for device in connected),
                "draining": sum(not device.open for device in connected),
                "away": len(pool) - len(connected),
            },
            gpus=sum(len(device.capacity.gpus) for device in connected),
            gpus_held=sum(each.gpus * each.workers for each in held),
            vcpu=sum(device.capacity.vcpu for device in connected),
            vcpu_held=sum(each.vcpu * each.workers for each in held),
            events=events.last_seq(tx),
            controller_leads=lease is not None and lease[2] > tx.now,
            messages=outbox.counts(tx),
        )
