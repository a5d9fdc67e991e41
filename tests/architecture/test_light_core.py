"""`pip install easel-ml` gives SDK and command line without server, database driver or mathematics."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
HEAVY = ("alembic", "fastapi", "matplotlib", "numpy", "pandas", "psycopg", "ray", "scipy", "sklearn", "sqlalchemy",
         "torch", "uvicorn")  # fmt: skip

WITHOUT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {heavy!r}:
            raise ModuleNotFoundError(f"{{name}} is not installed", name=name)

sys.meta_path.insert(0, Absent())
"""


def _run_without_extras(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(heavy=HEAVY) + code, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_sdk_needs_no_extra() -> None:
    done = _run_without_extras("import easel; easel.Client('http://127.0.0.1:9', 'easel_x', 'p').close()")
    assert done.returncode == 0, done.stderr


def test_every_command_shows_its_help_without_extras() -> None:
    code = """
import sys
from easel.cli.main import COMMANDS, app
for name in COMMANDS:
    try:
        app([name, "--help"], standalone_mode=False)
    except SystemExit:
        pass
"""
    done = _run_without_extras(code)
    assert done.returncode == 0, done.stderr


def test_a_command_that_needs_an_extra_says_which() -> None:
    code = "import sys; sys.argv = ['easel', 'up']; from easel.cli.main import main; sys.exit(main())"
    done = _run_without_extras(code)
    assert done.returncode == 7
    assert "pip install 'easel-ml[server]'" in done.stderr


def test_a_server_starts_without_what_only_some_requests_need() -> None:
    """These cost seconds and 100 MB: they are imported by the request, trial or picture that needs them."""
    later = ("matplotlib", "scipy.stats", "scipy.optimize", "sklearn", "torch", "openlineage", "prov", "ray")
    code = f"import easel.serve.server, sys; print([name for name in {later!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_the_wheel_carries_what_is_not_python(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "HATCH_BUILD_NO_HOOKS": "true"},  # the dashboard has its own tests
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if built.returncode != 0:
        pytest.fail(built.stderr)
    names = zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist()
    for needed in (
        "easel/py.typed",
        "easel/declare/program.lark",
        "easel/store/migrations/versions/0001_identity.py",
    ):
        assert needed in names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/"))]
