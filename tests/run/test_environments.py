"""Environments are built once from what the code names, behind the walls, and shared."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

from easel.errors import InvalidInput
from easel.run.conda import CondaFile
from easel.run.environments import Environments, NoEnvironment, PackageIndex
from easel.run.python_versions import NoPython, Python, find_python
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
    assert isinstance(wanted, PackageList)
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


# Another Python. ------------------------------------------------------------------------------------------------


def others() -> list[Python]:
    """Other Pythons that this machine's own installers left, as an admin would list them."""
    own = ".".join(map(str, sys.version_info[:2]))
    return [
        find_python(version, [prefix])
        for version in ("3.11", "3.12", "3.13", "3.14")
        for prefix in sorted(Path(sys.base_prefix).parent.glob(f"{version}.*"))
        if version != own
    ]


def test_the_version_that_runs_easel_is_taken_for_its_own() -> None:
    for asked in (f"{sys.version_info[0]}.{sys.version_info[1]}", platform.python_version()):
        assert find_python(asked).program == Path(sys.executable)


def test_an_interpreter_of_the_admins_list_is_found_by_its_version(tmp_path: Path) -> None:
    """A program that answers as Python 3.99 would."""
    program = tmp_path / "bin" / "python3.99"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 3.99.7; echo /opt/python3.99\n")
    program.chmod(0o755)
    expected = Python(program, "3.99.7", Path("/opt/python3.99"))
    assert find_python("3.99", [tmp_path]) == expected
    assert find_python("3.99.7", [program]) == expected
    with pytest.raises(NoPython, match=r"no Python 3\.98, only .*3\.99\.7"):
        find_python("3.98", [tmp_path])
    with pytest.raises(NoPython, match=r"uv python install 3\.9"):
        find_python("3.9", [tmp_path])  # 3.99 is not 3.9


@pytest.mark.skipif(not others(), reason="this machine has no second Python beside the first")
def test_an_environment_is_made_of_the_python_that_is_asked_for(environments: Environments) -> None:
    python = others()[0]
    wanted = PackageList(("greeting==1.0",))
    built = environments.get("astro", wanted, python=python)
    assert built.base == python.base
    assert (
        run(built.folder, "python", "-c", "import platform; print(platform.python_version())")
        == python.version
    )
    assert run(built.folder, "greet") == "hello from 1.0"
    assert run(built.folder, "python", "-c", "import easel; easel.log_metric('loss', 1.0)").startswith(
        "[EASEL"
    )
    again = environments.get("astro", wanted, python=python)
    assert (again.folder, again.base, again.seconds) == (built.folder, python.base, 0.0)
    assert environments.key("astro", wanted) != built.key


# environment.yml. -----------------------------------------------------------------------------------------------

YML = "channels: [conda-forge]\ndependencies:\n  - python=3.11\n  - greeting=1.0\n"
MICROMAMBA = f"""#!{sys.executable}
# Stands for micromamba alone: takes its options, leaves what it leaves.
import json, pathlib, subprocess, sys
_, verb, *rest = sys.argv
options = dict(zip(rest[1::2], rest[2::2]))
prefix, text = pathlib.Path(options["--prefix"]), pathlib.Path(options["--file"]).read_text()
if "nonsense" in text:
    sys.exit("error    libmamba Could not solve for environment specs: nothing provides nonsense")
assert (verb, rest[0]) == ("create", "--yes")
subprocess.run([sys.executable, "-m", "venv", "--copies", "--without-pip", str(prefix)], check=True)
(prefix / "conda-meta").mkdir()
(prefix / "conda-meta" / "greeting-1.0-0.json").write_text(json.dumps({{"name": "greeting", "version": "1.0"}}))
"""


@pytest.fixture
def micromamba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "programs" / "micromamba"
    program.parent.mkdir()
    program.write_text(MICROMAMBA)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")


@pytest.mark.usefixtures("micromamba")
def test_an_environment_yml_is_built_where_micromamba_is(environments: Environments) -> None:
    built = environments.get("astro", CondaFile(YML))
    assert built.base is None
    assert "greeting==1.0" in built.locked
    assert run(built.folder, "python", "-c", "import easel; easel.log_metric('loss', 1.0)").startswith(
        "[EASEL"
    )
    assert environments.get("astro", CondaFile(YML)).seconds == 0.0
    assert environments.key("astro", CondaFile(YML + "# other")) != built.key


