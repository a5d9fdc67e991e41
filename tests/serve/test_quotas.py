"""Quotas are refused at once, in words that say what to do."""

from __future__ import annotations

import pytest
from tests.serve.conftest import World

from easel.cli.quotas import parse_size
from easel.errors import InvalidInput
from easel.flow.quotas import QuotaAsk, refusal
from easel.records.quota import Quota, QuotaUse

JOB = {"name": "x", "run": {"kind": "entry", "target": "m:f"}}
PATH = "/api/v1/projects/astro/quotas"


def test_jobs_beyond_the_quota_of_a_member_or_the_project_are_refused(either_world: World) -> None:
    world = either_world
    assert world.call("astro-member", "PUT", PATH, json={"jobs": 1}).status_code == 403
    assert world.call("astro-admin", "PUT", PATH, json={"jobs": 1}).status_code == 403  # the project's own
    assert world.call("astro-admin", "PUT", PATH, json={"user": "astro-member", "jobs": 1}).status_code == 200
    jobs = "/api/v1/projects/astro/jobs"
    answers = [world.call("astro-member", "POST", jobs, json=JOB) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 429]
    assert "you have 1 of 1 jobs waiting or running" in answers[1].json()["detail"]
    assert world.call("astro-admin", "POST", jobs, json=JOB).status_code == 201
    assert world.call("root", "PUT", PATH, json={"jobs": 2}).status_code == 200
    refused = world.call("astro-admin", "POST", jobs, json=JOB)
    assert "project astro has 2 of 2 jobs" in refused.json()["detail"]
    shown = world.call("astro-member", "GET", PATH).json()["items"]
    assert [(each["user"], each["jobs"], each["used_jobs"]) for each in shown] == [
        (None, 2, 2),
        ("astro-member", 1, 1),
    ]
    assert world.call("root", "PUT", PATH, json={}).status_code == 200
    assert world.call("astro-admin", "POST", jobs, json=JOB).status_code == 201
    assert world.call("bio-member", "GET", PATH).status_code == 404


def test_files_beyond_the_quota_are_refused_before_a_byte_is_sent(world: World) -> None:
    assert world.call("root", "PUT", PATH, json={"bytes": 1000}).status_code == 200
    upload = world.call("astro-member", "POST", "/api/v1/projects/astro/uploads", json={}).json()["id"]
    files = f"/api/v1/projects/astro/uploads/{upload}/files"
    item = {"path": "/a", "size": 1001, "hash": "00" * 32}
    refused = world.call("astro-member", "POST", files, json={"files": [item]})
    assert (refused.status_code, "easel storage" in refused.json()["detail"]) == (429, True)
    assert (
        world.call("astro-member", "POST", files, json={"files": [{**item, "size": 10}]}).status_code == 200
    )


def test_gpu_hours_are_asked_for_only_by_jobs_with_gpus() -> None:
    quota, use = Quota(gpu_hours=10), QuotaUse(0, 10.0, 0)
    assert refusal("you", quota, use, QuotaAsk(jobs=1)) is None
    told = refusal("you", quota, use, QuotaAsk(jobs=1, gpus=1))
    assert told is not None
    assert "10.0 of 10 GPU-hours this month" in told


def test_sizes_are_read_as_people_write_them() -> None:
    assert [parse_size(text) for text in ("1000", "2k", "1.5 GiB", "3TB")] == [
        1000,
        2048,
        3 * 2**29,
        3 * 2**40,
    ]
    with pytest.raises(InvalidInput, match="no size"):
        parse_size("much")
