"""Putting what an installer left into an environment.

The code of packages ran while they were installed, so everything here is theirs: links are never followed, and what
the platform itself wrote is never written over. Call it when nothing of the installation runs any more.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from easel.run.untrusted_files import folders_in, is_file, is_folder, read_regular

_LIGHT = (
    "__init__.py",
    "version.py",
    "errors.py",
    "clock.py",
    "ids.py",
    "metrics.py",
    "sdk",
    "wire",
    "declare",
    "lake",
)
"""What `import easel` needs in a job: `easel.log_metric` and, where its packages are there, the client."""
_SCRIPT_BYTES = 1 << 20
_PYTHON_SCRIPT = re.compile(rb"#!.*python[^\n]*")
_NAME, _VERSION = r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", r"[A-Za-z0-9][A-Za-z0-9._+!]{0,99}"
_INSTALLED = re.compile(rf"({_NAME})-({_VERSION})\.dist-info")
_BY_CONDA = re.compile(rf"({_NAME})-({_VERSION})-[A-Za-z0-9._]{{1,100}}\.json")


def move_in(installed: Path, site: Path, made: Path, final: Path) -> None:
    """Packages to `site`, programs to bin; what names the building Python names the environment's then.

    `final` is where the environment will lie. Programs that the environment has of itself, above all its Python (a
    link to the machine's), stay what they are.
    """
    programs = installed / "bin"
    if is_folder(programs):
        for program in sorted(programs.iterdir()):
            place = made / "bin" / program.name
            if is_file(program) and not os.path.lexists(place):
                program.rename(place)
                _name_its_python(place, final / "bin" / "python")
        shutil.rmtree(programs)
    for entry in sorted(installed.iterdir()):
        entry.rename(site / entry.name)


def _name_its_python(script: Path, python: Path) -> None:
    if script.lstat().st_size <= _SCRIPT_BYTES:
        text = read_regular(script, _SCRIPT_BYTES) or b""
        if (found := _PYTHON_SCRIPT.match(text)) is not None:
            script.write_bytes(b"#!" + os.fsencode(python) + text[found.end() :])
    script.chmod(0o755)


def site_packages(made: Path) -> Path | None:
    """The folder of packages of an environment that an installer made; None where it has none, or only links to one."""
    for folder in folders_in(made / "lib"):
        if folder.name.startswith("python") and is_folder(folder / "site-packages"):
            return folder / "site-packages"
    return None


def installed_in(site: Path) -> Iterator[str]:
    """Returns the packages in a folder of packages, as name==version."""
    for info in folders_in(site):
        if found := _INSTALLED.fullmatch(info.name):
            yield f"{found[1].replace('_', '-')}=={found[2]}"


def installed_by_conda(prefix: Path) -> Iterator[str]:
    """Returns the packages that conda keeps account of, as name==version: its files are called name-version-build."""
    account = prefix / "conda-meta"
    for file in sorted(account.iterdir()) if is_folder(account) else ():
        if found := _BY_CONDA.fullmatch(file.name):
            yield f"{found[1]}=={found[2]}"


def add_light_core(site: Path) -> None:
    """`import easel` works in every environment; one that asked for Easel has its own."""
    if os.path.lexists(site / "easel"):
        return
    source = Path(__file__).parents[1]
    ignored = shutil.ignore_patterns("__pycache__")
    (site / "easel").mkdir()
    for name in _LIGHT:
        if (source / name).is_dir():
            shutil.copytree(source / name, site / "easel" / name, ignore=ignored)
        else:
            shutil.copy2(source / name, site / "easel" / name)


def make_readable(folder: Path) -> None:
    """Makes all of it readable for every job's user, and writable for none."""
    for root, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(root) / name
            if os.geteuid() == 0:
                os.chown(path, 0, 0, follow_symlinks=False)
            if is_folder(path):
                path.chmod(0o755)
            elif is_file(path):
                path.chmod(0o755 if path.lstat().st_mode & 0o100 else 0o644)
    folder.chmod(0o755)
