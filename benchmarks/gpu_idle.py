"""How soon the GPU of a session that nobody uses is free again, and whether a session that uses its GPU stays.

    python benchmarks/gpu_idle.py [--limits 60] [--leaves-mb 200] [--stand-in] [--json PATH]

For each limit `easel up` is started on an empty folder with that idle time for sessions that hold GPUs. Three sessions
of `easel lab` take all GPUs of the machine, one after another; behind each waits a job that wants one GPU:

- `idle`: `--command bash`, which nobody enters.
- `stubborn`: its program writes `--leaves-mb`, which are kept when it ends, and ignores that it is told to end.
- `used`: its program uses the GPU for one and a half limits, its processor at rest, holds GPU memory, and then sleeps.

Seconds are counted from the limit (the session's start, or its last use of the GPU, and the idle time) to the moment at
which the session is over, at which the device's list shows its GPUs free, and at which the job behind it printed its
first line. Asked for: at most 120 s. `in use` is how long the session was used, for which it must not be ended.

`--stand-in` needs no GPU: a script takes the place of NVIDIA's driver, and says that its card is busy when the program of
`used` would be. Where there is no bubblewrap, commands run without a sandbox.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from easel.run.gpus import ask, use_now
from easel.run.sandbox import probe
from easel.sdk.client import Client
from easel.sdk.jobs import JobHandle
from easel.testing.server import ServerProcess, running

SOURCE = Path(__file__).resolve().parent.parent / "src"
FREE_AFTER_S = 120.0
PATIENCE_S = 180.0
USED = "used until"
LOOK_S = 0.1
BUSY = """\
import sys, time
import torch
seconds = float(sys.argv[1])
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
done = torch.cuda.Event(blocking=True)
print("begun", time.time(), flush=True)
until = time.time() + seconds
while time.time() < until:
    for _ in range(300):
        a @ a
    done.record()
    done.synchronize()
print("used until", time.time(), flush=True)
time.sleep(1e6)
"""
"""It waits for its GPU asleep: only the GPU is busy."""
DRIVER = """\
#!/bin/sh
[ "$1" = -L ] && exec echo "GPU 0: Stand-in (UUID: GPU-0)"
case "$1" in --query-compute-apps=*) exit 0;; --query-gpu=utilization.gpu) exec cat {folder}/busy;; esac
echo "0, $(cat {folder}/busy), 0, 81920"
"""


@dataclass(frozen=True, slots=True)
class Freed:
    """What was seen of one session. Seconds are from its limit on; negative would be too early."""

    limit_s: float
    session: str
    in_use_s: float
    over_s: float
    listed_free_s: float
    next_began_s: float
    most_vcpu: float
    ended_as: str
    said: str
    gpu_mb_then: int


def lab(server: ServerProcess, folder: Path, command: str, gpus: int, memory_mb: int) -> str:
    """Starts a session as people do; returns its job."""
    words = ["--command", command, "--gpus", str(gpus), "--memory", str(memory_mb), "--no-code", "--detach"]
    variables = {"EASEL_SERVER": server.address, "EASEL_TOKEN": server.admin_token, "EASEL_PROJECT": "lab"}
    done = subprocess.run(
        [sys.executable, "-m", "easel.cli.main", "lab", *words],
        cwd=folder,
        env={**os.environ, **variables},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return done.stdout.strip().rstrip("/").rpartition("/")[2]


def moment(told: datetime | None) -> float:
    if told is None:
        raise RuntimeError("the job never came so far")
    return told.timestamp()


def line_of(job: JobHandle, begins: str) -> str | None:
    return next((line.text for line in job.logs() if line.text.startswith(begins)), None)


def watch(client: Client, job: JobHandle, behind: JobHandle, limit_s: float, name: str) -> Freed:
    """Waits until the session is over and the job behind it runs. A session says when it was last in use, if it was."""
    free = began = None
    memory = 0
    until = time.time() + 3 * limit_s + PATIENCE_S
    while free is None or began is None:
        if time.time() > until:
            raise RuntimeError(f"{name}: still held long after its limit: {job.refresh().about}")
        device = client.queues.devices()[0]
        about = job.refresh().about
        if free is None and about.over and device.gpus_held <= 1.0:
            free = time.time()  # what is held then, if anything, is held by the one behind it
        if line := line_of(behind, "began"):
            began = float(line.split()[1])
            memory = sum(card.used_mb for card in (use_now() or {}).values())
        time.sleep(LOOK_S)
    about = job.refresh().about
    used = line_of(job, USED)
    started = moment(about.started_at)
    last_used = started if used is None else float(used.split()[-1])
    over = last_used + limit_s
    behind.wait(60)
    loads = [point.value for point in job.series("system/vcpu") if point.value is not None]
    said = next((line.text for line in job.logs() if line.text.endswith("is saved and ends")), "")
    return Freed(
        limit_s,
        name,
        round(last_used - started, 1),
        round(moment(about.ended_at) - over, 2),
        round(free - over, 2),
        round(began - over, 2),
        max(loads[5:], default=0.0),  # after the start of its program
        about.state,
        said,
        memory,
    )


def commands(given: argparse.Namespace, limit_s: float) -> dict[str, tuple[str, int]]:
    """The command of each session, and its memory in MB."""
    using = (
        f"sleep {1.5 * limit_s:.0f}; echo {USED} $(date +%s.%N); sleep 1000000"
        if given.stand_in
        else f"exec python -c {shlex.quote(BUSY)} {1.5 * limit_s:.0f}"
    )
    left = f"head -c {given.leaves_mb}M /dev/urandom > left.bin; echo {USED} $(date +%s.%N); "
    stubborn = f"{left} trap '' TERM; while :; do sleep 1; done"
    return {
        "idle": ("bash", 512),
        "stubborn": (stubborn, 1024),
        "used": (using, 512 if given.stand_in else 16384),
    }


def measure(given: argparse.Namespace, folder: Path, limit_s: float) -> list[Freed]:
    """One server with this limit, and the sessions on it, one after another."""
    settings = {"session_idle_gpu_minutes": str(limit_s / 60)}
    if probe() is None:
        settings |= {"sandbox": "false", "unsandboxed": "I understand"}
    found = []
    with running(folder, **settings) as server:
        server.client().projects.create("lab")
        client = server.client(project="lab")
        while not (devices := client.queues.devices()):
            time.sleep(LOOK_S)
        gpus = int(devices[0].gpus)
        if not gpus:
            raise SystemExit(
                "SKIPPED: this machine has no GPU that NVIDIA's driver knows; --stand-in does without"
            )
        for name, (command, memory_mb) in commands(given, limit_s).items():
            if name not in given.sessions:
                continue
            job = client.jobs.get(lab(server, folder, command, gpus, memory_mb))
            behind = client.jobs.submit(
                "echo began $(date +%s.%N)", resources={"gpus": 1.0, "memory_mb": 512}
            )
            if given.stand_in and name == "used":
                pretend_use(given.driver, job)
            found.append(watch(client, job, behind, limit_s, name))
            print(row(found[-1]), flush=True)
    return found


def pretend_use(driver: Path, job: JobHandle) -> None:
    """The card is busy until the session's program says that it used it last."""
    (driver / "busy").write_text("97\n")
    while line_of(job, USED) is None and not job.refresh().about.over:
        time.sleep(LOOK_S)
    (driver / "busy").write_text("0\n")


