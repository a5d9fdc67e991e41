"""`python -m easel.run.worker_main CONFIG`: the worker process that `easel up` starts beside the server."""

from __future__ import annotations

import os
import signal
import sys
import threading

from easel.clock import SystemClock
from easel.errors import EaselError
from easel.run.tree import die_with
from easel.run.worker import Worker
from easel.run.worker_config import WorkerConfig, read_config


def run_worker(config: WorkerConfig) -> None:
    """Works until told to stop. SIGTERM stops it in order: running attempts end and are tried again later."""
    os.environ.update(config.credentials)  # also for the fork server, which opens the depot anew
    asked = threading.Event()
    made: list[Worker] = []

    def stop(*_: object) -> None:
        asked.set()
        for worker in made:
            worker.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    if config.parent is not None:
        die_with(config.parent, signal.SIGTERM)
    # Only now is anything made that somebody would have to take away again.
    made.append(Worker(config, SystemClock()))
    if asked.is_set():
        made[0].stop()
    made[0].run()
    if config.parent is not None:
        from easel.run.remote.placed_home import remove_deserted  # only here: the start should be quick

        remove_deserted(config.home, SystemClock())


if __name__ == "__main__":
    try:
        run_worker(read_config(sys.argv[1]))
    except EaselError as error:  # another worker was quicker: the controller will find it
        sys.exit(f"easel worker: {error}")
