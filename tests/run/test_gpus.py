"""What is read of NVIDIA's driver: whole cards, slices, use, and a driver that is away. The driver is a script here."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from tests.run.executors.test_local import local

from easel.declare.job import Command, Trial
from easel.declare.resources import Resources, share_with
from easel.errors import InvalidInput
from easel.match.device import own_share
from easel.records.attempt import EndReason
from easel.records.job import GPU_BUSY, GPU_IDLE
from easel.run import gpus
from easel.run.entries import MetricPoints
from easel.run.gpus import Card, CardUse, GpuWatch, given_by_cluster, notes_of, parse_cards, parse_use
from easel.run.idle import IdleWatch
from easel.run.launch import card_memory_mb, cards, gpu_use, nodes, share_variables
from easel.run.order import Order
from easel.run.trial import is_gpu_fault
from easel.testing.executor import Listener

LISTING = """\
GPU 0: NVIDIA H200 (UUID: GPU-eb2397f9-add4)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-5c89852c)
  MIG 3g.20gb     Device  0: (UUID: MIG-7a3b)
  MIG 1g.5gb      Device  1: (UUID: MIG-9c1d)
"""
USE = "0, 37, 1024, 143771\n1, [N/A], 5, 40960\n"


def test_cards_and_slices_are_counted() -> None:
    found = parse_cards(LISTING, parse_use(USE))
    assert found == (
        Card("0", 0, "NVIDIA H200", 143771),
        Card("MIG-7a3b", 1, "NVIDIA A100-SXM4-40GB MIG 3g.20gb", 20480, slice=True),
        Card("MIG-9c1d", 1, "NVIDIA A100-SXM4-40GB MIG 1g.5gb", 5120, slice=True),
    )
    assert parse_cards("No devices found\n") == ()
    assert parse_use("garbage\n") == {}


def test_a_driver_that_lost_a_card_says_so() -> None:
    card = Card("0", 0, "NVIDIA H200", 143771)
    assert notes_of([card], {0: CardUse(0.37, 1024, 143771)}) == {
        "gpu": "NVIDIA H200",
        "gpu_mb": "143771",
        "gpu 0": "37% busy, 1024 of 143771 MB",
    }
    assert "is gone" in notes_of([card], {})["gpu fault"]
    assert "does not answer" in notes_of([card], None)["gpu fault"]
    assert notes_of([], None) == {}


@pytest.mark.parametrize(
    ("environment", "seen", "given"),
    [
        ({"SLURM_JOB_GPUS": "2"}, 4, []),  # no worker of a cluster
        ({"EASEL_GPU_IDS": "1,3", "SLURM_JOB_GPUS": "0"}, 4, ["1", "3"]),
        ({"EASEL_GPU_IDS": ""}, 4, []),
        ({"EASEL_GPU_IDS": "", "SLURM_JOB_GPUS": "2"}, 4, ["2"]),
        ({"EASEL_GPU_IDS": "", "SLURM_STEP_GPUS": "3", "SLURM_JOB_GPUS": "2,3"}, 4, ["3"]),
        ({"EASEL_GPU_IDS": "", "SLURM_JOB_GPUS": "0,4-6"}, 8, ["0", "4", "5", "6"]),
        ({"EASEL_GPU_IDS": "", "SLURM_JOB_GPUS": "6,7"}, 2, []),  # control groups hide the others
        ({"EASEL_GPU_IDS": "", "SLURM_JOB_GPUS": "1"}, 0, ["1"]),  # nobody counts them
        ({"EASEL_GPU_IDS": "", "SLURM_JOB_GPUS": "gpu:tesla-1"}, 4, []),
    ],
)
def test_a_clusters_worker_knows_its_cards(environment: dict[str, str], seen: int, given: list[str]) -> None:
    assert given_by_cluster(environment, seen) == given


def test_jobs_of_two_workers_on_one_machine_without_control_groups_have_different_cards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "easel.run.launch.cards_here", lambda: tuple(Card(str(k), k, "A100") for k in range(4))
    )
    one, two = ({"EASEL_GPU_IDS": "", "SLURM_JOB_GPUS": number} for number in ("0", "1"))
    assert cards([0], one) == ["0"]
    assert cards([0], two) == ["1"]


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An `nvidia-smi` that says what its two files hold."""
    program = tmp_path / "nvidia-smi"
    program.write_text(
        f"#!/bin/sh\n[ -e {tmp_path}/away ] && exit 9\n"
        f'case "$1" in -L) cat {tmp_path}/list;; *) cat {tmp_path}/use;; esac\n'
    )
    program.chmod(0o755)
    (tmp_path / "list").write_text(LISTING)
    (tmp_path / "use").write_text(USE)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("EASEL_GPU_IDS", raising=False)
    gpus.cards_here.cache_clear()
    yield tmp_path
    gpus.cards_here.cache_clear()


