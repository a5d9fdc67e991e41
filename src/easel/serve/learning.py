"""The service loop of apps and studies: a quiet thread beside the controller that settles trials and starts the next
ones, whoever's turn the policy says it is.

Any number may run: every step is one transaction that sees what others have done.
"""

from __future__ import annotations

import logging
import math
import threading

from easel.errors import EaselError
from easel.flow.apps.guests import Guest
from easel.flow.apps.next_trial import next_trial, settle
from easel.flow.lake.upload import Lake
from easel.flow.studies import advance
from easel.flow.studies.advance import Ready, start_point
from easel.flow.studies.pool import tenant_of
from easel.schedule.policies import Policy, named
from easel.schedule.state import Device
from easel.store import app_trials, apps, devices, jobs, studies
from easel.store.engine import Tx

log = logging.getLogger("easel.learning")
EVERY_S = 0.5


def keep_learning(
    lake: Lake, stopping: threading.Event, policy: Policy | None = None, every: float = EVERY_S
) -> None:
    """Until `stopping` is set. Trouble is logged and waited out: a trial can be late, never lost."""
    chosen = policy or named("easel")
    ready: dict[str, Ready] = {}
    while not stopping.wait(every):
        try:
            ready = advance_studies(lake, ready)
            turn(lake, chosen, ready)
        except EaselError as error:
            log.warning("learning waits: %s", error)
        except Exception:
            log.exception("the next trial could not be chosen; trying again")


def advance_studies(lake: Lake, ready: dict[str, Ready]) -> dict[str, Ready]:
    """Everything about studies but starting points: what ended, what must end, what would come next."""
    advance.settle(lake.store)
    advance.stop_runs(lake.store)
    advance.note_recommendations(lake.store)
    return advance.prepare(lake, ready)


def turn(lake: Lake, policy: Policy, ready: dict[str, Ready] | None = None) -> int:
    """Note what ended, then fill every core that trials leave idle; how many trials were started."""
    offered = dict(ready or {})
    with lake.store.read() as tx:
        if not offered and not apps.all_apps(tx):
            return 0
        places = _places(tx)
    started = 0
    with lake.store.write() as tx:
        settle(tx)
        for place in places[_busy(tx) :]:
            guests = [_guest(one) for one in offered.values()]
            decision, job = next_trial(tx, policy, place, tx.now.timestamp(), guests=guests)
            served = offered.pop(getattr(decision, "tenant", ""), None)
            if job is None and served is None:
                break
            started += job is not None
    return started


def _places(tx: Tx) -> list[Device]:
    return [
        Device(f"{device.name}/{core}")
        for device in devices.machines(tx)
        if device.connected
        for core in range(int(device.capacity.vcpu))
    ]


def _busy(tx: Tx) -> int:
    """Cores that trials of apps and points of studies hold or wait for."""
    running = [p.job_id for p in studies.running_points(tx) if p.job_id is not None]
    cores = [math.ceil(float(row.spec["resources"]["vcpu"])) for row in jobs.rows(tx, running).values()]
    return len(app_trials.trials(tx, running=True)) + sum(cores)


def _guest(ready: Ready) -> Guest:
    starts = tuple(point.started_at for point in ready.points)
    tenant = tenant_of(ready.study, ready.points)
    return Guest(
        tenant, ready.study.created_at, starts, lambda tx, decision: start_point(tx, ready, decision)
    )
