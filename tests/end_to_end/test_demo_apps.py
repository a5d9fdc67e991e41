"""What the demo shows of apps, in its short form: four people, four kinds of data, one pool."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from easel.declare.roles import Role
from easel.testing.server import running

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "demo_apps.py"


@pytest.mark.timeout(500)
def test_four_people_get_answers_from_one_pool(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.mkdir()
    with running(tmp_path) as server:
        root = server.client()
        root.projects.create("studio")
        for person in ("ana", "ben", "chloe", "dan"):
            secret = root.in_project("studio").users.create(person, Role.MEMBER).token.secret
            (tokens / person).write_text(secret or "")
        done = subprocess.run(
            [sys.executable, str(SCRIPT), server.address, "studio", str(tokens), "--seconds", "0", "--small"],
            capture_output=True,
            text=True,
            check=False,
            timeout=400,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    for person, app in (("ana", "digits"), ("ben", "wine"), ("chloe", "waves"), ("dan", "diabetes")):
        assert f"{person} asks {app}: " in done.stdout
