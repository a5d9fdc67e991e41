"""A backup of a server that is being written to, restored into a new home."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from easel.testing.commands import run_easel
from easel.testing.server import ServerProcess, running


def _easel(home: Path, *arguments: str) -> None:
    done = run_easel(*arguments, environment={**os.environ, "EASEL_HOME": str(home)})
    assert done.returncode == 0, done.stderr


def test_a_backup_under_load_is_one_consistent_moment(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    (tmp_path / "new").mkdir()
    stop = threading.Event()
    with running(tmp_path / "old") as server:
        client = server.client()

        def write() -> None:
            i = 0
            while not stop.is_set():
                client.projects.create(f"p{i}")
                i += 1

        writer = threading.Thread(target=write)
        writer.start()
        while len(list(server.client().projects.list())) < 5:
            pass
        _easel(tmp_path / "old" / "home", "backup", str(tmp_path / "backup"))
        stop.set()
        writer.join()
        token = server.admin_token
    _easel(tmp_path / "new" / "home", "restore", str(tmp_path / "backup"))
    restored = ServerProcess(tmp_path / "new")
    restored.start()
    try:
        client = restored.client(token)
        names = {p.name for p in client.projects.list()}
        told = {
            e.body["name"] for e in client.events.list(100_000, ["kind:eq:project.created"], everywhere=True)
        }
        assert len(names) >= 5
        assert names == told  # never a project without its event, nor an event without its project
        client.projects.create("after-restore")
    finally:
        restored.kill()
        restored.close_clients()
