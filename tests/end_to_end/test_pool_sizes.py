"""`easel simulate`: what a larger pool would bring and cost, by the jobs that the installation itself ran."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.end_to_end.test_code import easel

from easel.errors import Denied, InvalidInput
from easel.sdk.client import Client
from easel.testing.server import ServerProcess, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("server"), worker_vcpu="1") as made:
        yield made


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Client:
    root = server.client()
    root.projects.create("astro")
    return root.in_project("astro")


def test_without_a_history_it_says_so(client: Client) -> None:
    with pytest.raises(InvalidInput, match="nothing to learn from"):
        client.pool_sizes()


def test_a_larger_pool_is_compared_by_the_jobs_that_ran(
    server: ServerProcess, client: Client, tmp_path: Path
) -> None:
    jobs = [client.jobs.submit("sleep 0.5", resources={"vcpu": 1}) for _ in range(5)]
    for job in jobs:
        job.wait(120)
    found = client.pool_sizes([1, 4], per_hour=2.0)
    assert (found.unit, found.units, found.jobs, found.trials) == ("device", 1, 5, 0)
    today, one, four = found.sizes
    assert (one.per_month, four.per_month) == (2.0 * 730.5, 8.0 * 730.5)
    assert today.waiting.mean_s > one.waiting.mean_s > four.waiting.mean_s == 0.0
    assert today.to_best_s is None, "there are no apps"
    assert found.recommended == 0, "nobody minds a few seconds"
    assert "Today's pool is enough" in found.words
    shown = easel(client, tmp_path, "simulate", "--more", "1", "--per-hour", "2")
    assert shown.returncode == 0, shown.stderr
    assert "1461.00" in shown.stdout
    assert "Today's pool is enough" in shown.stdout


def test_the_whole_installations_history_is_for_its_admins(server: ServerProcess, client: Client) -> None:
    bob = server.client(client.users.create("bob").token.secret, "astro")
    with pytest.raises(Denied):
        bob.pool_sizes()
