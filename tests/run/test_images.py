"""Jobs in container images: a tiny image, made here of this machine's shell, really run."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from easel.declare.job import Command, EntryPoint, Environment
from easel.records.job import JobState
from easel.run.images import Image, Images, NoImage
from easel.run.launch import Folders, prepare
from easel.run.order import Order
from easel.run.sandbox import probe
from easel.testing.engine import EngineUnderTest, running

needs_bwrap = pytest.mark.skipif(probe() is None, reason="bubblewrap does not work here")


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An exported image: a shell, `cat`, `ls`, their libraries, and a file that only the image has."""
    root = tmp_path_factory.mktemp("tiny")
    for program in ("sh", "cat", "ls"):
        found = shutil.which(program)
        assert found is not None
        listed = subprocess.run(["ldd", found], capture_output=True, text=True, check=True).stdout
        for file in (f"/bin/{program}", *re.findall(r"(/\S+) \(0x", listed)):
            target = root / file.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(found if file.startswith("/bin/") else file, target)
    (root / "etc").mkdir()
    (root / "etc" / "motd").write_text("inside the image\n")
    archive = tmp_path_factory.mktemp("archive") / "tiny.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(root, ".")
    return archive


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineUnderTest]:
    with running(tmp_path / "home") as made:
        yield made


SCRIPT = "cat /etc/motd; ls /etc /usr/bin/python3; echo made > $EASEL_OUTPUT/file; cat input/data/a.txt"


@needs_bwrap
def test_a_job_runs_in_an_image_from_the_shelf_and_sees_nothing_of_this_machine(
    engine: EngineUnderTest, tiny: Path
) -> None:
    shelf = engine.home / "images"
    shelf.mkdir()
    shutil.copy(tiny, shelf / "lab_tiny_1.tar")
    controller = engine.controller()
    given = engine.upload({"a.txt": b"from the lake\n"}, "given")
    jobs = [
        engine.submit("sh", "-c", SCRIPT, input=given, environment=Environment(image="lab/tiny:1"))
        for _ in range(2)
    ]
    for job, ended in zip(jobs, engine.finish(controller, *jobs), strict=True):
        assert ended.state is JobState.FINISHED, (ended.reason, engine.log(job))
        said = engine.log(job)
        assert "inside the image" in said
        assert "from the lake" in said
        assert "passwd" not in said
        assert any("/usr/bin/python3" in line and "No such file" in line for line in said)
    assert len([path for path in (engine.home / "run" / "images").iterdir() if path.is_dir()]) == 1


@needs_bwrap
def test_an_image_that_nobody_can_fetch_ends_the_job_with_the_remedy(engine: EngineUnderTest) -> None:
    controller = engine.controller()
    job = engine.submit("true", environment=Environment(image="--privileged"))
    (ended,) = engine.finish(controller, job)
    assert (ended.state, ended.reason) == (
        JobState.FAILED,
        "'--privileged' is no name of a container image",
    )


@pytest.mark.parametrize(
    "name", ["dir:/etc", "oci-archive:/root/x.tar", "docker-daemon:a", "a" * 300, "a b", "-v"]
)
def test_a_name_that_would_read_this_machines_files_is_none(tmp_path: Path, name: str) -> None:
    images = Images(tmp_path / "images", tmp_path / "unpacked", "bwrap", tools=("no-such-tool",))
    with pytest.raises(NoImage, match="no name of a container image"):
        images.get(name)


def test_without_a_tool_the_remedy_names_what_to_install_and_where_to_lay_it(tmp_path: Path) -> None:
    images = Images(tmp_path / "images", tmp_path / "unpacked", "bwrap", tools=("no-such-tool",))
    with pytest.raises(NoImage, match=r"apt install podman.*images/python_3\.12\.tar"):
        images.get("python:3.12")


@needs_bwrap
def test_a_tar_that_leads_out_of_its_folder_writes_nothing_there(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    shelf = tmp_path / "images"
    shelf.mkdir()
    with tarfile.open(shelf / "bad.tar", "w") as tar:
        link = tarfile.TarInfo("way")
        link.type, link.linkname = tarfile.SYMTYPE, str(outside)
        tar.addfile(link)
        for name in ("way/written", "../written", str(outside / "absolute")):
            tar.addfile(tarfile.TarInfo(name))
    bwrap = probe()
    assert bwrap is not None
    images = Images(shelf, tmp_path / "unpacked", bwrap)
    with suppress(NoImage):  # refused or unpacked: either way nothing may lie outside
        images.get("bad")
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "written").exists()


@needs_bwrap
@pytest.mark.skipif(shutil.which("podman") is None, reason="podman is not installed: apt install podman")
def test_podman_fetches_what_is_not_on_the_shelf_and_its_variables_hold(
    tmp_path: Path, tiny: Path, request: pytest.FixtureRequest
) -> None:
    """Its own storage, so that nothing is left in the machine's; no registry: the image is imported."""
    runroot = tempfile.mkdtemp(prefix="pm-")  # podman refuses one longer than 50 characters
    request.addfinalizer(lambda: shutil.rmtree(runroot, ignore_errors=True))
    store = ["--root", str(tmp_path / "store"), "--runroot", runroot, "--storage-driver=vfs"]
    wrapper = tmp_path / "podman"
    wrapper.write_text(f'#!/bin/sh\nexec podman {" ".join(store)} "$@"\n')
    wrapper.chmod(0o755)
    imported = ["import", "--change", "ENV GREETING=hello", str(tiny), "localhost/lab/tiny:2"]
    done = subprocess.run([str(wrapper), *imported], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"podman does not work here: {done.stderr[-300:]}")
    bwrap = probe()
    assert bwrap is not None
    images = Images(tmp_path / "images", tmp_path / "unpacked", bwrap, tools=(str(wrapper),))
    image = images.get("localhost/lab/tiny:2")
    assert (image.root / "etc" / "motd").read_text() == "inside the image\n"
    assert image.variables["GREETING"] == "hello"
    assert images.get("localhost/lab/tiny:2") == image
    with pytest.raises(NoImage, match="cannot fetch the image 'localhost/lab/none:1'"):
        images.get("localhost/lab/none:1")


def test_a_function_in_an_image_needs_only_its_python_and_the_jobs_variables_win(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "a")
    order = Order("job_1", 1, "prj", EntryPoint("m:f", {}), variables={"MODE": "job"}, image="x")
    folders.make(order)
    image = Image(tmp_path, {"MODE": "image", "PATH": "/opt/bin", "EASEL_JOB_ID": "forged"})
    launch = prepare(order, folders, [], "/usr/bin/bwrap", tmp_path / "home", image)
    assert list(launch.argv) == ["python3", ".easel-entry.py", ".easel-call.json"]
    assert (folders.work / ".easel-entry.py").is_file()
    assert (launch.environment["MODE"], launch.environment["PATH"]) == ("job", "/opt/bin")
    assert launch.environment["EASEL_JOB_ID"] == "job_1"
    plain = prepare(Order("job_1", 1, "prj", Command(("true",))), folders, [], "/usr/bin/bwrap", tmp_path)
    assert "/opt/bin" not in plain.environment["PATH"]
