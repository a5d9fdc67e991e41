"""The service loop of apps and studies: a quiet thread beside the controller that settles trials and starts the next
ones, whoever's turn the policy says it is. It acts only while its controller leads."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from easel.errors import EaselError
from easel.flow.apps.done import tell_done
from easel.flow.apps.tenant import AppSource
from easel.flow.jobs.admission import QueueAdmission
from easel.flow.lake.upload import Lake
from easel.flow.prices import places_by_terms
from easel.flow.studies.tenant import StudySource
from easel.schedule.policies import Policy, named
from easel.serve.settings import Settings
from easel.store.engine import Tx
from easel.tenancy.keeper import Keeper
from easel.tenancy.newcomers import NewcomersFirst
from easel.tenancy.rules import Rules

log = logging.getLogger("easel.learning")
EVERY_S = 0.5
TOGETHER_S = 0.01


def rules_of(settings: Settings) -> Rules:
    """What the settings say of when tenants stop and how long trials may take; its pages go by the same."""
    return Rules(
        done_below=settings.app_done_below,
        patience=settings.trial_patience,
        least_limit_s=settings.trial_least_limit_s,
    )


def build_keeper(
    lake: Lake,
    policy: Policy | None = None,
    rules: Rules | None = None,
    max_active: int = 8,
    guard: Callable[[Tx], None] | None = None,
) -> Keeper:
    """The pool with everybody who shares it: apps and studies."""
    return Keeper(
        (AppSource(lake.store), StudySource(lake)),
        QueueAdmission(max_active),
        NewcomersFirst(policy or named("easel")),
        rules or Rules(),
        store=lake.store,
        guard=guard,
        tell_done=tell_done,
        terms=places_by_terms,
    )


def keep_learning(
    keeper: Keeper, leads: Callable[[], bool], stopping: threading.Event, every: float = EVERY_S
) -> None:
    """Serves tenants until `stopping` is set. Trouble is logged and waited out: a trial can be late, never lost.

    Any event wakes it; without events it looks every `every` seconds. Who stops leading forgets what it knew.
    """
    woken = threading.Event()
    stop_listening = keeper.store.listen(woken.set)
    led = False
    try:
        while not stopping.is_set():
            woken.wait(every)
            stopping.wait(TOGETHER_S)  # what comes at once is taken in at once
            woken.clear()
            if led and not leads():
                keeper.forget()
            led = leads()
            if led:
                _turn(keeper)
    finally:
        stop_listening()


def _turn(keeper: Keeper) -> None:
    try:
        keeper.turn()
    except EaselError as error:
        log.warning("learning waits: %s", error)
        keeper.forget()
    except Exception:
        log.exception("the next trial could not be chosen; trying again")
        keeper.forget()
