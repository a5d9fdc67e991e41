"""Putting the job engine together from settings, and running its loop beside the server."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from easel.clock import Clock, SystemClock
from easel.declare.resources import Room
from easel.flow.jobs.advance import Advancer
from easel.flow.jobs.launch import Launcher
from easel.flow.jobs.orders import OrderLimits
from easel.flow.jobs.tracking_tokens import JobTracking
from easel.flow.lake.upload import Lake
from easel.flow.messages.deliver import MessageSender
from easel.flow.operate.backups import Backing
from easel.flow.workers.executor import RemoteExecutor
from easel.flow.workers.seal import Seal
from easel.run.executors.base import Executor
from easel.run.executors.local import LocalExecutor, this_machine
from easel.run.executors.several import Several
from easel.run.order import MB, LogLimits
from easel.run.preload import TRIAL_MODULES
from easel.run.secret_store import SecretStore
from easel.run.share import HALF_LIFE_S
from easel.run.worker_config import CacheLimits, WorkerConfig
from easel.serve.controller import Controller, Pace
from easel.serve.engines import EngineChoice, build_engine_executor, chosen
from easel.serve.housekeeping import keep_house
from easel.serve.lake import blobs_address, blobs_credentials, signing_key
from easel.serve.learning import build_keeper, keep_learning, rules_of
from easel.serve.ledger import keep_books
from easel.serve.messenger import keep_sending
from easel.serve.settings import UNDERSTOOD, Settings
from easel.store.engine import Store
from easel.tenancy.rules import Rules

ORPHAN_AFTER_S = 300.0


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """What `settings` say about jobs."""

    home: Path
    depot: str
    """Where the bytes are, as in `lake.blobs.address`."""
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)
    capacity: Room = field(default_factory=this_machine)
    max_active: int = 8
    buffer: int = 256
    half_life_s: float = HALF_LIFE_S
    limits: OrderLimits = field(default_factory=OrderLimits)
    pace: Pace = field(default_factory=Pace)
    rules: Rules = field(default_factory=Rules)
    preload: tuple[str, ...] = TRIAL_MODULES
    sandbox: bool = True
    unsandboxed: bool = False
    interpreters: tuple[Path, ...] = ()
    cache_limits: CacheLimits = field(default_factory=CacheLimits)
    spawn_worker: bool = True
    executor: str = "local"
    """What drives devices: `alone` is this machine and nothing else, `local` also lets workers join."""
    worker_lost_after_s: float = 120.0
    engine: EngineChoice | None = None

    @property
    def worker(self) -> WorkerConfig:
        return WorkerConfig(
            self.home,
            "local",
            self.capacity,
            self.depot,
            self.preload,
            sandbox=self.sandbox,
            unsandboxed=self.unsandboxed,
            interpreters=self.interpreters,
            cache_limits=self.cache_limits,
            orphan_after_s=ORPHAN_AFTER_S if self.spawn_worker else None,
            credentials=self.credentials,
        )

    @property
    def secret_store(self) -> SecretStore:
        return SecretStore(self.home / "secrets")


def options_of(settings: Settings, *, spawn_worker: bool = True, address: str = "") -> EngineOptions:
    """`address` is where this server listens, if it does."""
    log_bytes = settings.job_log_mb * MB
    return EngineOptions(
        home=settings.folder,
        depot=blobs_address(settings),
        credentials=blobs_credentials(settings),
        capacity=this_machine(settings.worker_vcpu, settings.worker_memory_mb),
        max_active=settings.max_active_jobs,
        half_life_s=settings.share_half_life_days * 86_400.0,
        limits=OrderLimits(
            settings.job_disk_mb,
            settings.job_grace_s,
            LogLimits(head_bytes=log_bytes * 2 // 3, tail_bytes=log_bytes // 3),
            settings.job_processes,
            settings.network_projects,
            settings.host_network_projects,
            settings.package_index,
            str(settings.package_wheels) if settings.package_wheels else None,
            JobTracking(address or settings.public_url, signing_key(settings.folder)),
            session_idle_s=settings.session_idle_minutes * 60,
            session_idle_gpu_s=settings.session_idle_gpu_minutes * 60,
        ),
        pace=Pace(lease=settings.controller_lease_s, lost_after=settings.job_lost_after_s),
        rules=rules_of(settings),
        preload=TRIAL_MODULES if settings.warm_trials else (),
        sandbox=settings.sandbox,
        unsandboxed=settings.unsandboxed == UNDERSTOOD,
        interpreters=settings.interpreters,
        cache_limits=CacheLimits(settings.cache_mb, settings.cache_days, settings.least_free_mb),
        spawn_worker=spawn_worker,
        executor=settings.executor,
        worker_lost_after_s=settings.worker_lost_after_s,
        engine=chosen(settings, address),
    )


def build_controller(lake: Lake, options: EngineOptions, clock: Clock | None = None) -> Controller:
    clock = clock or SystemClock()
    # The executor wakes a loop that does not exist before the executor does: hence the box.
    box: list[Controller] = []
    executor = build_executor(lake.store, options, clock, lambda: box[0].wake.set() if box else None)
    launcher = Launcher(
        lake.store,
        options.secret_store,
        options.limits,
        options.max_active,
        options.buffer,
        options.half_life_s,
    )
    holder = f"{socket.gethostname()}:{os.getpid()}:{os.urandom(4).hex()}"
    controller = Controller(
        lake.store, executor, Advancer(lake), launcher, holder, clock, options.pace, options.rules
    )
    box.append(controller)
    return controller


def build_executor(store: Store, options: EngineOptions, clock: Clock, wake: Callable[[], None]) -> Executor:
    """What drives devices, as the options say."""
    seal = Seal(signing_key(options.home))
    if options.engine is not None:
        return build_engine_executor(
            store, options.engine, options.home, seal, clock, options.worker_lost_after_s
        )
    pulled = RemoteExecutor(store, seal, clock, lost_after=options.worker_lost_after_s)
    if options.executor == "remote":
        return pulled
    local = LocalExecutor(options.worker, clock, wake, options.spawn_worker)
    return local if options.executor == "alone" else Several(local, pulled)


@contextmanager
def hosted(
    controller: Controller,
    *,
    stop_worker: bool = True,
    sender: MessageSender | None = None,
    backing: Backing | None = None,
) -> Iterator[Controller]:
    """The loop in a thread of this process. At the end the worker is stopped too, unless it is somebody else's.

    With a `sender` messages to people leave from here too, with `backing` backups are made by their plan.
    """
    stopping = threading.Event()
    thread = threading.Thread(target=controller.run, args=(stopping,), name="controller", daemon=True)
    thread.start()
    books = threading.Thread(
        target=keep_books,
        args=(controller.store, controller.leads, stopping, controller.launcher.half_life_s),
        kwargs={
            "max_active": controller.launcher.max_active,
            "grace_s": controller.launcher.limits.grace_s,
        },
        name="ledger",
        daemon=True,
    )
    books.start()
    keeper = build_keeper(
        controller.advancer.lake,
        rules=controller.rules,
        max_active=controller.launcher.max_active,
        guard=controller.guard,
    )
    learning = threading.Thread(
        target=keep_learning, args=(keeper, controller.leads, stopping), name="learning", daemon=True
    )
    learning.start()
    mailing = threading.Thread(
        target=keep_sending,
        args=(controller.store, sender, controller.leads, stopping),
        name="messages",
        daemon=True,
    )
    if sender is not None:
        mailing.start()
    if backing is not None:  # a backup may take long, and is whole or nothing: it is not waited for
        threading.Thread(
            target=keep_house,
            args=(controller.store, backing, controller.leads, stopping),
            name="housekeeping",
            daemon=True,
        ).start()
    try:
        yield controller
    finally:
        stopping.set()
        controller.wake.set()
        thread.join(30)
        books.join(30)
        learning.join(30)
        if sender is not None:
            mailing.join(30)
        if stop_worker and controller.led:
            controller.executor.close(stop=True)
