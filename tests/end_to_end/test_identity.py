"""As a lab's admin and its people would, through the real server, the SDK and the command line."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.declare.roles import Role
from easel.errors import Conflict, Denied, InvalidInput, NotFound, TryLater, Unauthenticated
from easel.sdk.client import Client
from easel.testing.commands import run_easel
from easel.testing.server import ServerProcess, started


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with started(ServerProcess(tmp_path_factory.mktemp("server"), first_start=True)) as made:
        yield made


@pytest.fixture
def shell(server: ServerProcess, tmp_path: Path) -> Shell:
    return Shell(server.address, tmp_path)


class Shell:
    """`easel` as typed by one person."""

    def __init__(self, address: str, config: Path) -> None:
        self._environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("EASEL_")},
            "XDG_CONFIG_HOME": str(config),
            "EASEL_SERVER": address,
            "COLUMNS": "200",
        }

    def __call__(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return run_easel(*arguments, environment=self._environment, stdin=stdin)


def test_from_the_first_token_to_isolated_projects(server: ServerProcess) -> None:
    root = server.client()
    assert root.whoami().user.platform_admin
    for name in ("e2e-one", "e2e-two"):
        root.projects.create(name)
    ana = root.in_project("e2e-one").users.create("ana", Role.ADMIN)
    client = server.client(ana.token.secret)
    assert [p.name for p in client.projects.list()] == ["e2e-one"]
    assert client.project == "e2e-one"
    with pytest.raises(NotFound):
        list(client.in_project("e2e-two").users.list())
    with pytest.raises(Denied, match="platform admin"):
        client.projects.create("mine")
    with pytest.raises(Conflict):
        client.users.create("ana")
    with pytest.raises(Unauthenticated):
        server.client("easel_wrong").whoami()


def test_the_client_follows_events_as_they_happen(server: ServerProcess) -> None:
    root = server.client()
    root.projects.create("e2e-events")
    project = root.in_project("e2e-events")
    stream = project.events.follow()
    assert next(stream).kind == "project.created"
    project.users.create("bob")
    assert next(stream).body["name"] == "bob"
    again = project.events.follow(after=next(iter(project.events.list(limit=1))).seq)
    project.users.remove("bob")
    assert next(again).kind == "member.removed"


def test_the_same_through_the_command_line(server: ServerProcess, shell: Shell) -> None:
    assert shell("login", stdin=server.admin_token).returncode == 0
    assert shell("projects", "create", "e2e-cli").returncode == 0
    secret = shell("users", "add", "eve", "-p", "e2e-cli").stdout.strip()
    assert secret.startswith("easel_")
    members = json.loads(shell("users", "ls", "-p", "e2e-cli", "--json").stdout)
    assert [m["name"] for m in members] == ["eve"]
    table = shell("users", "ls", "-p", "e2e-cli").stdout
    assert "eve" in table
    assert "member" in table
    kinds = [e["kind"] for e in json.loads(shell("events", "-p", "e2e-cli", "--json").stdout)]
    assert kinds == ["project.created", "user.created"]


def test_exit_codes_tell_scripts_what_happened(server: ServerProcess, shell: Shell) -> None:
    assert shell("whoami").returncode == 4  # not logged in
    shell("login", stdin=server.admin_token)
    assert shell("projects", "create", "e2e-code").returncode == 0
    assert shell("projects", "create", "e2e-code").returncode == 5  # exists
    assert shell("projects", "create", "../x").returncode == 2
    assert shell("users", "ls", "-p", "no-such").returncode == 3
    message = shell("users", "ls", "-p", "no-such").stderr
    assert message.startswith("error: no project 'no-such'")


def test_the_token_stands_in_no_log_line_and_no_process_argument(server: ServerProcess, shell: Shell) -> None:
    shell("login", stdin=server.admin_token)
    shell("whoami")
    assert server.admin_token not in server.log
    arguments = Path(f"/proc/{server.pid}/cmdline").read_bytes().decode()
    assert server.admin_token not in arguments


def test_a_server_that_is_not_there_is_told_apart_from_one_that_refuses() -> None:
    client = Client("http://127.0.0.1:9", "easel_x", "p", attempts=1)
    with client, pytest.raises(TryLater, match="is it running"):
        client.whoami()


def test_the_client_refuses_bad_names_before_sending(server: ServerProcess) -> None:
    with pytest.raises(InvalidInput):
        server.client().projects.create("a..b")
