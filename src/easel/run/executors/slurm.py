"""A Slurm cluster as an engine: each worker is a batch job, through `sbatch`, `squeue`, `sacct` and `scancel`.

The job's name is the placement's, so it is found again whoever asks; its comment says that it is ours.
"""

from __future__ import annotations

import math
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from easel.declare.resources import Room
from easel.errors import Misconfigured, TryLater
from easel.records.worker import Placement
from easel.run.depots import TOKEN
from easel.run.executors.engine import PlacementState, WorkerPlan, command

PATIENCE_S = 60.0
COMMENT = "easel"
_GIVEN = 'export EASEL_GPU_IDS="${CUDA_VISIBLE_DEVICES:-}"'
"""The cards that are ours, kept before anything else sets that variable."""
_WAITING = frozenset({"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD"})
_OVER = frozenset(
    {
        *(
            "COMPLETED",
            "CANCELLED",
            "FAILED",
            "TIMEOUT",
            "NODE_FAIL",
            "BOOT_FAIL",
            "DEADLINE",
            "OUT_OF_MEMORY",
        ),
        *("PREEMPTED", "REVOKED", "LAUNCH_FAILED", "RECONFIG_FAIL", "SPECIAL_EXIT"),
    }
)


@dataclass(frozen=True, slots=True)
class SlurmOptions:
    """What an admin says of the cluster. `folder` is seen by its nodes: scripts, logs and the token lie there."""

    folder: Path
    partition: str = ""
    account: str = ""
    qos: str = ""
    gres: str = "gpu"
    python: str = sys.executable
    more: tuple[str, ...] = ()


def options_of(placement: Placement, options: SlurmOptions) -> list[str]:
    """Resources in the words of sbatch: whole CPUs and GPUs, whole minutes, never less than was asked for.

    Never requeued: Slurm lets a requeued job wait for two minutes, and what it had is tried again by our own rule.
    """
    asked = placement.resources
    words = [
        f"--job-name={placement.name}",
        f"--comment={COMMENT}",
        f"--cpus-per-task={math.ceil(asked.vcpu)}",
        f"--mem={asked.memory_mb}M",
        "--no-requeue",
        "--open-mode=append",
        f"--output={options.folder}/{placement.name}.log",
        f"--nodes={placement.count}",
        f"--ntasks={placement.count}",
    ]
    for name in ("partition", "account", "qos"):
        value = getattr(options, name)
        words += [f"--{name}={value}"] if value else []
    if asked.gpus:
        words.append(f"--gres={options.gres}:{math.ceil(asked.gpus)}")
    if placement.time_s is not None:
        words.append(f"--time={max(1, math.ceil(placement.time_s / 60))}")
    return [*words, *options.more]


def script_of(placement: Placement, plan: WorkerPlan, options: SlurmOptions) -> str:
    """The batch script. A requeued job starts it again, in a fresh folder: what ran before is not there any more."""
    home = f"${{TMPDIR:-/tmp}}/{placement.name}-$SLURM_JOB_ID-${{SLURM_RESTART_COUNT:-0}}"
    lines = [
        "#!/bin/sh",
        f'export {TOKEN}="$(cat {shlex.quote(str(options.folder / "token"))})"',
        _GIVEN,
        *(f"export {name}={shlex.quote(value)}" for name, value in plan.variables.items()),
    ]
    if placement.count == 1:
        words = " ".join(
            shlex.quote(word) for word in command(placement, plan, 0, "HOME_HERE", options.python)
        )
        return "\n".join([*lines, f"exec {words.replace('HOME_HERE', f'{chr(34)}{home}{chr(34)}')}", ""])
    # Each member's machine has cards of its own, which srun names there.
    lines += ["exec srun --kill-on-bad-exit=0 sh -c '", _GIVEN]
    lines.append("case $SLURM_PROCID in")
    for member in range(placement.count):
        words = " ".join(command(placement, plan, member, f'"{home}-{member}"', options.python))
        lines.append(f"  {member}) exec {words} ;;")
    return "\n".join([*lines, "esac'", ""])


