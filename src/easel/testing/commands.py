"""`easel` as people type it, for tests: a process of its own whose output is captured."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from easel.sdk.client import Client
from easel.testing import server_fork
from easel.testing.server_fork import Streams, may_fork

PATIENCE_S = 120.0


def run_easel(
    *arguments: str, environment: Mapping[str, str], stdin: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `easel ARGUMENTS`; in a test it is forked from a process that has imported the commands."""
    command = [sys.executable, "-m", "easel.cli.main", *arguments]
    if not may_fork(environment):
        return subprocess.run(
            command,
            env=environment,
            input=stdin,
            cwd=cwd,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    with tempfile.TemporaryDirectory(prefix="easel-command-") as folder:
        streams = Streams(Path(folder, "out"), Path(folder, "err"), Path(folder, "in"))
        streams.input.write_text(stdin, encoding="utf-8")
        process = server_fork.start(arguments, environment, streams, cwd)
        try:
            code = process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.terminate()
            process.wait()
            raise
        told = [path.read_text(encoding="utf-8") for path in (streams.out, streams.err)]
    return subprocess.CompletedProcess(command, code, *told)


def run_as(
    client: Client, *arguments: str, stdin: str = "", cwd: Path | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs `easel ARGUMENTS` as the person and in the project of `client`."""
    return run_easel(*arguments, environment=environment_of(client, **variables), stdin=stdin, cwd=cwd)


def environment_of(client: Client, **variables: str) -> dict[str, str]:
    """Returns the environment in which commands act as `client` does."""
    token = client.connection.http.headers["Authorization"].removeprefix("Bearer ")
    plain = {name: value for name, value in os.environ.items() if not name.startswith("EASEL_")}
    known = {"EASEL_SERVER": client.server, "EASEL_TOKEN": token, "EASEL_PROJECT": client.project or ""}
    return plain | known | variables
