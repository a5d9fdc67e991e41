"""Environments are built once from what the code names, behind the walls, and shared."""

from __future__ import annotations

import fcntl
import io
import json
import os
import platform
import shutil
import subprocess
import sys
import tarfile
import time
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from easel.errors import InvalidInput
from easel.run.conda import CondaFile
from easel.run.environments import Environments, lock_key
from easel.run.installing import NoEnvironment, PackageIndex, reason_of
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


def source_package(folder: Path, name: str, backend: str, files: Mapping[str, str] | None = None) -> None:
    """A source package whose build backend is the given text."""
    about = f'name = "{name}"\nversion = "1.0"\n'
    contents = {
        "backend.py": backend,
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        f"[project]\n{about}",
        "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        **(files or {}),
    }
    with tarfile.open(folder / f"{name}-1.0.tar.gz", "w:gz") as archive:
        for path, text in contents.items():
            member = tarfile.TarInfo(f"{name}-1.0/{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


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


def test_another_machine_builds_what_the_first_one_locked(environments: Environments, tmp_path: Path) -> None:
    wanted, told = PackageList(("greeting",)), list[str]()
    first = environments.get("astro", wanted, tell=told.append)
    assert first.locked == ("greeting==1.0",)
    assert "greeting" in "".join(told[1:])  # what the installer said
    wheel(tmp_path / "wheels", "greeting", "2.0", "def main():\n    print('hello from 2.0')\n")
    assert environments.get("astro", wanted, lock=first.locked).seconds == 0.0  # it is what was built
    (tmp_path / "other" / "run").mkdir(parents=True)
    elsewhere = Environments(
        tmp_path / "other" / "run" / "environments", environments.bwrap, environments.index
    )
    same = elsewhere.get("astro", wanted, lock=first.locked)
    assert (same.key, same.locked) == (first.key, first.locked)
    assert run(same.folder, "greet") == "hello from 1.0"
    newer = elsewhere.get("astro", wanted)
    assert newer.locked == ("greeting==2.0",)
    assert newer.key != first.key
    with pytest.raises(NoEnvironment, match="chosen anew after any change of the file"):
        elsewhere.get("astro", wanted, lock=("greeting==0.5",))


def test_what_requirements_are_locked_to_depends_on_the_python_and_not_on_the_machines_folders() -> None:
    asked = PackageList(("greeting",))
    here, patch = platform.python_version(), Python(Path("/opt/other/python"), "3.12.9", Path("/opt/other"))
    same = Python(Path("/elsewhere/python"), here, Path("/elsewhere"))
    assert lock_key(asked) == lock_key(asked, same)
    assert lock_key(asked) != lock_key(PackageList(("greeting", "other")))
    assert lock_key(asked, patch) != lock_key(asked, Python(patch.program, "3.13.1", patch.base))


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            (
                "WARNING: Retrying after connection broken by 'NameResolutionError(\"HTTPSConnection(host='pypi.org', "
                "port=443): Failed to resolve\")': /simple/six/",
                "ERROR: Could not find a version that satisfies the requirement six (from versions: none)",
                "ERROR: No matching distribution found for six",
            ),
            "the package index at pypi.org cannot be reached",
        ),
        (
            (
                "error: Failed to fetch: `https://wheels.example.org/six/`",
                "  Caused by: error sending request",
            ),
            "the package index cannot be reached",
        ),
        (
            (
                "WARNING: Retrying after connection broken by 'NewConnectionError'",
                "ERROR: Cannot install six==1.0 and six==2.0 because these have conflicting dependencies.",
            ),
            "ERROR: Cannot install six==1.0 and six==2.0 because these have conflicting dependencies.",
        ),
        (("thinking", "I give up"), "I give up"),
        ((), "it said nothing"),
    ],
)
def test_why_an_installer_failed_is_told_in_one_sentence(said: tuple[str, ...], reason: str) -> None:
    assert reason_of(said) == reason


