"""Kernels that are built once for a machine and lent to trials."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from tests.run.test_trial_walls import behind_walls

from easel.declare.resources import Room
from easel.match import build_kernels
from easel.match.zoo import kernel_use
from easel.run import kernels, worker
from easel.run.gpus import Card
from easel.run.kernels import KernelBuilder, lend
from easel.run.trial_walls import can_wall_in
from easel.run.worker_config import WorkerConfig
from easel.testing.clock import FakeClock

BUILD = [
    sys.executable,
    "-c",
    "import pathlib, sys; p = pathlib.Path(sys.argv[1]); c = p / 'cache' / 'abc'; c.mkdir(parents=True);"
    "(p / 'cache' / 'half').mkdir(); (c / 'code').write_text('x'); (p / 'whole').write_text('abc\\n');"
    "(p / 'networks').mkdir(); (p / 'networks' / 'convnet 0.25').touch()",
]


@pytest.fixture(autouse=True)
def with_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not installed beside a torch without CUDA; only its version is asked for."""
    monkeypatch.setattr(kernels, "version", lambda name: "3.6.0")


def built(home: Path, cards: tuple[str, ...] = ("H200",), command: list[str] = BUILD) -> KernelBuilder:
    builder = KernelBuilder(home, cards, home / "kernels.log")
    builder.start(command)
    deadline = time.monotonic() + 60
    while builder._process is not None and time.monotonic() < deadline:
        builder.look()
        time.sleep(0.02)
    return builder


def test_a_trial_of_a_machine_without_kernels_uses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment: dict[str, str] = {}
    lend(tmp_path, tmp_path / "own", environment)
    assert environment["TRITON_CACHE_DIR"] == str(tmp_path / "own")
    monkeypatch.setenv(kernel_use.KERNELS, environment[kernel_use.KERNELS])
    monkeypatch.setitem(kernel_use._said, "wanted", True)
    kernel_use.use_kept_kernels("convnet 0.25")
    assert not kernel_use.kernels_wanted()


def test_what_was_built_is_found_in_a_trials_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(tmp_path)
    environment: dict[str, str] = {}
    lend(tmp_path, tmp_path / "own", environment)
    lend(tmp_path, tmp_path / "own", environment)  # a process that is kept does several trials
    assert [one.name for one in (tmp_path / "own").iterdir()] == ["abc"]
    assert (tmp_path / "own" / "abc" / "code").read_text() == "x"
    monkeypatch.setenv(kernel_use.KERNELS, environment[kernel_use.KERNELS])
    monkeypatch.setitem(kernel_use._said, "wanted", False)
    found = []
    for network in (kernel_use.network_name("convnet", 0.25), kernel_use.network_name("resnet18", 1.0)):
        kernel_use.use_kept_kernels(network)
        found.append(kernel_use.kernels_wanted())
    assert found == [True, False]


@pytest.mark.skipif(not can_wall_in(), reason="this kernel cannot wall in trials")
def test_no_trial_can_change_what_is_lent_to_others(tmp_path: Path) -> None:
    home, own = tmp_path / "home", tmp_path / "own"
    home.mkdir()
    built(home)
    environment: dict[str, str] = {}
    lend(home, own, environment)

    def work() -> dict[str, str]:
        found = {}
        acts: dict[str, Callable[[], object]] = {
            "read": lambda: (own / "abc" / "code").read_text(),
            "changed": lambda: (own / "abc" / "code").write_text("mine"),
            "added": lambda: (own / "abc" / "new").write_text("mine"),
            "exchanged": lambda: (kernels.folder(home) / "ready").unlink(),
            "own": lambda: (own / "new").write_text("x"),
        }
        for name, act in acts.items():
            try:
                act()
                found[name] = "done"
            except OSError as error:
                found[name] = type(error).__name__
        return found

    refused = dict.fromkeys(("changed", "added", "exchanged"), "PermissionError")
    assert behind_walls(work, own, home, (kernels.folder(home),)) == {
        "read": "done",
        "own": "done",
        **refused,
    }


def test_nothing_is_built_twice_and_another_machine_builds_its_own(tmp_path: Path) -> None:
    built(tmp_path)
    kept = (kernels.folder(tmp_path) / "ready").resolve()
    assert built(tmp_path, command=["false"])._process is None
    assert (kernels.folder(tmp_path) / "ready").resolve() == kept
    built(tmp_path, cards=("A100",))
    assert (kernels.folder(tmp_path) / "ready").resolve() != kept
    assert not kept.exists()


def test_what_was_not_built_to_its_end_is_gone_on_with(tmp_path: Path) -> None:
    built(tmp_path, command=["sh", "-c", "mkdir -p $TRITON_CACHE_DIR; exit 3"])
    assert not (kernels.folder(tmp_path) / "ready" / "complete").exists()
    shutil.rmtree(kernels.folder(tmp_path) / "ready" / "cache")
    built(tmp_path)
    assert (kernels.folder(tmp_path) / "ready" / "complete").exists()


def test_a_builder_ends_with_its_worker(tmp_path: Path) -> None:
    builder = KernelBuilder(tmp_path, ("H200",), tmp_path / "kernels.log")
    builder.start(["sleep", "1000"])
    assert builder._process is not None
    pid = builder._process.pid
    builder.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_builder_and_lender_agree_on_the_names_of_what_is_kept() -> None:
    assert kernels.KERNELS == kernel_use.KERNELS
    assert (kernels._WHOLE, kernels._NETWORKS) == (build_kernels.WHOLE, build_kernels.NETWORKS)
    assert build_kernels.__name__ == kernels.BUILDER


def test_a_machine_without_a_gpu_or_triton_builds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert KernelBuilder(tmp_path, (), tmp_path / "log").name is None

    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(kernels, "version", missing)
    builder = KernelBuilder(tmp_path, ("H200",), tmp_path / "log")
    builder.start(["false"])
    assert (builder.name, builder._process) == (None, None)


def test_a_worker_with_a_gpu_has_kernels_built_and_one_that_a_cluster_placed_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[Path] = []
    monkeypatch.setattr(worker, "cards_here", lambda: (Card("0", 0, "H200"),))
    monkeypatch.setattr(KernelBuilder, "start", lambda self: started.append(self._folder))
    for name, parent in (("lasting", None), ("placed", os.getpid())):
        clock = FakeClock()
        home = tmp_path / name
        capacity = Room(2, 4096, (1.0,))
        config = WorkerConfig(home, name, capacity, str(tmp_path / "blobs"), parent=parent)
        one = worker.Worker(config, clock)
        one._live()
        clock.advance(worker.WARM_AFTER_S + 1)
        one._live()
        one._live()
        one._stop_everything()
    assert started == [tmp_path / "lasting" / "kernels"]
