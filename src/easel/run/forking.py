"""Starting an agent: a fork of the worker, which has everything imported, with nothing of the worker's left open."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path

from easel.clock import Clock
from easel.run.agent import Agent
from easel.run.attempts import Attempt
from easel.run.depot import Depot
from easel.run.journal import Journal
from easel.run.order import Order
from easel.run.tracking import reachable


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every agent of a worker shares."""

    home: Path
    depot: Depot
    bwrap: str | None
    clock: Clock
    interpreters: tuple[Path, ...] = ()
    server: str | None = None
    """The address of the server that this worker joined, where it is another machine's."""

    def seen(self, order: Order) -> Order:
        """The order with addresses that are good from here."""
        if order.tracking is None:
            return order
        return replace(order, tracking=reachable(order.tracking, self.server))


def fork_agent(attempt: Attempt, here: Surroundings, wake_fd: int) -> int:
    """The pid of the agent, which writes a byte to `wake_fd` whenever its journal has grown."""
    pid = os.fork()
    if pid != 0:
        return pid
    code = 1
    try:
        _only(wake_fd)
        os.setsid()
        journal = Journal(attempt.folders.journal, here.clock, 3)
        Agent(
            here.seen(attempt.order),
            attempt.folders,
            attempt.gpus,
            attempt.cgroup,
            here.depot,
            here.bwrap,
            here.home,
            here.clock,
            journal,
            here.interpreters,
        ).live()
        code = 0
    finally:
        os._exit(code)


def _only(fd: int) -> None:
    """Keeps `fd` as number 3 in a forked agent and closes the rest, or others would wait for us to."""
    os.dup2(fd, 3)
    os.closerange(4, 65536)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
