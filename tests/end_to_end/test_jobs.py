"""Jobs as people use them: through the real server, the SDK and the command line."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.declare.roles import Role
from easel.errors import Denied, InvalidInput, NotFound
from easel.sdk.client import Client
from easel.sdk.jobs import JobFailed
from easel.testing.commands import run_as
from easel.testing.server import ServerProcess, running

SMALL = {"vcpu": 0.5, "memory_mb": 256}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="module")
def people(server: ServerProcess) -> dict[str, Client]:
    root = server.client()
    root.projects.create("astro")
    root.projects.create("bio")
    made = {"root": root.in_project("astro")}
    for name, project, role in (
        ("ana", "astro", Role.MEMBER),
        ("ben", "astro", Role.MEMBER),
        ("eve", "bio", Role.ADMIN),
    ):
        secret = root.in_project(project).users.create(name, role).token.secret
        assert secret is not None
        made[name] = server.client(secret).in_project(project)
    return made


def test_a_job_is_submitted_followed_and_finished(people: dict[str, Client]) -> None:
    job = people["ana"].jobs.submit(
        ["sh", "-c", "for i in 1 2 3; do echo line $i; done; echo '[EASEL_METRIC] loss=0.5'"],
        name="count",
        resources=SMALL,
    )
    assert [line.text for line in job.logs(follow=True)][:3] == ["line 1", "line 2", "line 3"]
    job.wait()
    assert job.state == "finished"
    assert job.metrics() == {"loss": 1}
    assert [point.value for point in job.series("loss")] == [0.5]
    assert [line.text for line in job.logs(search="LINE 2")] == ["line 2"]
    assert job.about.output_set == f"{job.id}-output:1"


def test_who_comes_back_after_a_retry_reads_the_new_attempt_from_its_beginning(
    server: ServerProcess, people: dict[str, Client]
) -> None:
    script = "n=${EASEL_ATTEMPT##*.}; for i in 1 2 3; do echo try $n line $i; done; test $n = 2"
    job = people["ana"].jobs.submit(["sh", "-c", script], retry={"failed": 1, "lost": 0}, resources=SMALL)
    job.wait()
    address = f"/api/v1/projects/astro/jobs/{job.id}/log/stream"

    def told(last: int) -> tuple[list[str], list[int]]:
        """The lines that come after an event, and the ids under which they come."""
        headers = {"Last-Event-ID": str(last)}
        answer = people["ana"].connection.http.get(address, headers=headers).text.splitlines()
        pages = [json.loads(line.removeprefix("data: ")) for line in answer if line.startswith("data: ")]
        ids = [int(line.removeprefix("id: ")) for line in answer if line.startswith("id: ")]
        return [line["text"] for page in pages for line in page["lines"]], ids

    second = ["try 2 line 1", "try 2 line 2", "try 2 line 3"]
    lines, ids = told(last=3)  # of the first attempt all three lines were read when the connection broke
    assert lines[:3] == second
    assert told(last=ids[-1])[0] == [], "all of the second attempt was read"
    assert told(last=ids[-1] - len(lines) + 1)[0] == lines[1:]


def test_a_failed_job_says_why(people: dict[str, Client]) -> None:
    job = people["ana"].jobs.submit(["no-such-program"], resources=SMALL)
    with pytest.raises(JobFailed, match="no-such-program"):
        job.wait()


def test_a_rerun_names_its_parent_and_a_kill_ends_a_running_job(people: dict[str, Client]) -> None:
    job = people["ana"].jobs.submit(["sleep", "1000"], resources=SMALL)
    again = job.rerun()
    assert again.about.parent_id == job.id
    for each in (job, again):
        each.kill("enough")
        each.wait(check=False)
        assert (each.state, each.about.reason) == ("killed", "enough")


def test_a_mistyped_option_is_not_taken_for_the_command(people: dict[str, Client]) -> None:
    done = run_as(people["ana"], "run", "--vcpus", "2", "--", "true")
    assert done.returncode != 0
    assert "no option --vcpus" in done.stderr


def test_following_a_log_tells_how_the_job_ended(people: dict[str, Client]) -> None:
    job = people["ana"].jobs.submit(["sleep", "1000"], resources=SMALL)
    job.kill("enough")
    assert "Killed: enough" in run_as(people["ana"], "jobs", "logs", "-f", job.id).stderr


def test_another_project_sees_nothing_and_another_member_may_look_but_not_kill(
    people: dict[str, Client],
) -> None:
    job = people["ana"].jobs.submit(["true"], resources=SMALL)
    with pytest.raises(NotFound):
        people["eve"].jobs.get(job.id)
    with pytest.raises(Denied):
        people["ben"].jobs.get(job.id).kill()
    assert job.id not in [other.id for other in people["eve"].jobs.list()]
    job.wait()


def test_what_no_device_can_hold_is_refused_at_once(people: dict[str, Client]) -> None:
    people["ana"].jobs.submit(["true"], resources=SMALL).wait()  # a device has connected
    with pytest.raises(InvalidInput, match="no device can hold"):
        people["ana"].jobs.submit(["true"], resources={"vcpu": 512, "memory_mb": 256})


def test_an_entry_point_gets_its_arguments_and_returns_its_result(people: dict[str, Client]) -> None:
    job = people["ana"].jobs.submit(entry="json:dumps", arguments={"obj": [1, 2]}, resources=SMALL)
    assert job.wait().about.result == {"value": "[1, 2]"}


def test_secrets_reach_the_job_and_nobody_else(people: dict[str, Client]) -> None:
    people["root"].secrets.put("api-key", "s3cret-value")
    with pytest.raises(Denied):
        people["ana"].secrets.put("api-key", "mine")
    assert people["ana"].secrets.names() == ["api-key"]
    with pytest.raises(InvalidInput, match="no secret 'api-kee' in this project: did you mean 'api-key'"):
        people["ana"].jobs.submit(["true"], environment={"secrets": {"KEY": "api-kee"}})
    job = people["ana"].jobs.submit(
        ["sh", "-c", "echo ${#KEY}; env | grep -c EASEL_TOKEN"],
        environment={"secrets": {"KEY": "api-key"}},
        resources=SMALL,
    )
    job.wait(check=False)
    assert [line.text for line in job.logs()] == [str(len("s3cret-value")), "0"]
    assert "s3cret-value" not in json.dumps(job.about.model_dump(mode="json"))


def test_the_command_line_runs_a_command_and_exits_as_it_does(
    people: dict[str, Client], tmp_path: Path
) -> None:
    ran = run_as(
        people["ana"],
        "run",
        "--no-code",
        "--memory",
        "256",
        "--vcpu",
        "0.5",
        "--",
        "sh",
        "-c",
        "echo hi; exit 7",
    )
    assert (ran.returncode, ran.stdout) == (7, "hi\n")
    assert "exit code 7" in ran.stderr
    file = tmp_path / "job.yaml"
    file.write_text("name: from a file\ncommand: echo from yaml\nresources: {vcpu: 0.5, memory_mb: 256}\n")
    ran = run_as(people["ana"], "run", "--no-code", "--file", str(file))
    assert (ran.returncode, ran.stdout) == (0, "from yaml\n")
    listed = json.loads(run_as(people["ana"], "jobs", "ls", "--json", "--name", "from").stdout)
    assert [job["name"] for job in listed] == ["from a file"]
    logs = run_as(people["ana"], "jobs", "logs", "-f", listed[0]["id"])
    assert logs.stdout == "from yaml\n"
    assert run_as(people["ana"], "jobs", "show", listed[0]["id"]).returncode == 0
    assert run_as(people["ana"], "devices").returncode == 0


def test_a_paused_queue_waits_and_an_admin_reorders_it(people: dict[str, Client]) -> None:
    ana, root = people["ana"], people["root"]
    root.queues.change("ana", paused=True)
    jobs = [ana.jobs.submit(["true"], name=f"n{i}", resources=SMALL) for i in range(3)]
    (queue,) = [queue for queue in ana.queues.list() if queue.user == "ana"]
    assert (queue.queued, queue.paused) == (3, True)
    with pytest.raises(Denied):
        ana.queues.change("ana", paused=False)
    order = root.queues.reorder("ana", [jobs[2].id])
    assert order == [jobs[2].id, jobs[0].id, jobs[1].id]
    root.queues.change("ana", max_active=1)
    root.queues.change("ana", paused=False)
    for job in jobs:
        job.wait()
    begun = [job.about.started_at for job in jobs if job.about.started_at is not None]
    assert begun[2] < begun[0] < begun[1]


WORD_COUNT = Path(__file__).parents[2] / "docs" / "tutorial" / "wordcount"


def test_the_word_count_of_the_tutorial_leaves_a_set_that_knows_what_it_was_made_from(
    people: dict[str, Client], tmp_path: Path
) -> None:
    def run(*arguments: str) -> str:
        done = run_as(people["ana"], *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    with zipfile.ZipFile(tmp_path / "wordcount.zip", "w") as archive:
        archive.write(WORD_COUNT / "wordcount.py", "wordcount.py")
    run("put", f"{WORD_COUNT / 'works'}/", "/works/")
    run("filesets", "create", "shakespeare.works", "/works/")
    run("put", str(tmp_path / "wordcount.zip"), "/code/")
    said = run(
        *("run", "--code", "/code/wordcount.zip", "--input", "shakespeare.works", "--output", "counts"),
        *("--vcpu", "0.5", "--memory", "256", "--", "python", "wordcount.py", "input", "./output/"),
    )
    assert [line for line in said.splitlines() if line.endswith("so far")] == [
        "hamlet.txt: 18 words so far",
        "lear.txt: 25 words so far",
        "macbeth.txt: 39 words so far",
    ]
    assert json.loads(run("cat", "/counts/counts.json"))["nothing"] == 2
    (edge,) = json.loads(run("trace", "counts", "--json"))["edges"]
    assert (edge["source"], edge["target"]) == ("shakespeare.works:1", "counts:1")
    job = people["ana"].jobs.get(edge["job"])
    assert (job.state, job.about.output_set, job.about.progress) == ("finished", "counts:1", 1.0)
    assert "counts" in run("find", "filesets", "words = 39")
