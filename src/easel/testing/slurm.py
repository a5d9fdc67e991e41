"""A real Slurm of one node for tests: munged, slurmctld and slurmd in a folder of their own."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from easel.testing.ending import end_orderly_when_told
from easel.testing.ports import free_port

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "sinfo")
URGENT = "urgent"
"""A partition whose jobs push those of `main` off the node: back into the queue, where they may, or out of it."""
_ANY_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")
"""They stand for GPUs, in this order."""
_SBIN = f"/usr/sbin:/usr/bin:{os.environ.get('PATH', '')}"


def missing() -> list[str]:
    """What is not installed, or that we are not root."""
    found = [name for name in PROGRAMS if shutil.which(name, path=_SBIN) is None]
    return found if os.geteuid() == 0 else [*found, "root"]


class Slurm:
    def __init__(self, folder: Path, memory_mb: int, gpus: int = 0) -> None:
        self.folder, self._memory_mb, self._gpus = folder, memory_mb, gpus
        self._ports = [free_port(), free_port()]
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def variables(self) -> dict[str, str]:
        """What a client of this Slurm needs."""
        return {"SLURM_CONF": str(self.folder / "slurm.conf"), "PATH": _SBIN}

    def configure(self) -> None:
        for name in ("state", "spool", "munge"):
            (self.folder / name).mkdir(mode=0o755)
        (self.folder / "munge" / "key").write_bytes(secrets.token_bytes(128))
        (self.folder / "munge" / "key").chmod(0o400)
        host = socket.gethostname().partition(".")[0]
        lines = {
            "ClusterName": "easel",
            "SlurmctldHost": f"{host}(127.0.0.1)",
            "SlurmctldPort": self._ports[0],
            "SlurmdPort": self._ports[1],
            "SlurmUser": "root",
            "AuthType": "auth/munge",
            "AuthInfo": f"socket={self.folder}/munge/socket",
            "CredType": "cred/munge",
            "StateSaveLocation": self.folder / "state",
            "SlurmdSpoolDir": self.folder / "spool",
            "SlurmctldPidFile": self.folder / "slurmctld.pid",
            "SlurmdPidFile": self.folder / "slurmd.pid",
            "SlurmctldLogFile": self.folder / "slurmctld.log",
            "SlurmdLogFile": self.folder / "slurmd.log",
            "ProctrackType": "proctrack/linuxproc",
            "TaskPlugin": "task/none",
            "SwitchType": "switch/none",
            "MpiDefault": "none",
            "ReturnToService": 2,
            "SchedulerType": "sched/backfill",
            "SchedulerParameters": "sched_interval=1,batch_sched_delay=0,bf_interval=1",
            "SelectType": "select/cons_tres",
            "SelectTypeParameters": "CR_CPU_Memory",
            "JobRequeue": 1,
            "PreemptType": "preempt/partition_prio",
            "PreemptMode": "REQUEUE",
            "JobCompType": "jobcomp/filetxt",
            "JobCompLoc": self.folder / "completed.txt",
            "AccountingStorageType": "accounting_storage/none",
            "JobAcctGatherType": "jobacct_gather/none",
            "KillWait": 5,
            "MinJobAge": 300,
            "SlurmdParameters": "config_overrides",
            "NodeName": f"{host} NodeAddr=127.0.0.1 CPUs=2 RealMemory={self._memory_mb} State=UNKNOWN",
        }
        if self._gpus:
            lines = {"GresTypes": "gpu", **lines, "NodeName": f"{lines['NodeName']} Gres=gpu:{self._gpus}"}
            self._say_what_the_gpus_are(host)
        text = "".join(f"{name}={value}\n" for name, value in lines.items())
        common = f"Nodes={host} MaxTime=INFINITE State=UP"
        text += f"PartitionName=main {common} Default=YES PriorityTier=1\n"
        text += f"PartitionName={URGENT} {common} PriorityTier=2\n"
        (self.folder / "slurm.conf").write_text(text)

    def _say_what_the_gpus_are(self, host: str) -> None:
        """Slurm asks of a GPU no more than to be a device, and jobs without cgroups are kept from none."""
        assert self._gpus <= len(_ANY_DEVICES)
        told = "".join(
            f"NodeName={host} Name=gpu File={place} Flags=nvidia_gpu_env\n"
            for place in _ANY_DEVICES[: self._gpus]
        )
        (self.folder / "gres.conf").write_text(f"AutoDetect=off\n{told}")

    def start(self) -> None:
        munge = self.folder / "munge"
        words = ["--foreground", "--force", f"--key-file={munge}/key", f"--socket={munge}/socket"]
        words += [f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed"]
        self._launch("munged", *words)
        _until((munge / "socket").exists)
        self.start_controller()
        self._launch("slurmd", "-D", "-f", str(self.folder / "slurm.conf"))
        _until(lambda: "idle" in self.run("sinfo", "--noheader", "--format=%T"))

    def start_controller(self) -> None:
        self._launch("slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        _until(lambda: "UP" in self.run("scontrol", "ping"))

    def stop_controller(self) -> None:
        """Stops the controller as a service is: it writes down what it knows, which a kill would lose."""
        self._daemons["slurmctld"].terminate()
        self._daemons["slurmctld"].wait(60)

    def _launch(self, name: str, *words: str) -> None:
        program = shutil.which(name, path=_SBIN)
        assert program is not None
        with (self.folder / f"{name}.out").open("ab") as log:
            self._daemons[name] = subprocess.Popen(
                [program, *words],
                env={**os.environ, **self.variables},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def push_out(self, number: str) -> None:
        """Let somebody more urgent have the whole node for a moment, and wait until job `number` is off it."""
        self.run("sbatch", f"--partition={URGENT}", "--exclusive", "--wrap=true", "--output=/dev/null")
        _until(lambda: self.run("squeue", "--noheader", f"--jobs={number}", "--states=RUNNING").strip() == "")

    def run(self, program: str, *words: str) -> str:
        done = subprocess.run(
            [program, *words],
            env={**os.environ, **self.variables},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return done.stdout + done.stderr

    def told(self) -> str:
        """The last words of every daemon."""
        logs = sorted([*self.folder.glob("*.log"), *self.folder.glob("*.out")])
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-600:]}" for log in logs)

    def stop(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.run("scancel", "--user=root")
            _until(lambda: not self.run("squeue", "--noheader").strip())
        for daemon in reversed(self._daemons.values()):
            daemon.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(20)
            daemon.kill()
            daemon.wait()


def _until(done: Callable[[], bool], seconds: float = 60.0) -> None:
    limit = time.monotonic() + seconds
    while not done():
        if time.monotonic() > limit:
            raise RuntimeError("Slurm did not come up")
        time.sleep(0.1)


@contextlib.contextmanager
def running(memory_mb: int = 2048, gpus: int = 0) -> Iterator[Slurm]:
    """A node of 2 CPUs. Daemons that do not find each other are started anew: they are not what is tested."""
    end_orderly_when_told()
    made = _started(memory_mb, gpus, tries=3)
    try:
        yield made
    finally:
        made.stop()
        shutil.rmtree(made.folder, ignore_errors=True)


def _started(memory_mb: int, gpus: int, tries: int) -> Slurm:
    folder = Path(tempfile.mkdtemp(prefix="easel-slurm-"))
    folder.chmod(0o755)
    made = Slurm(folder, memory_mb, gpus)
    made.configure()
    try:
        made.start()
    except RuntimeError as error:
        told = made.told()
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)
        if tries == 1:
            raise RuntimeError(f"{error}\n{told}") from error
        return _started(memory_mb, gpus, tries - 1)
    return made


def main() -> None:
    """Say where its configuration is, and keep it up until standard input ends."""
    lacking = missing()
    if lacking:
        sys.exit(f"no Slurm can be started here: {', '.join(lacking)} is missing")
    with running(memory_mb=8192) as made:
        sys.stdout.write(f"{made.variables['SLURM_CONF']}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