def row(one: Freed) -> str:
    met = (
        "met"
        if max(one.over_s, one.listed_free_s, one.next_began_s) <= FREE_AFTER_S and one.over_s >= 0
        else "missed"
    )
    return (
        f"| {one.limit_s:.0f} | {one.session} | {one.in_use_s} | {one.over_s} | {one.listed_free_s} | {one.next_began_s} | "
        f"{one.most_vcpu:.2f} | {one.ended_as} | {one.gpu_mb_then} | {met} |"
    )


def put_driver(folder: Path) -> Path:
    """Lays a stand-in for `nvidia-smi` in front of all other programs."""
    folder.mkdir(parents=True)
    (folder / "busy").write_text("0\n")
    program = folder / "nvidia-smi"
    program.write_text(DRIVER.format(folder=folder))
    program.chmod(0o755)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"
    return folder


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    words.add_argument("--limits", type=float, nargs="+", default=[60.0], help="idle times in seconds")
    words.add_argument("--sessions", nargs="+", default=["idle", "stubborn", "used"])
    words.add_argument("--leaves-mb", type=int, default=200)
    words.add_argument("--stand-in", action="store_true", help="a script in place of NVIDIA's driver")
    words.add_argument("--json", type=Path)
    given = words.parse_args()
    found: list[Freed] = []
    with tempfile.TemporaryDirectory() as place:
        os.environ["XDG_CACHE_HOME"] = f"{place}/cache"
        os.environ["PYTHONPATH"] = os.pathsep.join([str(SOURCE), os.environ.get("PYTHONPATH", "")]).rstrip(
            os.pathsep
        )
        given.driver = put_driver(Path(place) / "driver") if given.stand_in else None
        cards = (ask("-L") or "").splitlines()
        print(f"{cards or 'no GPU'}; load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")
        print(
            "| limit s | session | in use s | over | listed free | next began | most vCPU | ended | GPU MB then | at most 120 s |"
        )
        print("|---:|---|---:|---:|---:|---:|---:|---|---:|---|", flush=True)
        for number, limit_s in enumerate(given.limits):
            home = Path(place) / f"server{number}"
            home.mkdir()
            found += measure(given, home, limit_s)
    for one in found:
        print(f"{one.limit_s:.0f} s, {one.session}: {one.said}")
    if given.json:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps([asdict(one) for one in found], indent=1))


if __name__ == "__main__":
    main()
