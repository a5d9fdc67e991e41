"""Kernels that are built once for a machine and lent to trials."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest
from tests.run.test_trial_walls import behind_walls

from easel.match.zoo import kernel_use
from easel.run import kernels
from easel.run.kernels import KernelBuilder, lend
from easel.run.trial_walls import can_wall_in

BUILD = [
    sys.executable,
    "-c",
    "import os; p = os.environ['TRITON_CACHE_DIR'] + '/abc'; os.makedirs(p); open(p + '/code', 'w').write('x')",
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


def test_a_trial_is_told_where_no_kernels_are_kept(tmp_path: Path) -> None:
    environment: dict[str, str] = {}
    lend(tmp_path, tmp_path / "own", environment)
    assert environment == {
        "TRITON_CACHE_DIR": str(tmp_path / "own"),
        kernel_use.KERNELS: kernel_use.NONE_KEPT,
    }


def test_what_was_built_is_found_in_a_trials_own_folder(tmp_path: Path) -> None:
    built(tmp_path)
    environment = {kernel_use.KERNELS: kernel_use.NONE_KEPT}
    lend(tmp_path, tmp_path / "own", environment)
    lend(tmp_path, tmp_path / "own", environment)  # a process that is kept does several trials
    assert environment == {"TRITON_CACHE_DIR": str(tmp_path / "own")}
    assert (tmp_path / "own" / "abc" / "code").read_text() == "x"


@pytest.mark.skipif(not can_wall_in(), reason="this kernel cannot wall in trials")
def test_no_trial_can_change_what_is_lent_to_others(tmp_path: Path) -> None:
    home, own = tmp_path / "home", tmp_path / "own"
    home.mkdir()
    built(home)
    lend(home, own, {})

    def work() -> dict[str, str]:
        found = {}
        for name, act in {
            "read": lambda: (own / "abc" / "code").read_text(),
            "changed": lambda: (own / "abc" / "code").write_text("mine"),
            "added": lambda: (own / "abc" / "new").write_text("mine"),
            "exchanged": lambda: (kernels.folder(home) / "ready").unlink(),
            "own": lambda: (own / "new").write_text("x"),
        }.items():
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


def test_what_was_not_built_to_its_end_is_lent_to_nobody(tmp_path: Path) -> None:
    built(tmp_path, command=["sh", "-c", "mkdir -p $TRITON_CACHE_DIR; exit 3"])
    assert not (kernels.folder(tmp_path) / "ready").exists()
    environment: dict[str, str] = {}
    lend(tmp_path, tmp_path / "own", environment)
    assert environment[kernel_use.KERNELS] == kernel_use.NONE_KEPT


def test_a_builder_ends_with_its_worker(tmp_path: Path) -> None:
    builder = KernelBuilder(tmp_path, ("H200",), tmp_path / "kernels.log")
    builder.start(["sleep", "1000"])
    assert builder._process is not None
    pid = builder._process.pid
    builder.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_machine_without_a_gpu_or_triton_builds_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert KernelBuilder(tmp_path, (), tmp_path / "log").name is None

    def missing(name: str) -> str:
        raise kernels.PackageNotFoundError(name)

    monkeypatch.setattr(kernels, "version", missing)
    builder = KernelBuilder(tmp_path, ("H200",), tmp_path / "log")
    builder.start(["false"])
    assert (builder.name, builder._process) == (None, None)