class SlurmEngine:
    name = "slurm"

    def __init__(self, options: SlurmOptions, variables: Mapping[str, str] | None = None) -> None:
        self._options, self._variables = options, dict(variables or {})

    def place(self, placement: Placement, plan: WorkerPlan) -> str:
        folder = self._options.folder
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write_private(folder / "token", plan.token)
        script = folder / f"{placement.name}.sh"
        script.write_text(script_of(placement, plan, self._options))
        words = options_of(placement, self._options)
        return self._run("sbatch", "--parsable", *words, str(script)).strip().partition(";")[0]

    def standings(self) -> Mapping[str, PlacementState]:
        found: dict[str, PlacementState] = {}
        # Only the long format, of fixed widths, tells how often a job was started.
        words = ["--noheader", "--states=all", "--Format=Name:80,State:30,Comment:40,RestartCnt:10"]
        for line in self._run("squeue", *words).splitlines():
            name, state, comment, restarts = (line[a:b].strip() for a, b in pairwise((0, 80, 110, 150, 160)))
            if comment != COMMENT or not name.startswith(f"{self.name}-") or state in _OVER:
                continue
            again = PlacementState.PUT_BACK if restarts not in ("", "0") else PlacementState.WAITING
            found[name] = again if state in _WAITING else PlacementState.UP
        return found

    def why(self, placement: Placement) -> str:
        """Returns the reason from the accounts, or where none are kept from the controller's memory."""
        if placement.handle is None:
            return "it never reached Slurm's queue"
        try:
            states = self._run(
                "sacct", "-X", "-n", "-P", "-o", "State,ExitCode", "-j", placement.handle
            ).split()
            if states:
                return f"Slurm job {placement.handle} ended {states[-1].replace('|', ', exit code ')}"
        except TryLater:
            pass
        try:
            about = self._run("scontrol", "-o", "show", "job", placement.handle)
        except TryLater:
            return f"Slurm has forgotten job {placement.handle}"
        facts = dict(word.partition("=")[::2] for word in about.split())
        return f"Slurm job {placement.handle} ended {facts.get('JobState')} ({facts.get('Reason')})"

    def cancel(self, placement: Placement) -> None:
        self._run("scancel", f"--name={placement.name}")
        (self._options.folder / f"{placement.name}.sh").unlink(missing_ok=True)

    def capacity(self) -> Sequence[Room]:
        """A node that is in several partitions is one machine."""
        words = ["--noheader", "-N", "--format=%N|%c|%m|%G|%T"]
        if self._options.partition:
            words.append(f"--partition={self._options.partition}")
        rooms: dict[str, Room] = {}
        for line in self._run("sinfo", *words).splitlines():
            node, cpus, memory_mb, gres, state = (part.strip() for part in line.split("|", 4))
            if not state.startswith(("down", "drain", "fail")):
                rooms[node] = Room(float(cpus), int(memory_mb), (1.0,) * _gpus(gres))
        return list(rooms.values())

    def close(self) -> None:
        pass

    def _run(self, program: str, *words: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603
                [program, *words],
                env={**os.environ, **self._variables},
                capture_output=True,
                text=True,
                timeout=PATIENCE_S,
                check=False,
            )
        except FileNotFoundError as error:
            raise Misconfigured(f"{program} is not installed here: Debian's slurm-client has it") from error
        except subprocess.TimeoutExpired as error:
            raise TryLater(f"{program} does not answer") from error
        if done.returncode != 0:
            raise TryLater(f"{program} failed: {done.stderr.strip()[-300:]}")
        return done.stdout


def _gpus(gres: str) -> int:
    """`gpu:a100:4(S:0-1),gpu:2` has six."""
    count = 0
    for part in gres.split(","):
        words = part.partition("(")[0].split(":")
        if words[0] == "gpu":
            count += int(words[-1]) if words[-1].isdigit() else 1
    return count


def _write_private(file: Path, text: str) -> None:
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fresh.touch(mode=0o600)
    fresh.write_text(text + "\n")
    fresh.replace(file)
