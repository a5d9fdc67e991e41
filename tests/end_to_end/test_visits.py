"""Coming in to a running job: a terminal behind its walls, copies of its files, for those who may, on the record."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.test_code import easel

from easel.declare.roles import Role
from easel.errors import Conflict, Denied, NotFound
from easel.sdk.client import Client
from easel.sdk.jobs import JobHandle
from easel.sdk.visits import copy_out, open_terminal
from easel.testing.server import ServerProcess, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("server"), session_idle_minutes="0.1") as started:
        yield started


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Client:
    root = server.client()
    root.projects.create("astro")
    return root.in_project("astro")


@pytest.fixture(scope="module")
def job(client: Client) -> JobHandle:
    """One that runs and has left something."""
    command = "mkdir -p output/sub; echo one > output/sub/a.txt; echo two > output/b.txt; echo ready; exec sleep 600"
    made = client.jobs.submit(command, environment={"variables": {"COLOUR": "green"}})
    next(line for line in made.logs(follow=True) if line.text == "ready")
    return made


def run(client: Client, job: JobHandle, *command: str) -> tuple[str, int | None]:
    terminal = open_terminal(client, job.id, command, rows=31, columns=77)
    shown = b""
    try:
        while (piece := terminal.read()) is not None:
            shown += piece
    finally:
        terminal.close()
    return shown.decode(), terminal.code


def test_a_shell_is_in_the_job_and_behind_its_walls(client: Client, job: JobHandle) -> None:
    look = "id -u; pwd; echo $COLOUR; cat output/b.txt; stty size"
    look += "; grep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status"
    shown, code = run(client, job, "sh", "-c", f"{look}; ls /proc | grep -c '^[0-9]'; exit 7")
    lines = shown.split()
    assert code == 7
    assert lines[:6] == ["1000", "/job", "green", "two", "31", "77"]
    assert lines[6:12] == ["CapEff:", "0000000000000000", "NoNewPrivs:", "1", "Seccomp:", "2"]
    assert int(lines[12]) < 10  # only the job's own processes are seen
    assert run(client, job, "no-such-program")[1] == 127
    _, refused = run(client, job, "unshare", "-U", "true")
    assert refused != 0


def test_what_is_typed_arrives(client: Client, job: JobHandle) -> None:
    terminal = open_terminal(client, job.id)
    terminal.resize(40, 100)
    terminal.write(b"echo $((40 + 2)); exit 3\n")
    shown = b""
    while (piece := terminal.read()) is not None:
        shown += piece
    terminal.close()
    assert b"42" in shown
    assert terminal.code == 3


def test_the_command_line_runs_a_program_in_the_job(client: Client, job: JobHandle, tmp_path: Path) -> None:
    done: subprocess.CompletedProcess[str] = easel(
        client, tmp_path, "shell", job.id, "--", "sh", "-c", "cat output/b.txt; exit 5"
    )
    assert (done.stdout.strip(), done.returncode) == ("two", 5)
    copied = easel(client, tmp_path, "cp", f"{job.id}:output", ".")
    assert copied.returncode == 0, copied.stderr
    assert (tmp_path / "output" / "sub" / "a.txt").read_text() == "one\n"


def test_files_are_copied_while_it_runs(client: Client, job: JobHandle, tmp_path: Path) -> None:
    assert copy_out(client, job.id, "output/b.txt", tmp_path / "mine.txt") == [tmp_path / "mine.txt"]
    assert (tmp_path / "mine.txt").read_text() == "two\n"
    with pytest.raises(NotFound, match="has no nothing"):
        copy_out(client, job.id, "nothing", tmp_path)


def test_two_people_in_one_job_each_have_their_own_terminal(
    server: ServerProcess, client: Client, job: JobHandle
) -> None:
    """Its owner and another admin of the project, at once."""
    ada = client.users.create("ada", Role.ADMIN)
    other = server.client(ada.token.secret, "astro")
    one, two = open_terminal(client, job.id), open_terminal(other, job.id)
    one.write(b"mine=1; echo one-$mine; exit 4\n")
    two.write(b"echo two-${mine:-none}; exit 5\n")
    shown = []
    for terminal in (one, two):
        text = b""
        while (piece := terminal.read()) is not None:
            text += piece
        terminal.close()
        shown.append(text)
    assert b"one-1" in shown[0]
    assert b"two-none" in shown[1]
    assert b"two-" not in shown[0]
    assert (one.code, two.code) == (4, 5)
    came = {e.actor for e in client.events.list(filter=[f"subject:eq:{job.id}"]) if e.kind == "job.entered"}
    assert ada.id in came
    assert len(came) == 2


def test_a_connection_that_breaks_leaves_the_job_and_one_comes_in_again(
    client: Client, job: JobHandle
) -> None:
    lost = open_terminal(client, job.id)
    lost.write(b"echo begun > output/seen.txt; echo sa''id\n")  # what is typed is shown too
    shown = b""
    while b"said" not in shown:
        piece = lost.read()
        assert piece is not None
        shown += piece
    lost.close()
    assert job.refresh().state == "running"
    assert run(client, job, "cat", "output/seen.txt") == ("begun\r\n", 0)


def test_only_its_owner_and_admins_come_in_and_every_visit_is_on_record(
    server: ServerProcess, client: Client, job: JobHandle, tmp_path: Path
) -> None:
    bob = server.client(client.users.create("bob").token.secret, "astro")
    with pytest.raises(Denied, match="only its owner or an admin"):
        run(bob, job, "true")
    with pytest.raises(Denied):
        copy_out(bob, job.id, "output", tmp_path)
    root = server.client()
    root.projects.create("bio")
    eve = server.client(root.in_project("bio").users.create("eve").token.secret, "astro")
    with pytest.raises(NotFound):
        run(eve, job, "true")
    kinds = [event.kind for event in client.events.list(filter=[f"subject:eq:{job.id}"])]
    assert kinds.count("job.entered") >= 1
    assert kinds.count("job.left") >= 1


def test_one_comes_in_only_while_it_runs(client: Client, job: JobHandle) -> None:
    job.kill()
    job.wait(60, check=False)
    with pytest.raises(Conflict, match="only while it runs"):
        run(client, job, "true")


PROGRAM = """
import http.server, os
class Answer(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def do_POST(self):
        self.do_GET(self.rfile.read(int(self.headers['content-length'])))
    def do_GET(self, body=b''):
        said = f'{self.command} {self.path} {body.decode()} {sorted(self.headers)}'.encode()
        self.send_response(200)
        self.send_header('Set-Cookie', 'easel_session=stolen')
        self.send_header('Set-Cookie', 'mine=1; Path=/')
        self.send_header('Content-Length', str(len(said)))
        self.end_headers()
        self.wfile.write(said)
    def log_message(self, *_): pass
open('output/kept.txt', 'w').write('kept')
http.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ['EASEL_PORT'])), Answer).serve_forever()
"""


def test_a_session_is_reached_by_its_owner_alone_and_saved_when_it_is_idle(
    server: ServerProcess, client: Client
) -> None:
    session = client.jobs.submit(["python3", "-c", PROGRAM], port=8899, output_set="saved")
    http = client.connection.http
    while (answer := http.get(f"/sessions/{session.id}/a%20b?c=1")).status_code in (409, 503):
        assert not session.refresh().about.over, session.tail()
    assert answer.status_code == 200, answer.text
    assert answer.text.startswith(f"GET /sessions/{session.id}/a%20b?c=1 ")
    assert "authorization" not in answer.text.lower()  # the caller's token is not the job's to see
    assert answer.headers.get_list("set-cookie") == [f"mine=1; Path=/sessions/{session.id}/"]
    posted = http.post(f"/sessions/{session.id}/x", content=b"hello")
    assert posted.text.startswith(f"POST /sessions/{session.id}/x hello ")
    carl = server.client(client.users.create("carl").token.secret, "astro")
    assert carl.connection.http.get(f"/sessions/{session.id}/").status_code == 404
    assert http.get("/sessions/job_none/").status_code == 404
    assert session.wait(120).about.output_set == "saved:1"  # nobody used it any more
    assert client.lake.cat("/saved/kept.txt") == b"kept"
    assert any("the session is saved and ends" in line.text for line in session.logs())


KERNELS = """
import http.server, json, os
asked = 0
class Kernels(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global asked
        asked += self.path == os.environ['EASEL_BASE_URL'] + 'api/kernels'
        open('output/asked.txt', 'w').write(str(asked))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps([{'execution_state': 'busy' if asked < 12 else 'idle'}]).encode())
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(('127.0.0.1', int(os.environ['EASEL_PORT'])), Kernels).serve_forever()
"""


def test_a_session_whose_kernel_runs_a_cell_that_only_waits_is_in_use(client: Client) -> None:
    """It is asked at most ten times within an idle time: more often, if the busy kernel has kept it."""
    session = client.jobs.submit(["python3", "-c", KERNELS], port=8898, output_set="waited")
    session.wait(120)
    assert int(client.lake.cat("/waited/asked.txt")) > 12