def test_slices_are_handed_to_jobs_by_their_own_names(driver: Path) -> None:
    assert cards([0, 2]) == ["0", "MIG-9c1d"]
    assert nodes([2])[0] == Path("/dev/nvidia1")
    assert card_memory_mb([0, 1]) == 20480
    assert card_memory_mb([7]) == 0


TWO_CARDS = "GPU 0: NVIDIA H200 (UUID: GPU-eb23)\nGPU 1: NVIDIA H200 (UUID: GPU-5c89)\n"


@pytest.fixture
def two_cards(driver: Path) -> Path:
    """The second card is busy, the first is not; asked for some cards (`--id`), the driver tells of those alone."""
    (driver / "list").write_text(TWO_CARDS)
    program = driver / "nvidia-smi"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -L ] && exec cat {driver}/list\n'
        'for word; do case "$word" in --id=*) ids="${word#--id=}";; esac; done\n'
        'for id in $(echo "${ids:-0,1}" | tr , " "); do case "$id" in 1|GPU-5c89) echo 97;; *) echo 0;; esac; done\n'
    )
    gpus.cards_here.cache_clear()
    return driver


def test_a_session_is_used_while_its_own_card_is_busy_not_another_one(two_cards: Path) -> None:
    assert [gpu_use([0]), gpu_use([1]), gpu_use([0, 1]), gpu_use([])] == [0.0, 0.97, 0.97, 0.0]


