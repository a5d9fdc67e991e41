"""From an order to the command that runs: variables, walls, working folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from easel.declare.job import Command, FreeRun, Notebook
from easel.errors import InvalidInput
from easel.run import tracking
from easel.run.egress import VARIABLES
from easel.run.environments import BuiltEnvironment
from easel.run.gpus import ask, cards_here, given_by_cluster
from easel.run.images import Image
from easel.run.interpreters import interpreters
from easel.run.order import Order
from easel.run.sandbox import CHECKPOINT, INSIDE, Walls
from easel.run.tree import MARK
from easel.sdk.plain_http import CA_FILE

_THREADS = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)
_ENTRY = Path(__file__).with_name("entry.py")
_NOTEBOOK = Path(__file__).with_name("notebook_runner.py")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Folders:
    """One attempt's private place. `work` is the command's working folder; journal and log lie outside."""

    root: Path

    @property
    def journal(self) -> Path:
        return self.root.with_name(f"{self.root.name}.journal")

    @property
    def log(self) -> Path:
        return self.root.with_name(f"{self.root.name}.log")

    @property
    def ballast(self) -> Path:
        return self.journal.with_suffix(".ballast")

    @property
    def give_way(self) -> Path:
        """A file that appears when a trial is asked to stop at its next checkpoint."""
        return self.root / "give-way"

    @property
    def leave(self) -> Path:
        """A file that appears when one of several trials in a process was killed: the others go on."""
        return self.root / "leave"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def input(self) -> Path:
        return self.root / "input"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    def make(self, order: Order) -> None:
        for folder in (self.work, self.tmp, self.input, self.work / "input", self.work / order.output_folder):
            folder.mkdir(parents=True, exist_ok=True)

    def remove(self) -> None:
        """Everything, and the journal last: by it a worker finds what one that was killed here has left.

        The folder is often not there: most trials need none, and making folders is slow.
        """
        if self.root.exists():
            shutil.rmtree(self.root, ignore_errors=True)
        entry = self.root.with_name(f"{self.root.name}.exec")
        for file in (self.log, self.ballast, entry, self.journal):
            file.unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Launch:
    """What `sandbox.start` is given."""

    argv: Sequence[str]
    environment: dict[str, str]
    walls: Walls


def prepare(
    order: Order,
    folders: Folders,
    gpus: Sequence[int],
    bwrap: str | None,
    home: Path,
    image: Image | None = None,
    allowed: Sequence[Path] = (),
    built: BuiltEnvironment | None = None,
) -> Launch:
    """`home` is the platform's own folder, which a job must not see; `allowed` are interpreters that it may name.

    With an image the job sees nothing of this machine's programs; with a `built` environment only that one's packages.
    """
    shown: tuple[Path, ...]
    programs: Path | None
    if image is not None:
        shown, programs = (), None
    elif built is not None:
        shown, programs = (() if built.base is None else (built.base,)), built.folder / "bin"
    else:
        shown, programs = interpreters(order.python, allowed)
    inside = INSIDE if bwrap else str(folders.work)
    environment = variables(order, gpus, inside, str(programs) if programs else None)
    environment = {**environment, **_lasting(image, order)} if image else environment
    if order.network and not order.host_network and bwrap:
        environment = {**VARIABLES, **environment}
    environment |= _tracking(order, bwrap is not None)
    environment |= {} if bwrap else {"TMPDIR": str(folders.tmp), "HOME": str(folders.tmp)}
    if built is not None:
        environment["CONDA_PREFIX" if built.base is None else "VIRTUAL_ENV"] = str(built.folder)
    kept = checkpoint_folder(home, order.job_id) if order.preemptible or order.slice else None
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        environment["EASEL_CHECKPOINT"] = f"{INSIDE}/{CHECKPOINT}" if bwrap else str(kept)
    argv = _argv(order, folders, "python" if image is None else "python3")
    shared = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
    walls = Walls(
        work=folders.work,
        tmp=folders.tmp,
        input=folders.input,
        interpreters=shown,
        environments=() if built is None else (built.folder,),
        hidden=(home,),
        devices=(*nodes(gpus), *map(Path, shared)) if gpus else (),
        network=order.network,
        host_network=order.host_network,
        tracking=order.tracking,
        root=image.root if image else None,
        shared_memory_mb=order.resources.memory_mb,
        checkpoint=kept,
    )
    return Launch(argv, environment, walls)


def checkpoint_folder(home: Path, job_id: str) -> Path:
    """Where a job keeps what its next attempt goes on from; removed when the job is over."""
    return home / "run" / "checkpoints" / job_id


def _tracking(order: Order, walled: bool) -> dict[str, str]:
    """Returns the variables with which `mlflow.start_run()` attaches to the job's own run."""
    if order.tracking is None:
        return {}
    apart = walled and not order.host_network
    address = tracking.inside(order.tracking) if apart else order.tracking
    told = {"MLFLOW_TRACKING_URI": address, "MLFLOW_RUN_ID": order.job_id}
    authority = os.environ.get(CA_FILE)
    if authority and not walled:  # behind walls the file is not to be seen
        told["MLFLOW_TRACKING_SERVER_CERT_PATH"] = authority
    return told


def _lasting(image: Image, order: Order) -> dict[str, str]:
    """What the image sets (its PATH above all), unless the job itself says otherwise."""
    asked = {*order.variables, *order.secrets}
    return {
        name: value
        for name, value in image.variables.items()
        if name not in asked and not name.startswith("EASEL_")
    }


