"""`python -m easel.run.worker_main CONFIG`: the worker process that `easel up` starts beside the server."""

from __future__ import annotations

import sys

from easel.run.executors.local import read_config
from easel.run.worker import run_worker

if __name__ == "__main__":
    run_worker(read_config(sys.argv[1]))
