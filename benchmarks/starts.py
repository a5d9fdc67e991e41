"""How soon what was asked for is there: a command's first line of output, and an interactive session.

    python -m benchmarks.starts [--repeats 15] [--sessions 5]

A real server with its own worker on this machine, whose device is free. `call` is `client.jobs.submit(code=folder)` until
the first line of `client.jobs.get(…).logs(follow=True)`, in a process that has started; `command` is `easel run` from the
start of the interpreter to the first line that it prints of the job. The same folder with and without a
`requirements.txt` whose environment the device has built: the difference is what the environment adds. They take turns. A
session is `easel lab`, from the start of the interpreter until JupyterLab answers through Easel's address; the first one
is told apart, for the machine has not read JupyterLab then.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from easel.sdk.client import Client
from easel.testing.server import running

SAID = "first line"
SMALL = {"vcpu": 0.5, "memory_mb": 256}
WARM_MS, FIRST_LINE_MS, SESSION_MS = 100, 400, 10_000


def make_wheel(folder: Path) -> None:
    """Writes a wheel by hand, so that building the environment needs no index."""
    folder.mkdir()
    info = "greeting-1.0.dist-info"
    with zipfile.ZipFile(folder / "greeting-1.0-py3-none-any.whl", "w") as archive:
        archive.writestr("greeting/__init__.py", "")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def make_folder(folder: Path, requirements: str | None) -> Path:
    folder.mkdir()
    (folder / "train.py").write_text(f"print({SAID!r}, flush=True)\n")
    if requirements:
        (folder / "requirements.txt").write_text(requirements)
    return folder


def first_line_of_call(client: Client, folder: Path) -> float:
    """Returns the milliseconds from the call to the first line; waits for the job's end afterwards."""
    start = time.perf_counter()
    job = client.jobs.submit(["python", "train.py"], code=folder, resources=SMALL)
    for line in job.logs(follow=True):
        if line.text == SAID:
            break
    took = 1000 * (time.perf_counter() - start)
    job.wait()
    return took


def first_line_of_command(folder: Path, environment: Mapping[str, str]) -> float:
    """Returns the milliseconds from starting the interpreter to the first line that `easel run` prints of the job."""
    argv = [sys.executable, "-m", "easel.cli.main", "run", "--vcpu", "0.5", "--memory", "256"]
    start = time.perf_counter()
    process = subprocess.Popen(
        [*argv, "--", "python", "train.py"],
        cwd=folder,
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    said, took = [], 0.0
    for line in process.stdout:
        said.append(line)
        if SAID in line and not took:
            took = 1000 * (time.perf_counter() - start)
    if process.wait() or not took:
        raise RuntimeError("".join(said))
    return took


def session(client: Client, folder: Path, environment: Mapping[str, str]) -> float:
    """Returns the milliseconds until JupyterLab answers; the session is ended afterwards."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "easel.cli.main", "lab", "--vcpu", "0.5", "--memory", "1024"],
        cwd=folder,
        env=dict(environment),
        check=True,
        capture_output=True,
        text=True,
    )
    took = 1000 * (time.perf_counter() - start)
    job = done.stdout.strip().rstrip("/").rpartition("/")[2]
    client.jobs.get(job).kill("measured").wait(check=False)
    return took


def row(name: str, found: list[float], target: float | None = None) -> str:
    median, largest = statistics.median(found), max(found)
    wanted = "" if target is None else f"< {target:.0f}, {'met' if median < target else 'missed'}"
    return f"| {name} | {median:.0f} | {largest:.0f} | {wanted} |"


def measure(client: Client, place: Path, variables: Mapping[str, str], given: argparse.Namespace) -> None:
    plain = make_folder(place / "plain", None)
    known = make_folder(place / "known", "greeting==1.0\n")
    building = first_line_of_call(client, known)
    ways: dict[str, Callable[[], float]] = {
        "call, the device's own packages": lambda: first_line_of_call(client, plain),
        "call, a known environment": lambda: first_line_of_call(client, known),
        "command, the device's own packages": lambda: first_line_of_command(plain, variables),
        "command, a known environment": lambda: first_line_of_command(known, variables),
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for act in ways.values():
        act()
    for _ in range(given.repeats):
        for name, act in ways.items():
            found[name].append(act())
    print("| first line of output after | median ms | largest ms | target |\n|---|---:|---:|---|")
    print(row("call, the environment is built first", [building]))
    for name, times in found.items():
        print(row(name, times, FIRST_LINE_MS if "known" in name else None))
    both = (found["call, a known environment"], found["call, the device's own packages"])
    print(
        row("what a known environment adds to a call", [a - b for a, b in zip(*both, strict=True)], WARM_MS)
    )
    if given.sessions:
        opened = [session(client, plain, variables) for _ in range(given.sessions + 1)]
        print(row("session, the first one", opened[:1]))
        print(row("session, afterwards", opened[1:], SESSION_MS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--sessions", type=int, default=5, help="0: none")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        os.environ["XDG_CACHE_HOME"] = str(place / "cache")
        make_wheel(place / "wheels")
        (place / "wheels").chmod(0o755)
        place.chmod(0o755)  # the installer runs behind walls, as somebody else
        (place / "server").mkdir()
        with running(place / "server", package_wheels=str(place / "wheels")) as server:
            server.client().projects.create("astro")
            client = server.client(project="astro")
            variables = {
                **os.environ,
                "EASEL_SERVER": server.address,
                "EASEL_TOKEN": server.admin_token,
                "EASEL_PROJECT": "astro",
            }
            measure(client, place, variables, given)
            print(f"load average: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
