"""Environments are built once from what the code names, behind the walls, and shared."""

from __future__ import annotations

import os
import subprocess
import time
import zipfile
from pathlib import Path

import pytest

from easel.errors import InvalidInput
from easel.run.environments import Environments, NoEnvironment, PackageIndex
from easel.run.requirements import PackageList, read_requirements
from easel.run.sandbox import probe


def wheel(folder: Path, name: str, version: str, body: str) -> None:
    """A wheel made by hand: no index and no build tools are needed."""
    folder.mkdir(exist_ok=True)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{name}/__init__.py", body)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/entry_points.txt", f"[console_scripts]\ngreet = {name}:main\n")
        archive.writestr(f"{info}/RECORD", "")


@pytest.fixture
def environments(tmp_path: Path) -> Environments:
    wheel(tmp_path / "wheels", "greeting", "1.0", "def main():\n    print('hello from 1.0')\n")
    (tmp_path / "home" / "run").mkdir(parents=True)
    index = PackageIndex(wheels=tmp_path / "wheels")
    return Environments(tmp_path / "home" / "run" / "environments", probe(), index)


def run(folder: Path, *argv: str) -> str:
    done = subprocess.run(
        [str(folder / "bin" / argv[0]), *argv[1:]], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_an_environment_is_built_once_and_holds_what_was_asked_for(environments: Environments) -> None:
    built = environments.get("astro", PackageList(("greeting==1.0",)))
    assert built.locked == ("greeting==1.0",)
    assert run(built.folder, "greet") == "hello from 1.0"
    assert run(built.folder, "python", "-c", "import easel; easel.log_metric('loss', 1.0)").startswith(
        "[EASEL"
    )
    again = environments.get("astro", PackageList(("greeting==1.0",)))
    assert (again.folder, again.seconds) == (built.folder, 0.0)
    assert environments.key("bio", PackageList(("greeting==1.0",))) != built.key


def test_what_cannot_be_had_says_what_the_installer_said(environments: Environments) -> None:
    with pytest.raises(NoEnvironment, match="nonsense") as caught:
        environments.get("astro", PackageList(("nonsense==9",)))
    assert caught.value.log
    assert not any(path.suffix == ".growing" for path in environments.folder.iterdir())


def test_what_was_not_used_for_long_goes_unless_a_job_uses_it(environments: Environments) -> None:
    built = environments.get("astro", PackageList(("greeting==1.0",)))
    long_ago = time.time() - 40 * 86400
    os.utime(built.folder, (long_ago, long_ago))
    with environments.in_use(built.key):
        environments.clean()
        assert built.folder.is_dir()
    environments.clean()
    assert not built.folder.exists()


def test_requirements_are_read_with_what_they_include(tmp_path: Path) -> None:
    (tmp_path / "base.txt").write_text("numpy==2.1  # arrays\n")
    (tmp_path / "requirements.txt").write_text("-r base.txt\n\nscipy>=1.13 ; python_version > '3.8'\n")
    wanted = read_requirements(tmp_path, "requirements.txt")
    assert wanted.lines == ("numpy==2.1", "scipy>=1.13 ; python_version > '3.8'")
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "a"\ndependencies = ["numpy>=2"]\n')
    (tmp_path / "uv.lock").write_text(
        'version = 1\n[[package]]\nname = "numpy"\nversion = "2.1.0"\nsource = { registry = "https://x" }\n'
        '[[package]]\nname = "a"\nversion = "0.1"\nsource = { virtual = "." }\n'
    )
    assert read_requirements(tmp_path, "uv.lock") == PackageList(("numpy>=2",), ("numpy==2.1.0",))


@pytest.mark.parametrize(
    "line", ["-e .", "./mine", "--index-url https://x", "a @ file:///etc", "-r ../x.txt"]
)
def test_what_reaches_beyond_packages_by_name_is_refused(tmp_path: Path, line: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"{line}\n")
    with pytest.raises(InvalidInput):
        read_requirements(tmp_path, "requirements.txt")
