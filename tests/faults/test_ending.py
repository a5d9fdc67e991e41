"""A benchmark that `timeout` ends leaves no server behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

HOLDS = """
import sys
from pathlib import Path
from easel.testing.server import running

with running(Path(sys.argv[1])) as server:
    print(server.pid, flush=True)
    sys.stdin.read()
"""


def test_a_program_that_is_told_to_end_takes_its_server_with_it(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_VERSION"}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as program:
        assert program.stdout is not None
        server = psutil.Process(int(program.stdout.readline()))
        program.send_signal(signal.SIGTERM)
        assert program.wait(60) == 128 + signal.SIGTERM
        assert not server.is_running()
