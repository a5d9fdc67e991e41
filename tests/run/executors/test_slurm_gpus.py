"""GPUs of a Slurm cluster: asked for, counted and handed out as on our own workers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.declare.resources import Resources
from easel.records.worker import Placement
from easel.run.executors.engine import WorkerPlan, command
from easel.run.executors.slurm import SlurmEngine, SlurmOptions, options_of, script_of
from easel.testing import slurm as slurm_testing
from easel.testing.executor import Listener, clean, sh
from easel.testing.fleet import engine_server
from easel.testing.slurm import Slurm


def placed(gpus: float) -> Placement:
    return Placement("slurm-1", Resources(1.0, 512, gpus))


@pytest.mark.parametrize(("gpus", "asked"), [(0.0, None), (2.0, "gpu:2"), (0.25, "gpu:1")])
def test_whole_gpus_are_asked_for_and_a_share_of_one_is_rounded_up(gpus: float, asked: str | None) -> None:
    words = options_of(placed(gpus), SlurmOptions(Path("/shared")))
    assert [word for word in words if word.startswith("--gres")] == ([f"--gres={asked}"] if asked else [])


def test_the_kind_of_gpu_is_the_admins_word() -> None:
    assert "--gres=gpu:a100:2" in options_of(placed(2.0), SlurmOptions(Path("/shared"), gres="gpu:a100"))


def test_the_worker_offers_the_gpus_that_slurm_gave_it() -> None:
    plan = WorkerPlan("http://127.0.0.1:1", "secret", "slurm", 5.0)
    words = command(placed(0.25), plan, 0, "/tmp/home", "python")
    assert words[words.index("--gpus") + 1] == "1"
    script = script_of(placed(0.25), plan, SlurmOptions(Path("/shared")))
    assert 'export EASEL_GPU_IDS="${CUDA_VISIBLE_DEVICES:-}"' in script


def test_each_machine_of_a_gang_offers_its_own_cards(tmp_path: Path) -> None:
    """`srun` names each machine's cards to what it starts there; the first machine's are not everybody's."""
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "srun").write_text(
        '#!/bin/sh\nshift\nfor k in 0 1; do SLURM_PROCID=$k CUDA_VISIBLE_DEVICES=$((k + 2)) "$@"; done\n'
    )
    (tmp_path / "python").write_text('#!/bin/sh\necho "$EASEL_GPU_IDS"\n')
    for program in ("srun", "python"):
        (tmp_path / program).chmod(0o755)
    gang = Placement("slurm-1", Resources(1.0, 512, 1), count=2)
    options = SlurmOptions(tmp_path, python=str(tmp_path / "python"))
    script = script_of(gang, WorkerPlan("http://127.0.0.1:1", "secret", "slurm", 5.0), options)
    found = subprocess.run(
        ["/bin/sh", "-c", script],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "7", "CUDA_VISIBLE_DEVICES": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == ["2", "3"]


@pytest.mark.parametrize(
    ("gres", "gpus"),
    [
        ("(null)", 0),
        ("gpu:2", 2),
        ("gpu:a100:4(S:0-1),gpu:2", 6),
        ("gpu:1g.5gb:7,shard:28", 7),
        ("gpu", 1),
        ("fpga:3", 0),
    ],
)
def test_the_gpus_of_a_node_are_counted(tmp_path: Path, gres: str, gpus: int) -> None:
    program = tmp_path / "sinfo"
    program.write_text(f"#!/bin/sh\necho 'one|4|8000|{gres}|idle'\necho 'two|4|8000|gpu:8|down*'\n")
    program.chmod(0o755)
    engine = SlurmEngine(SlurmOptions(tmp_path), {"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert [room.gpus for room in engine.capacity()] == [(1.0,) * gpus]


@pytest.fixture
def with_gpus() -> Iterator[Slurm]:
    """A cluster whose node says that it has two GPUs; any two devices stand for them."""
    lacking = slurm_testing.missing()
    if lacking:
        pytest.skip(f"no Slurm here ({', '.join(lacking)}): scripts/test installs it where it may")
    with slurm_testing.running(gpus=2) as made:
        yield made


def test_slurm_hands_out_whole_gpus(with_gpus: Slurm, tmp_path: Path) -> None:
    """Two jobs have a GPU each; a third, though it wants a share only, waits until one is free."""
    engine = SlurmEngine(SlurmOptions(tmp_path / "slurm"), with_gpus.variables)
    assert [room.gpus for room in engine.capacity()] == [(1.0, 1.0)]
    with engine_server(tmp_path, engine, warm_s=1.0) as server:
        heard = Listener(server.executor())
        script = "echo $CUDA_VISIBLE_DEVICES; exec sleep 1000"
        for name in ("one", "two"):
            heard.executor.start(sh(name, script, resources=Resources(0.5, 128, 1)))
        for name in ("one", "two"):
            heard.reached(f"{name}.1", "running")
            heard.until(lambda name=name: b"\n" in heard.log(f"{name}.1"))  # type: ignore[misc]
        assert {heard.log("one.1"), heard.log("two.1")} == {b"0\n", b"1\n"}
        told = "echo $CUDA_VISIBLE_DEVICES has $EASEL_GPU_SHARE"
        heard.executor.start(sh("three", told, resources=Resources(0.5, 128, 0.5)))
        freed = heard.log("one.1").strip()
        heard.executor.kill("one.1")
        heard.done("three.1")
        assert heard.log("three.1") == freed + b" has 0.5\n"
        clean(heard.executor)