def test_a_clusters_worker_asks_for_the_cards_that_it_was_given(
    two_cards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EASEL_GPU_IDS", "1")
    assert gpu_use([0]) == 0.97
    monkeypatch.setenv("EASEL_GPU_IDS", "GPU-5c89,0")
    assert [gpu_use([0]), gpu_use([1])] == [0.97, 0.0]


def test_an_idle_session_beside_a_busy_card_of_somebody_else_ends(two_cards: Path) -> None:
    watch = IdleWatch(60.0, 0.0)
    words = [watch.look(now, 0.0, 0.0, partial(gpu_use, [0])) for now in range(0, 70, 6)]
    assert any(word is not None and word.over for word in words)


def _looked(watch: GpuWatch, now: float) -> dict[str, str]:
    watch.look(now)
    until = time.monotonic() + 5
    while time.monotonic() < until:
        found = watch.look(now)
        if found or watch._asked is None:
            return found
        time.sleep(0.01)
    raise AssertionError("nvidia-smi did not end")


def test_a_worker_tells_what_changed(driver: Path) -> None:
    watch = GpuWatch(gpus.cards_here()[:1])
    assert _looked(watch, 0.0)["gpu 0"].startswith("37% busy")
    assert watch.look(1.0) == {}
    (driver / "use").write_text("0, 90, 1024, 143771\n")
    assert _looked(watch, 100.0) == {"gpu 0": "90% busy, 1024 of 143771 MB"}
    (driver / "away").touch()
    assert set(_looked(watch, 200.0)) == {"gpu fault"}
    (driver / "away").unlink()
    assert _looked(watch, 300.0) == {"gpu fault": ""}
    assert GpuWatch(()).look(0.0) == {}


def test_a_share_is_told_to_libraries_and_to_our_own_loop() -> None:
    told = share_variables(0.25, 40960)
    assert told["EASEL_GPU_SHARE"] == "0.25"
    assert told["EASEL_GPU_MEMORY_MB"] == "10240"
    assert told["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] == "0=10240M"
    assert own_share(told) == 0.25
    assert share_variables(1.0, 40960) == share_variables(0.0, 0) == {}
    assert "EASEL_GPU_MEMORY_MB" not in share_variables(0.5, 0)
    assert (
        own_share({}) == own_share({"EASEL_GPU_SHARE": "much"}) == own_share({"EASEL_GPU_SHARE": "0"}) == 1.0
    )


def test_memory_becomes_a_share_of_the_smallest_gpu_that_has_it() -> None:
    assert share_with(10_240, [40_960, 81_920]) == 0.25
    assert share_with(60_000, [40_960, 81_920]) == 0.74
    assert share_with(40_960, [40_960]) == 1.0
    with pytest.raises(InvalidInput, match="the largest has 80 GB"):
        share_with(100_000, [40_960, 81_920])
    with pytest.raises(InvalidInput, match="no device of the pool says"):
        share_with(100, [0])


def test_a_gpu_that_fails_is_no_fault_of_the_trial() -> None:
    assert is_gpu_fault(RuntimeError("CUDA error: unspecified launch failure"))
    assert is_gpu_fault(RuntimeError("CUDA driver initialization failed, you might not have a CUDA gpu."))
    assert not is_gpu_fault(RuntimeError("CUDA error: device-side assert triggered"))
    assert not is_gpu_fault(RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"))
    assert not is_gpu_fault(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_gpu_fault(ValueError("CUDA error"))


def _series(heard: Listener, key: str) -> dict[str, float | str]:
    """The last value of each series of an attempt."""
    points = [body.points for body in heard.bodies(key) if isinstance(body, MetricPoints)]
    return {name: value for some in points for name, _, value in some}


def _told_of_idle_gpus(heard: Listener) -> bool:
    return GPU_IDLE in _series(heard, "j.1")


def test_a_job_tells_how_idle_its_gpu_is_while_it_runs(driver: Path, tmp_path: Path) -> None:
    (driver / "list").write_text("GPU 0: NVIDIA H200 (UUID: GPU-eb23)\n")
    (driver / "use").write_text("0\n")
    for make in local(tmp_path / "home", sandbox=False, unsandboxed=True, gpus=1):
        heard = Listener(make("a"))
        command = Command(("sleep", "600"))
        heard.executor.start(Order("j", 1, "prj", command, resources=Resources(0.5, 512, gpus=1.0)))
        heard.until(partial(_told_of_idle_gpus, heard))
        heard.executor.kill("j.1", force=True)
        heard.over("j.1")
    assert _series(heard, "j.1")[GPU_BUSY] == 0.0
    assert float(_series(heard, "j.1")[GPU_IDLE]) >= 1.0


def test_a_trial_whose_gpu_falls_off_the_bus_ends_as_lost_with_its_device(tmp_path: Path) -> None:
    """So it is tried again elsewhere; one that fails by itself is told apart."""
    for make in local(tmp_path / "home", sandbox=False):
        heard = Listener(make("a"))
        for job, says in (("off", "CUDA error: GPU is lost"), ("own", "mat1 and mat2 cannot be multiplied")):
            run = Trial("easel.testing.trials:raise_error", {"says": says})
            heard.executor.start(Order(job, 1, "prj", run, resources=Resources(0.5, 512)))
        off, own = heard.failed("off.1"), heard.failed("own.1")
    assert (off.end, own.end) == (EndReason.DEVICE_LOST, EndReason.RAISED)
    assert not off.final