def test_requirements_that_contradict_one_another_say_so(environments: Environments, tmp_path: Path) -> None:
    wheel(tmp_path / "wheels", "greeting", "2.0", "")
    with pytest.raises(
        NoEnvironment, match=r"(?i)greeting==1\.0.*greeting==2\.0|conflict|unsatisfiable|Double"
    ):
        environments.get("astro", PackageList(("greeting==1.0", "greeting==2.0")))


def test_what_was_not_used_for_long_goes_unless_a_job_uses_it(environments: Environments) -> None:
    built = environments.get("astro", PackageList(("greeting==1.0",)))
    long_ago = time.time() - 40 * 86400
    os.utime(built.folder, (long_ago, long_ago))
    with environments.in_use(built.key):
        environments.clean()
        assert built.folder.is_dir()
    environments.clean()
    assert not built.folder.exists()


def test_what_a_killed_agent_left_half_built_goes_and_what_another_builds_stays(
    environments: Environments,
) -> None:
    for name in ("halved", "halved.growing", "busy", "busy.growing"):
        (environments.folder / name).mkdir(parents=True)
    with (environments.folder / "busy.building").open("w") as building:
        fcntl.flock(building, fcntl.LOCK_EX)
        environments.clean()
    left = sorted(path.name for path in environments.folder.iterdir() if path.is_dir())
    assert left == ["busy", "busy.growing"]


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


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", "[project]\ndependencies = 5"),
        ("pyproject.toml", "project = [1]"),
        ("pyproject.toml", f"a = {'[' * 20_000}"),
        ("pyproject.toml", "# " + "x" * (10 << 20)),
        ("uv.lock", "package = 1"),
        ("uv.lock", "package = [1]"),
        ("uv.lock", '[[package]]\nversion = "1"\nsource = { registry = "x" }'),
        ("requirements.txt", "numpy\n" * 10_001),
    ],
)
def test_odd_lists_of_packages_are_refused_in_words(tmp_path: Path, name: str, text: str) -> None:
    """They are read outside of the job's limits, and an agent that dies of one is started again."""
    (tmp_path / "pyproject.toml").write_text("[project]\ndependencies = []\n")
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidInput, match=name.partition(".")[0]):
        read_requirements(tmp_path, name)


def test_files_that_include_each_other_many_times_are_not_read_for_ever(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"r{number}.txt").write_text(f"-r r{number + 1}.txt\n" * 100)
    (tmp_path / "r5.txt").write_text("numpy\n" * 100)
    with pytest.raises(InvalidInput, match="asks for more than 10,000 packages"):
        read_requirements(tmp_path, "r0.txt")


@pytest.mark.parametrize("odd", ["5", "{a: 1}", "null"])
def test_pip_in_an_environment_of_conda_may_be_anything(tmp_path: Path, odd: str) -> None:
    (tmp_path / "environment.yml").write_text(f"dependencies: [python, {{pip: {odd}}}]\n")
    assert isinstance(read_requirements(tmp_path, "environment.yml"), CondaFile)


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
@pytest.mark.parametrize("link", ["environment.json", "lib"])
def test_what_conda_left_as_a_link_leads_to_nothing_of_the_host(
    tmp_path: Path, environments: Environments, monkeypatch: pytest.MonkeyPatch, link: str
) -> None:
    """Packages of an environment.yml run code as they are installed, and the folder is theirs to write."""
    theirs = tmp_path / "theirs"
    (theirs / "python3.11" / "site-packages").mkdir(parents=True)
    (theirs / "own.txt").write_text("the host's own")
    to = theirs if link == "lib" else theirs / "own.txt"
    turn = f"""
import shutil
shutil.rmtree(prefix / "lib") if {link!r} == "lib" else None
(prefix / {link!r}).symlink_to({str(to)!r})
"""
    program = shutil.which("micromamba")
    assert program is not None
    Path(program).write_text(MICROMAMBA + turn)
    with suppress(NoEnvironment):
        environments.get("astro", CondaFile(YML))
    assert (theirs / "own.txt").read_text() == "the host's own"
    assert sorted(path.name for path in theirs.rglob("*")) == ["own.txt", "python3.11", "site-packages"]


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
    with pytest.raises(NoEnvironment) as refused:
        environments.get("astro", CondaFile(YML), lock=("greeting==1.0",))
    assert "versions were chosen" not in refused.value.message, "conda chooses them anew each time"


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
    targets = json.dumps({"read": str(home / "secret"), "write": str(home / "left")})
    source_package(tmp_path / "wheels", "curious", BACKEND, {"targets.json": targets})
    built = environments.get("astro", PackageList(("curious==1.0",)))
    said = run(built.folder, "python", "-c", "import curious; print(curious.found)")
    assert "the server's own" not in said
    assert "Error" in said
    assert not (home / "left").exists()


