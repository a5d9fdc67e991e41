"""A ready process: it performs the trials that come as lines, until it is worn."""

from __future__ import annotations

import gc
import json
import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

from easel.clock import Clock
from easel.run.depot import Depot
from easel.run.launch import Folders
from easel.run.order import ORDER
from easel.run.tree import descendants
from easel.run.trial import Assignment, perform, status_mb
from easel.run.trial_pack import perform_together

REUSE_BELOW_S = 2.0
"""A longer trial's process is not used again: a fork is nothing against it, and a fresh heap is worth it."""
REUSE_BELOW_GROWTH_MB = 64


def read_assignments(line: bytes) -> tuple[Assignment, ...]:
    return tuple(
        Assignment(
            ORDER.validate_python(body["order"]),
            Folders(Path(body["folder"])),
            Path(body["checkpoint"]),
            tuple(body["gpus"]),
        )
        for body in json.loads(line)
    )


def write_assignments(tasks: Sequence[Assignment]) -> bytes:
    bodies = [
        {
            "order": ORDER.dump_python(task.order, mode="json"),
            "folder": str(task.folders.root),
            "checkpoint": str(task.checkpoint),
            "gpus": task.gpus,
        }
        for task in tasks
    ]
    return json.dumps(bodies).encode() + b"\n"


def serve(fd: int, depot: Depot, clock: Clock, home: Path | None = None) -> None:
    """Perform assignments that come as lines on `fd` until it closes, or until this process is worn."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    fresh_mb = status_mb("VmRSS")
    with os.fdopen(os.dup(fd), "rb") as lines:
        for line in lines:
            tasks = read_assignments(line)
            if len(tasks) > 1:
                perform_together(tasks, depot, clock, fd, home)
                return
            usage = perform(tasks[0], depot, clock, fd, home)
            worn = home is None and (
                usage.wall_seconds > REUSE_BELOW_S
                or bool(tasks[0].gpus)
                or threading.active_count() > 1
                or status_mb("VmRSS") - fresh_mb > REUSE_BELOW_GROWTH_MB
                or bool(descendants(os.getpid()))
            )
            if worn:
                return
            gc.collect(0)
