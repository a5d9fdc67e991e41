"""What a command is started with: its variables, its walls, its interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import easel
from easel.declare.job import Command, EntryPoint
from easel.declare.resources import Resources
from easel.run.interpreters import ForbiddenInterpreter, interpreters
from easel.run.launch import Folders, prepare, variables
from easel.run.order import Order
from easel.run.sandbox import Walls, wrap


def order(**more: object) -> Order:
    return Order("job_1", 2, "prj", Command(("true",)), **more)  # type: ignore[arg-type]


def test_a_job_sees_its_own_gpus_and_no_other() -> None:
    assert variables(order(), [], "/job", "/bin")["CUDA_VISIBLE_DEVICES"] == ""
    given = variables(order(resources=Resources(1.0, 64, 2.0)), [1, 3], "/job", "/bin")
    assert given["CUDA_VISIBLE_DEVICES"] == "1,3"


def test_numerical_libraries_start_as_many_threads_as_the_job_has_cores() -> None:
    assert variables(order(resources=Resources(2.5, 64)), [], "/job", "/bin")["OMP_NUM_THREADS"] == "2"
    assert variables(order(resources=Resources(0.5, 64)), [], "/job", "/bin")["OMP_NUM_THREADS"] == "1"


def test_nothing_of_the_platforms_environment_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EASEL_DATABASE_URL", "postgresql://secret")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert "secret" not in str(variables(order(), [], "/job", "/bin"))


def test_secrets_stand_in_no_argument(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "a")
    folders.make(order())
    launch = prepare(order(secrets={"KEY": "hidden"}), folders, [0], "/usr/bin/bwrap", tmp_path)
    assert launch.environment["KEY"] == "hidden"
    assert "hidden" not in " ".join(wrap("bwrap", launch.walls, launch.argv))


def test_mlflow_in_a_job_without_walls_trusts_the_authority_that_its_worker_trusts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folders, tracked = Folders(tmp_path / "a"), order(tracking="https://easel.lab/mlflow/astro")
    monkeypatch.setenv("EASEL_CA_FILE", "/lab/authority.pem")
    bare = prepare(tracked, folders, [], None, tmp_path).environment
    assert bare["MLFLOW_TRACKING_URI"] == "https://easel.lab/mlflow/astro"
    assert bare["MLFLOW_TRACKING_SERVER_CERT_PATH"] == "/lab/authority.pem"
    walled = prepare(tracked, folders, [], "/usr/bin/bwrap", tmp_path).environment
    assert walled["MLFLOW_TRACKING_URI"] == "http://127.0.0.1:3129/mlflow/astro"
    assert "MLFLOW_TRACKING_SERVER_CERT_PATH" not in walled


def test_the_machines_own_network_is_shared_only_where_an_admin_says_so(tmp_path: Path) -> None:
    walls = Walls(tmp_path, tmp_path, None)
    assert "--share-net" not in wrap("bwrap", walls, ["true"])
    assert "--share-net" not in wrap("bwrap", Walls(tmp_path, tmp_path, None, network=True), ["true"])
    assert "--share-net" in wrap("bwrap", Walls(tmp_path, tmp_path, None, host_network=True), ["true"])


def test_the_platforms_folder_is_hidden_even_inside_an_interpreters(tmp_path: Path) -> None:
    home = tmp_path / "venv" / "easel-home"
    home.mkdir(parents=True)
    walls = Walls(tmp_path, tmp_path, None, interpreters=(tmp_path / "venv",), hidden=(home,))
    args = wrap("bwrap", walls, ["true"])
    assert args[args.index(str(home)) - 1] == "--tmpfs"


def test_the_folder_that_easel_was_started_in_is_not_shown_to_jobs(tmp_path: Path) -> None:
    (tmp_path / "probe.py").write_text(
        "from easel.run.interpreters import interpreters\nprint(*interpreters(None)[0], sep=chr(10))\n"
    )
    (tmp_path / "packages").mkdir()
    source = Path(easel.__file__).parents[1]
    for named, shown in (("packages", {"packages"}), (f"packages:{tmp_path}", {"packages", ""})):
        environment = {**os.environ, "PYTHONPATH": f"{source}:{named}"}
        found = subprocess.run(
            [sys.executable, "-m", "probe"],
            cwd=tmp_path,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.splitlines()
        assert {name for name in ("", "packages") if str(tmp_path / name) in found} == shown


def test_a_virtual_environment_brings_the_interpreter_that_it_was_made_from(tmp_path: Path) -> None:
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "venv" / "pyvenv.cfg").write_text("home = /opt/python/bin\nversion = 3.11\n")
    for given in (tmp_path / "venv", tmp_path / "venv" / "bin" / "python"):
        folders, programs = interpreters(str(given), [tmp_path / "venv"])
        assert set(folders) == {tmp_path / "venv", Path("/opt/python")}
        assert programs == tmp_path / "venv" / "bin"
    own, programs = interpreters(None)
    assert Path(sys.prefix) in own
    assert programs == Path(sys.prefix) / "bin"


@pytest.mark.parametrize(
    "spelling", ["/usr/../{home}/x/y", "/{home}/run/x/y", "{home}/venv/../run/x", "{link}/x/y", "/etc/x/y"]
)
def test_only_interpreters_of_the_admins_list_may_be_named_under_any_spelling(
    tmp_path: Path, spelling: str
) -> None:
    home, link = tmp_path / "home", tmp_path / "link"
    (home / "run" / "x").mkdir(parents=True)
    link.symlink_to(home)
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    with pytest.raises(ForbiddenInterpreter, match="ask an admin"):
        interpreters(spelling.format(home=home, link=link), [tmp_path / "venv"])
    spelled = f"{tmp_path}/home/..//venv/./bin/python"
    assert interpreters(spelled, [tmp_path / "venv"])[1] == tmp_path / "venv" / "bin"


def test_an_entry_point_is_called_by_the_interpreter_with_its_arguments_in_a_file(tmp_path: Path) -> None:
    wanted = Order("job_1", 1, "prj", EntryPoint("train:main", {"rate": 0.1}))
    folders = Folders(tmp_path / "a")
    folders.make(wanted)
    launch = prepare(wanted, folders, [], None, tmp_path)
    assert list(launch.argv)[:3] == ["python", ".easel-entry.py", ".easel-call.json"]
    assert '"rate": 0.1' in (folders.work / ".easel-call.json").read_text()