TURNCOAT = """
import os, pathlib
pathlib.Path("FOLDER").mkdir(parents=True, exist_ok=True)
os.path.islink("/job/site") or os.symlink("FOLDER", "/job/site")
"""


@pytest.mark.skipif(probe() is None, reason="this machine has no sandbox")
def test_a_folder_of_packages_that_became_a_link_takes_nothing_of_the_host(
    tmp_path: Path, environments: Environments
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "precious").write_text("the host's own")
    backend = TURNCOAT.replace("FOLDER", str(theirs)) + BACKEND.replace("curious", "turncoat")
    source_package(tmp_path / "wheels", "turncoat", backend, {"targets.json": "{}"})
    with pytest.raises(NoEnvironment, match="a link"):
        environments.get("astro", PackageList(("turncoat==1.0",)))
    assert (theirs / "precious").read_text() == "the host's own"
    assert not [path for path in environments.folder.iterdir() if path.is_dir()]


A_PYTHON = f"""#!/bin/sh
# Makes environments that lead to itself, as a Python of an admin or of uv does; for the rest it is our own.
case "$*" in
  *"-m venv"*)
    for folder in "$@"; do :; done
    mkdir -p "$folder/bin" "$folder/lib/python3.11/site-packages"
    ln -s "$0" "$folder/bin/python" ;;
  *) exec {sys.executable} "$@" ;;
esac
"""


def test_a_program_called_python_in_a_package_replaces_nobodys_python(
    tmp_path: Path, environments: Environments
) -> None:
    program = tmp_path / "admins" / "bin" / "python3.11"
    program.parent.mkdir(parents=True)
    program.write_text(A_PYTHON)
    program.chmod(0o755)
    wheel(tmp_path / "wheels", "usurper", "1.0", "")
    with zipfile.ZipFile(tmp_path / "wheels" / "usurper-1.0-py3-none-any.whl", "a") as archive:
        archive.writestr("usurper-1.0.data/scripts/python", "#!/bin/sh\necho mine now\n")
        archive.writestr("usurper-1.0.data/scripts/useful", "#!/bin/sh\necho kept\n")
    python = Python(program, platform.python_version(), program.parents[1])
    built = environments.get("astro", PackageList(("usurper==1.0",)), python=python)
    assert program.read_text() == A_PYTHON
    assert (built.folder / "bin" / "python").readlink() == program
    assert run(built.folder, "useful") == "kept"


def test_an_index_that_is_away_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "home" / "run").mkdir(parents=True)
    away = PackageIndex("http://127.0.0.1:9/simple")
    environments = Environments(tmp_path / "home" / "run" / "environments", probe(), away)
    with pytest.raises(NoEnvironment, match="cannot be built") as caught:
        environments.get("astro", PackageList(("greeting==1.0",)))
    assert any("greeting" in line or "127.0.0.1" in line for line in caught.value.log)
    assert not [path for path in environments.folder.iterdir() if path.is_dir()]