def cards(gpus: Sequence[int], environment: Mapping[str, str] = os.environ) -> list[str]:
    """The machine's names for our GPUs: on a cluster only some of its cards are ours (EASEL_GPU_IDS, or Slurm's own
    words), and a slice of a card has a name of its own."""
    if not gpus:
        return []
    here = cards_here()
    ours = given_by_cluster(environment, len({card.index for card in here}))
    if not environment.get("EASEL_GPU_IDS") and any(card.slice for card in here):
        ours = [card.ident for card in here]
    return [ours[gpu] if gpu < len(ours) else str(gpu) for gpu in gpus]


def gpus_busy(gpus: Sequence[int]) -> list[float]:
    """How busy each of our GPUs is, from 0 to 1; nothing of one of which the driver does not say it.

    The driver knows no use of a slice: there its whole card counts, once, where that is known.
    """
    if not gpus:
        return []
    index = {card.ident: str(card.index) for card in cards_here()}
    ours = ",".join(dict.fromkeys(index.get(name, name) for name in cards(gpus)))
    answer = ask("--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", f"--id={ours}")
    return [int(word) / 100 for word in (answer or "").split() if word.isdigit()]


def gpu_use(gpus: Sequence[int]) -> float:
    """How busy the busiest of our GPUs is; 0 where there is none, or its driver does not say."""
    return max(gpus_busy(gpus), default=0.0)


def nodes(gpus: Sequence[int]) -> tuple[Path, ...]:
    """The files in /dev that a job needs to reach its GPUs; for a slice those of its card, and what opens slices."""
    index = {card.ident: card.index for card in cards_here() if card.slice}
    names = cards(gpus)
    found = [Path(f"/dev/nvidia{index.get(name, name)}") for name in names]
    if any(name in index for name in names):
        found += sorted(Path("/dev/nvidia-caps").glob("nvidia-cap*"))
    return tuple(dict.fromkeys(found))


def share_variables(share: float, memory_mb: int) -> dict[str, str]:
    """What tells libraries that only a part of a GPU is ours: JAX and MPS obey, Easel's own trials too; torch does
    where the program says `torch.cuda.set_per_process_memory_fraction(float(os.environ["EASEL_GPU_SHARE"]))`."""
    if not 0.0 < share < 1.0:
        return {}
    found = {"EASEL_GPU_SHARE": f"{share:g}", "XLA_PYTHON_CLIENT_MEM_FRACTION": f"{0.95 * share:.3f}"}
    if memory_mb:
        limit = int(share * memory_mb)
        found |= {"EASEL_GPU_MEMORY_MB": str(limit), "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={limit}M"}
    return {**found, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": f"{max(1, round(100 * share))}"}


def card_memory_mb(gpus: Sequence[int]) -> int:
    """The memory of the smallest of these cards; 0 where nobody says."""
    known = cards_here()
    return min((known[gpu].memory_mb for gpu in gpus if gpu < len(known)), default=0)


def variables(order: Order, gpus: Sequence[int], inside: str, programs: str | None) -> dict[str, str]:
    """All of the job's environment: nothing of the server's own leaks in."""
    threads = str(order.resources.threads)
    return {
        "PATH": f"{programs}:{_PATH}" if programs else _PATH,
        "HOME": "/tmp",  # noqa: S108
        "TMPDIR": "/tmp",  # noqa: S108
        "LANG": "C.UTF-8",
        "USER": "job",
        **dict.fromkeys(_THREADS, threads),
        **order.variables,
        **order.secrets,
        "CUDA_VISIBLE_DEVICES": ",".join(cards(gpus)),
        **share_variables(order.resources.gpus, card_memory_mb(gpus) if gpus else 0),
        "EASEL_JOB_ID": order.job_id,
        "EASEL_INPUT": f"{inside}/input",
        "EASEL_OUTPUT": f"{inside}/{order.output_folder}",
        **({} if order.port is None else session_variables(order.job_id, order.port)),
        "EASEL_VCPU": str(order.resources.vcpu),
        "EASEL_MEMORY_MB": str(order.resources.memory_mb),
        MARK: order.key,
    }


def session_variables(job_id: str, port: int) -> dict[str, str]:
    """Where an interactive session's program listens, and under which path people see it."""
    return {"EASEL_PORT": str(port), "EASEL_BASE_URL": f"/sessions/{job_id}/"}


def _argv(order: Order, folders: Folders, python: str) -> Sequence[str]:
    if isinstance(order.run, Command):
        return order.run.argv
    if isinstance(order.run, FreeRun):
        raise InvalidInput("a free run runs elsewhere: no device starts it")
    if isinstance(order.run, Notebook):
        call = {"path": order.run.path, "parameters": dict(order.run.parameters), "first": order.run.first}
        (folders.work / ".easel-call.json").write_text(json.dumps(call))
        (folders.work / ".easel-notebook.py").write_text(_NOTEBOOK.read_text())
        return (python, ".easel-notebook.py", ".easel-call.json")
    (folders.work / ".easel-call.json").write_text(
        json.dumps({"target": order.run.target, "arguments": dict(order.run.arguments)})
    )
    # Its own text, so that the interpreter need not have Easel.
    (folders.work / ".easel-entry.py").write_text(_ENTRY.read_text())
    return (python, ".easel-entry.py", ".easel-call.json")
