"""Values at the edge of what can be written down, and streams whose listener loses its rights."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from easel.declare.roles import Role
from easel.errors import InvalidInput
from easel.testing.server import ServerProcess, running

SMALL = {"vcpu": 0.5, "memory_mb": 256}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("server")) as started:
        started.client().projects.create("astro")
        yield started


def headers(server: ServerProcess) -> dict[str, str]:
    return {"Authorization": f"Bearer {server.admin_token}", "Content-Type": "application/json"}


def test_an_expiry_past_the_last_moment_of_utc_can_be_read_again(server: ServerProcess) -> None:
    body = {"name": "far", "expires_at": "9999-12-31T23:59:59-12:00"}
    address = f"{server.address}/api/v1/tokens"
    assert httpx.post(address, headers=headers(server), json=body).status_code == 201
    assert httpx.get(address, headers=headers(server)).status_code == 200


@pytest.mark.parametrize(
    "change",
    ['"tags":{"n":{}}', f'"tags":{{"n":1{"0" * 400}}}', '"tags":{"n":"a\\ud800"}', '"remove":["a\\ud800"]'],
)
def test_a_tag_that_cannot_be_stored_is_refused(server: ServerProcess, change: str) -> None:
    job = server.client().in_project("astro").jobs.submit(["true"], resources=SMALL)
    body = f'{{"kind":"job","ref":"{job.id}",{change}}}'
    address = f"{server.address}/api/v1/projects/astro/tags"
    assert httpx.post(address, headers=headers(server), content=body).status_code == 422


def test_the_log_of_no_job_is_not_found_before_the_stream_begins(server: ServerProcess) -> None:
    address = f"{server.address}/api/v1/projects/astro/jobs/nope/log/stream"
    assert httpx.get(address, headers=headers(server)).status_code == 404


def test_an_id_cannot_lead_to_another_address(server: ServerProcess) -> None:
    with pytest.raises(InvalidInput, match="would lead elsewhere"):
        server.client().tokens.revoke("../projects/astro")


def test_a_log_ends_for_a_member_who_was_removed(server: ServerProcess) -> None:
    project = server.client().in_project("astro")
    secret = project.users.create("ana", Role.MEMBER).token.secret
    assert secret is not None
    script = "while true; do echo more; sleep 0.1; done"
    job = server.client(secret).in_project("astro").jobs.submit(["sh", "-c", script], resources=SMALL)
    address = f"{server.address}/api/v1/projects/astro/jobs/{job.id}/log/stream"
    try:
        with httpx.stream("GET", address, headers={"Authorization": f"Bearer {secret}"}, timeout=60) as lines:
            heard = lines.iter_lines()
            next(heard)
            project.users.remove("ana")
            for _ in heard:  # ends: the job itself never would
                pass
    finally:
        project.jobs.get(job.id).kill()
