"""`python -m easel.run.worker_main CONFIG`: the worker process that `easel up` starts beside the server."""

from __future__ import annotations

import os
import signal
import sys

from easel.clock import SystemClock
from easel.errors import EaselError
from easel.run.tree import die_with
from easel.run.worker import Worker
from easel.run.worker_config import WorkerConfig, read_config


def run_worker(config: WorkerConfig) -> None:
    """Until told to stop. SIGTERM stops it in order: running attempts end and are tried again later."""
    os.environ.update(config.credentials)  # also for the nursery, which opens the depot anew
    worker = Worker(config, SystemClock())

    def stop(*_: object) -> None:
        worker.stopping = True

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if config.parent is not None:
        die_with(config.parent, signal.SIGTERM)
    worker.run()


if __name__ == "__main__":
    try:
        run_worker(read_config(sys.argv[1]))
    except EaselError as error:  # another worker was quicker: the controller will find it
        sys.exit(f"easel worker: {error}")