@pytest.mark.usefixtures("micromamba")
def test_an_environment_yml_that_cannot_be_solved_says_why_and_leaves_nothing(
    environments: Environments,
) -> None:
    with pytest.raises(NoEnvironment, match="nothing provides nonsense"):
        environments.get("astro", CondaFile(YML + "  - nonsense\n"))
    assert not [path for path in environments.folder.iterdir() if path.is_dir()]


@pytest.mark.skipif(shutil.which("conda") is not None, reason="this machine has conda")
def test_without_conda_an_environment_yml_is_refused_with_what_to_do(environments: Environments) -> None:
    with pytest.raises(NoEnvironment, match=r"neither micromamba nor mamba nor conda.*requirements\.txt"):
        environments.get("astro", CondaFile(YML))


def test_an_environment_yml_is_read_from_the_code(tmp_path: Path) -> None:
    (tmp_path / "environment.yml").write_text(YML)
    assert read_requirements(tmp_path, "environment.yml") == CondaFile(YML)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dependencies: [numpy]", "does not name python"),
        ("dependencies: [python, {pip: ['-e .']}]", "goes along without being installed"),
        ("name: x", "no list of dependencies"),
        ("a: [", "is not YAML"),
    ],
)
def test_an_environment_yml_that_makes_no_sense_here_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "environment.yml").write_text(text)
    with pytest.raises(InvalidInput, match=said):
        read_requirements(tmp_path, "environment.yml")


# What goes wrong while packages are installed. ------------------------------------------------------------------

BACKEND = """
import json, os, pathlib, zipfile
def build_wheel(folder, config_settings=None, metadata_directory=None):
    found = {}
    for name, path in json.loads(pathlib.Path("targets.json").read_text()).items():
        try:
            found[name] = pathlib.Path(path).read_text() if name == "read" else pathlib.Path(path).write_text("mine")
        except OSError as error:
            found[name] = type(error).__name__
    with zipfile.ZipFile(os.path.join(folder, "curious-1.0-py3-none-any.whl"), "w") as archive:
        archive.writestr("curious.py", "found = " + repr(found))
        archive.writestr("curious-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: curious\\nVersion: 1.0\\n")
        about = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        archive.writestr("curious-1.0.dist-info/WHEEL", about)
        archive.writestr("curious-1.0.dist-info/RECORD", "")
    return "curious-1.0-py3-none-any.whl"
"""


@pytest.mark.skipif(probe() is None, reason="this machine has no sandbox")
def test_a_package_that_runs_code_at_its_installation_stays_behind_the_walls(
    tmp_path: Path, environments: Environments
) -> None:
    home = environments.folder.parent.parent
    (home / "secret").write_text("the server's own")
    source = tmp_path / "curious-1.0"
    source.mkdir()
    (source / "backend.py").write_text(BACKEND)
    (source / "targets.json").write_text(
        json.dumps({"read": str(home / "secret"), "write": str(home / "left")})
    )
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "curious"\nversion = "1.0"\n'
    )
    with tarfile.open(tmp_path / "wheels" / "curious-1.0.tar.gz", "w:gz") as archive:
        (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: curious\nVersion: 1.0\n")
        archive.add(source, "curious-1.0")
    built = environments.get("astro", PackageList(("curious==1.0",)))
    said = run(built.folder, "python", "-c", "import curious; print(curious.found)")
    assert "the server's own" not in said
    assert "Error" in said
    assert not (home / "left").exists()


def test_an_index_that_is_away_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "home" / "run").mkdir(parents=True)
    away = PackageIndex("http://127.0.0.1:9/simple")
    environments = Environments(tmp_path / "home" / "run" / "environments", probe(), away)
    with pytest.raises(NoEnvironment, match="cannot be built") as caught:
        environments.get("astro", PackageList(("greeting==1.0",)))
    assert any("greeting" in line or "127.0.0.1" in line for line in caught.value.log)
    assert not [path for path in environments.folder.iterdir() if path.is_dir()]
