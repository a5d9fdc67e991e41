"""`kill -9` of a whole server while jobs run: they go on, and report to the next one."""

from __future__ import annotations

from pathlib import Path

from easel.declare.roles import Role
from easel.run.tree import marked
from easel.testing.engine import until
from easel.testing.server import running

SMALL = {"vcpu": 0.5, "memory_mb": 256}


def test_a_job_outlives_its_server_and_the_same_submit_twice_makes_one_job(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        root = server.client()
        root.projects.create("astro")
        secret = root.in_project("astro").users.create("ana", Role.MEMBER).token.secret
        ana = server.client(secret).in_project("astro")
        ended = ana.jobs.submit(["echo", "before"], resources=SMALL)
        ended.wait()
        script = "echo first; while [ ! -e input/../go ]; do sleep 0.05; done; echo last"
        job = ana.jobs.submit(["sh", "-c", script], resources=SMALL, key="once")
        until(lambda: job.refresh().state == "running")
        server.kill()
        (attempt,) = (server.folder / "home" / "run" / "attempts").glob(f"{job.id}.1")
        (attempt / "work" / "go").touch()
        until(lambda: not marked(f"{job.id}.1"))
        server.start()
        assert ana.jobs.submit(["sh", "-c", script], resources=SMALL, key="once").id == job.id
        job.wait()
        assert [line.text for line in job.logs()] == ["first", "last"]
        assert job.about.attempt == 1
        assert ana.jobs.get(ended.id).state == "finished"
        assert len(list(ana.jobs.list())) == 2
        kinds = [event.kind for event in ana.events.list(200, filter=[f"subject:eq:{job.id}"])]
        assert kinds.count("job.finished") == 1


def test_a_server_that_is_stopped_in_order_leaves_no_process_and_tries_its_jobs_again(tmp_path: Path) -> None:
    with running(tmp_path) as server:
        root = server.client()
        root.projects.create("astro")
        client = root.in_project("astro")
        job = client.jobs.submit(["sleep", "1000"], resources=SMALL)
        until(lambda: job.refresh().state == "running")
        assert server.stop() == 0
        assert marked(f"{job.id}.1") == []
        server.start()
        until(lambda: job.refresh().about.attempt == 2 and job.state == "running")
        job.kill()
        job.wait(check=False)
        assert job.state == "killed"
