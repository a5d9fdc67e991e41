"""The service loop of apps: a quiet thread beside the controller that settles trials and starts the next ones.

Any number may run: every step is one transaction that sees what others have done.
"""

from __future__ import annotations

import logging
import threading

from easel.errors import EaselError
from easel.flow.apps.next_trial import next_trial, settle
from easel.schedule.policies import Policy, named
from easel.schedule.state import Device
from easel.store import apps, devices
from easel.store.engine import Store

log = logging.getLogger("easel.learning")
EVERY_S = 0.5


def keep_learning(
    store: Store, stopping: threading.Event, policy: Policy | None = None, every: float = EVERY_S
) -> None:
    """Until `stopping` is set. Trouble is logged and waited out: a trial can be late, never lost."""
    chosen = policy or named("easel")
    while not stopping.wait(every):
        try:
            turn(store, chosen)
        except EaselError as error:
            log.warning("learning waits: %s", error)
        except Exception:
            log.exception("the next trial could not be chosen; trying again")


def turn(store: Store, policy: Policy) -> int:
    """Note what ended, then fill every core that trials leave idle; how many trials were started."""
    with store.read() as tx:
        if not apps.all_apps(tx):
            return 0
        places = [
            Device(f"{device.name}/{core}")
            for device in devices.list_devices(tx)
            if device.connected
            for core in range(int(device.capacity.vcpu))
        ]
    started = 0
    with store.write() as tx:
        settle(tx)
        busy = sum(not trial.ended for trial in apps.trials(tx))
        for place in places[busy:]:
            _, job = next_trial(tx, policy, place, tx.now.timestamp())
            if job is None:
                break
            started += 1
    return started
