"""Coming in to a job on a machine that joined with `easel worker`: terminals, copies and sessions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.end_to_end.test_code import easel
from tests.end_to_end.test_visits import PROGRAM, run
from tests.end_to_end.test_workers import join
from websockets.sync.client import connect

from easel.errors import Denied, NotFound
from easel.sdk.client import Client
from easel.sdk.jobs import JobHandle
from easel.sdk.visits import copy_out, open_terminal
from easel.testing.engine import until
from easel.testing.server import ServerProcess, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("server")
    with running(folder, executor="remote", session_idle_minutes="0.5") as made:
        secret = made.client().worker_tokens.create("lab").secret
        assert secret is not None
        worker = join(made, "box", secret, "--vcpu", "2", "--memory-mb", "8192")
        try:
            yield made
        finally:
            worker.terminate()
            worker.wait(60)


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Client:
    root = server.client()
    root.projects.create("astro")
    return root.in_project("astro")


@pytest.fixture(scope="module")
def job(client: Client) -> JobHandle:
    command = "mkdir -p output/sub; echo one > output/sub/a.txt; echo two > output/b.txt; echo ready; exec sleep 600"
    made = client.jobs.submit(command, environment={"variables": {"COLOUR": "green"}})
    next(line for line in made.logs(follow=True) if line.text == "ready")
    assert made.refresh().about.device == "box"
    return made


def test_a_shell_is_in_the_job_on_its_worker(client: Client, job: JobHandle) -> None:
    shown, code = run(client, job, "sh", "-c", "pwd; echo $COLOUR; cat output/b.txt; stty size; exit 7")
    assert (shown.split(), code) == (["/job", "green", "two", "31", "77"], 7)
    terminal = open_terminal(client, job.id)
    terminal.resize(40, 100)
    terminal.write(b"stty size; echo $((40 + 2)); exit 3\n")
    shown_later = b""
    while (piece := terminal.read()) is not None:
        shown_later += piece
    terminal.close()
    assert b"40 100" in shown_later
    assert b"42" in shown_later
    assert terminal.code == 3


def test_what_a_shell_started_ends_when_its_visitor_leaves(client: Client, job: JobHandle) -> None:
    terminal = open_terminal(client, job.id, ["sh", "-c", "echo begun; exec sleep 4321"])
    assert terminal.read() is not None
    terminal.close()
    until(
        lambda: "sleep 4321" not in run(client, job, "sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")[0]
    )


def test_much_comes_through_whole(client: Client, job: JobHandle, tmp_path: Path) -> None:
    _, code = run(client, job, "sh", "-c", "head -c 20000000 /dev/zero | tr '\\0' x > output/large")
    assert code == 0
    (copied,) = copy_out(client, job.id, "output/large", tmp_path)
    assert copied.read_bytes() == b"x" * 20_000_000


def test_the_command_line_enters_copies_and_attaches(
    server: ServerProcess, client: Client, job: JobHandle, tmp_path: Path
) -> None:
    done = easel(client, tmp_path, "shell", job.id, "--", "sh", "-c", "cat output/b.txt; exit 5")
    assert (done.stdout.strip(), done.returncode) == ("two", 5)
    copied = easel(client, tmp_path, "cp", f"{job.id}:output/sub", ".")
    assert copied.returncode == 0, copied.stderr
    assert (tmp_path / "sub" / "a.txt").read_text() == "one\n"
    short = client.jobs.submit("echo one; echo two")
    attached = easel(client, tmp_path, "attach", short.id)
    assert attached.stdout.split() == ["one", "two"], attached.stderr


def test_only_its_owner_and_admins_come_in(
    server: ServerProcess, client: Client, job: JobHandle, tmp_path: Path
) -> None:
    bob = server.client(client.users.create("bob").token.secret, "astro")
    with pytest.raises(Denied, match="only its owner or an admin"):
        run(bob, job, "true")
    with pytest.raises(NotFound, match="has no nothing"):
        copy_out(client, job.id, "nothing", tmp_path)
    kinds = [event.kind for event in client.events.list(filter=[f"subject:eq:{job.id}"])]
    assert kinds.count("job.entered") >= 1


def test_a_session_on_a_worker_is_reached_by_its_owner_and_saved_when_it_is_idle(
    server: ServerProcess, client: Client
) -> None:
    session = client.jobs.submit(["python3", "-c", PROGRAM], port=8899, output_set="saved")
    http = client.connection.http
    while (answer := http.get(f"/sessions/{session.id}/a%20b?c=1")).status_code in (409, 503):
        assert not session.refresh().about.over, session.tail()
    assert answer.text.startswith(f"GET /sessions/{session.id}/a%20b?c=1 ")
    body = b"x" * 300_000
    posted = http.post(f"/sessions/{session.id}/x", content=body)
    assert posted.text.startswith(f"POST /sessions/{session.id}/x {body.decode()} ")
    carl = server.client(client.users.create("carl").token.secret, "astro")
    assert carl.connection.http.get(f"/sessions/{session.id}/").status_code == 404
    assert session.wait(180).about.output_set == "saved:1"  # nobody used it any more
    assert client.lake.cat("/saved/kept.txt") == b"kept"


def test_jupyterlab_on_a_worker_runs_a_cell(server: ServerProcess, client: Client, tmp_path: Path) -> None:
    opened = easel(client, tmp_path, "lab", "--no-code", "--memory", "4096")
    assert opened.returncode == 0, opened.stderr
    address = opened.stdout.strip()
    session = client.jobs.get(address.rstrip("/").rpartition("/")[2])
    token = {"Authorization": client.connection.authorization}
    with httpx.Client(base_url=address, headers=token, follow_redirects=True, timeout=60) as browser:
        assert "JupyterLab" in browser.get("lab").text
        proof = {"X-XSRFToken": str(browser.cookies.get("_xsrf"))}
        made = browser.post("api/kernels", json={"name": "python3"}, headers=proof)
    kernel = made.json()["id"]
    channels = f"{address}api/kernels/{kernel}/channels".replace("http", "ws", 1)
    asked = {
        "header": {
            "msg_id": "one",
            "msg_type": "execute_request",
            "username": "",
            "session": "s",
            "version": "5.3",
        },
        "parent_header": {},
        "metadata": {},
        "channel": "shell",
        "content": {"code": "print(6 * 7)", "silent": False},
    }
    with connect(channels, additional_headers=token, open_timeout=60) as kernel_socket:
        kernel_socket.send(json.dumps(asked))
        while (said := json.loads(kernel_socket.recv(120)))["msg_type"] != "stream":
            assert said["msg_type"] != "error", said
    assert said["content"]["text"] == "42\n"
    session.kill()
    session.wait(60, check=False)
