"""The paper's `profile` and `autoprovision` example with a real training script, and what follows: bills, budgets."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Literal

import pytest

from easel.declare.roles import Role
from easel.errors import Conflict, Denied, InvalidInput, NotFound, QuotaExhausted
from easel.sdk.client import Client
from easel.testing.commands import run_as
from easel.testing.server import ServerProcess, running

SMALL = {"vcpu": 0.5, "memory_mb": 256}
TRAIN = dedent(
    """
    import argparse, pathlib
    import numpy as np

    options = argparse.ArgumentParser()
    options.add_argument("--epoch", type=int)
    options.add_argument("--batch-size", type=int)
    options.add_argument("--learning-rate", type=float)
    asked = options.parse_args()
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(10, 64))
    labels = rng.integers(10, size=4000)
    pixels = centres[labels] + rng.normal(size=(4000, 64))
    first, second = rng.normal(size=(64, 128)) / 8, rng.normal(size=(128, 10)) / 11
    for _ in range(asked.epoch):
        for rows in np.array_split(rng.permutation(4000), 4000 // asked.batch_size):
            hidden = np.maximum(pixels[rows] @ first, 0)
            scores = np.exp(hidden @ second - (hidden @ second).max(1, keepdims=True))
            wrong = scores / scores.sum(1, keepdims=True)
            wrong[np.arange(len(rows)), labels[rows]] -= 1
            back = (wrong @ second.T) * (hidden > 0)
            second -= asked.learning_rate * hidden.T @ wrong
            first -= asked.learning_rate * pixels[rows].T @ back
    accuracy = ((np.maximum(pixels @ first, 0) @ second).argmax(1) == labels).mean()
    pathlib.Path("output").mkdir(exist_ok=True)
    pathlib.Path("output/accuracy.txt").write_text(str(accuracy))
    print(f"[EASEL_METRIC] accuracy={accuracy}")
    """
)
TEMPLATE = "python train.py --epoch {20,200} --batch-size {64,256} --learning-rate 0.001"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="module")
def people(server: ServerProcess) -> dict[str, Client]:
    root = server.client()
    made = {"platform": root}
    for name, project, role in (
        ("ana", "astro", Role.ADMIN),
        ("eve", "bio", Role.ADMIN),
        ("max", "poor", Role.ADMIN),
    ):
        root.projects.create(project)
        secret = root.in_project(project).users.create(name, role).token.secret
        assert secret is not None
        made[name] = server.client(secret).in_project(project)
    return made


@pytest.fixture(scope="module")
def profiled(people: dict[str, Client]) -> Client:
    """Ana's project with the training code in the lake and a fitted profile of it."""
    ana = people["ana"]
    ana.jobs.submit(
        ["sh", "-c", 'mkdir -p output && printf %s "$0" > output/train.py', TRAIN],
        name="upload the code",
        output_set="mnist-code",
        resources=SMALL,
    ).wait()
    started = ana.profiles.start(
        "my-template",
        TEMPLATE,
        code="mnist-code",
        cpus=[0.5, 1],
        memories_mb=[256, 512],
        time_limit_s=60,
        tags={"app": "digits"},
    )
    assert started.state == "running"
    assert started.plan["runs"] < started.plan["grid"] == 16
    ana.profiles.wait("my-template", timeout=240)
    return ana


def until(found: Callable[[], bool], seconds: float = 60.0) -> None:
    """Asks a real server again and again; what it is asked must come true in time."""
    end = time.monotonic() + seconds
    while not found():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.1)


def test_a_profile_learns_from_its_runs(profiled: Client) -> None:
    profile = profiled.profiles.get("my-template")
    assert profile.state == "fitted"
    assert profile.version == 1
    assert profile.left_out is not None
    assert profile.model in profile.left_out
    assert {run["outcome"] for run in profile.runs} == {"finished"}
    for run in profile.runs:
        assert profiled.jobs.get(run["job"]).about.spec["tags"]["profile"] == "my-template:1"
        assert run["seconds"] > 0
        assert run["peak_mb"] > 0


def test_the_model_is_traced_to_the_runs_it_was_fitted_to(profiled: Client) -> None:
    runs = {run["job"] for run in profiled.profiles.get("my-template", 1).runs}
    edges = profiled.lake.trace("profile-my-template:1", one_step=True).edges
    assert {edge.job for edge in edges} == {
        run["job"] for run in profiled.profiles.get("my-template", 1).runs
    }
    assert {edge.source for edge in edges} == {f"{job}-output:1" for job in runs}


def test_the_papers_autoprovision_call_chooses_a_size_runs_it_and_keeps_the_promise(profiled: Client) -> None:
    made = profiled.profiles.provision("my-template", [40, 256], max_seconds=120)
    assert made.feasible
    assert made.offer is not None
    assert made.job is not None
    assert made.offer.sure_seconds <= 120
    assert made.job.spec["resources"]["vcpu"] == made.offer.vcpu
    job = profiled.jobs.get(made.job.id).wait(240)
    assert "accuracy" in job.metrics()

    until(lambda: profiled.bills.of(job.id).seconds is not None)
    bill = profiled.bills.of(job.id)
    assert bill.amount > 0
    assert bill.promised_cost == pytest.approx(made.offer.cost, abs=1e-6)
    assert job.about.usage is not None
    assert bill.seconds == pytest.approx(job.about.usage.wall_seconds)
    until(lambda: profiled.profiles.get("my-template").version == 2)
    again = profiled.profiles.get("my-template")
    assert job.id in [run["job"] for run in again.runs]
    assert len(again.runs) == len(profiled.profiles.get("my-template", 1).runs) + 1


def test_more_epochs_are_expected_to_take_longer_and_extrapolation_is_said(profiled: Client) -> None:
    short, long = (
        profiled.profiles.estimate("my-template", {"epoch": epochs, "batch-size": 64}, [(0.5, 512), (1, 512)])
        for epochs in (100, 2000)
    )
    assert long[0].seconds > short[0].seconds
    assert long[0].extrapolated == ["epoch"]
    assert short[0].low_seconds < short[0].seconds < short[0].high_seconds


def test_limits_that_cannot_be_kept_are_answered_with_ways_out(profiled: Client) -> None:
    made = profiled.profiles.provision("my-template", [1000, 64], max_seconds=1, max_cost=1e-6)
    assert not made.feasible
    assert made.job is None
    assert made.why
    assert all(way.remedy.startswith("allow") for way in made.nearest)


def test_the_front_and_the_picture_are_there(profiled: Client) -> None:
    made = profiled.profiles.provision("my-template", [40, 256], max_cost=1.0, submit=False)
    assert made.job is None
    costs = [offer.sure_cost for offer in made.front]
    assert costs == sorted(costs, reverse=True)
    assert profiled.profiles.picture("my-template", [40, 256], max_cost=1.0).startswith(b"\x89PNG")


def test_everything_works_from_the_command_line(profiled: Client, tmp_path: Path) -> None:
    plan = run_as(profiled, "profiles", "start", "other", TEMPLATE, "--code", "mnist-code", "--plan")
    assert plan.returncode == 0, plan.stderr
    assert "of 36 runs, at most" in plan.stderr
    shown = run_as(profiled, "profiles", "show", "my-template")
    assert "leave-one-out error" in shown.stdout
    found = run_as(profiled, "estimate", "my-template", "--values", "epoch=40,batch-size=64", "--json")
    assert len(json.loads(found.stdout)) == 5
    picture = tmp_path / "grid.png"
    options = ["--values", "30,256", "--deadline", "23:59:59", "--picture", str(picture), "--dry-run"]
    asked = run_as(profiled, "provision", "my-template", *options)
    assert asked.returncode == 0, asked.stderr
    assert picture.read_bytes().startswith(b"\x89PNG")
    ran = run_as(profiled, "provision", "my-template", "--values", "5,256", "--max-cost", "2.00")
    assert ran.returncode == 0, ran.stderr
    refused = run_as(
        profiled,
        "provision",
        "my-template",
        "--values",
        "1000,64",
        "--max-time",
        "1s",
        "--max-cost",
        "0.000001",
    )
    assert refused.returncode == 5, refused.stdout + refused.stderr
    assert "Not possible" in refused.stderr
    report = run_as(profiled, "bills", "report", "--by", "app", "--json")
    assert "digits" in {item["group"] for item in json.loads(report.stdout)}
    assert run_as(profiled, "bill", "prices").returncode == 0


def test_bills_add_up_by_user_month_app_and_job(profiled: Client, people: dict[str, Client]) -> None:
    by_job = profiled.bills.report("job")
    total = sum(item.amount for item in by_job.items)
    assert total > 0
    groups: tuple[Literal["user", "month", "app"], ...] = ("user", "month", "app")
    for by in groups:
        report = profiled.bills.report(by)
        assert sum(item.amount for item in report.items) == pytest.approx(total)
    assert [item.group for item in profiled.bills.report("user").items] == ["ana"]
    everywhere = {item.group: item.amount for item in people["platform"].bills.everywhere().items}
    assert everywhere["astro"] == pytest.approx(total)
    with pytest.raises(Denied):
        profiled.bills.everywhere()


def test_other_projects_know_nothing_of_it(people: dict[str, Client], profiled: Client) -> None:
    eve = people["eve"]
    with pytest.raises(NotFound):
        eve.profiles.get("my-template")
    with pytest.raises(NotFound):
        eve.profiles.provision("my-template", [1, 1], max_seconds=10)
    with pytest.raises(NotFound):
        eve.bills.of(profiled.bills.report("job").items[0].group)
    assert eve.bills.report("job").items == []
    assert list(eve.profiles.list()) == []


def test_wrong_templates_and_values_are_explained(profiled: Client) -> None:
    with pytest.raises(InvalidInput, match="one value teaches nothing"):
        profiled.profiles.start("wrong", "python train.py --epoch {5}")
    with pytest.raises(InvalidInput, match="missing batch-size"):
        profiled.profiles.estimate("my-template", {"epoch": 5}, [(1, 512)])
    with pytest.raises(InvalidInput, match="budget"):
        profiled.profiles.plan("wrong", TEMPLATE, budget=1e-9)


def test_a_profile_whose_runs_all_fail_says_so(people: dict[str, Client]) -> None:
    eve = people["eve"]
    eve.profiles.start("broken", "exit {3,4}", cpus=[0.5], memories_mb=[64, 128])
    with pytest.raises(Conflict, match="no profiling run finished"):
        eve.profiles.wait("broken", timeout=120)
    with pytest.raises(Conflict, match="has no model"):
        eve.profiles.provision("broken", [3], max_seconds=10)


def test_running_out_of_memory_is_said_in_words_that_profiles_understand(people: dict[str, Client]) -> None:
    hungry = "import time; x = bytearray(300 << 20); time.sleep(0.5)"
    job = people["eve"].jobs.submit(["python", "-c", hungry], resources={"vcpu": 0.5, "memory_mb": 64})
    job.wait(60, check=False)
    assert job.state == "failed"
    assert job.about.end_reason == "memory-limit"


def test_a_spent_budget_stops_running_jobs_holds_the_queue_and_refuses_new_ones(
    people: dict[str, Client],
) -> None:
    poor = people["max"]
    assert poor.bills.budget().limit is None
    long = poor.jobs.submit(["sleep", "300"], resources=SMALL)
    until(lambda: long.refresh().state == "running")
    poor.queues.change(max_active=1)
    waiting = poor.jobs.submit(["true"], resources=SMALL)
    # A hundredth of a cent is gone within seconds at these prices.
    poor.bills.set_budget(0.000005)
    long.wait(60, check=False)
    assert long.state == "killed"
    assert "budget" in (long.about.reason or "")
    with pytest.raises(QuotaExhausted, match="budget"):
        poor.jobs.submit(["true"], resources=SMALL)
    kinds = {event.kind for event in poor.events.list()}
    assert {"budget.set", "budget.warned"} <= kinds
    assert waiting.refresh().state == "queued"
    poor.bills.remove_budget()
    waiting.wait(60)
    poor.jobs.submit(["true"], resources=SMALL).wait(60)


def test_changing_one_thing_of_a_budget_leaves_the_rest(people: dict[str, Client]) -> None:
    """A soft limit in all with warnings of its own stays one when its sum changes, from Python and the shell."""
    eve = people["eve"]
    eve.bills.set_budget(500, period="total", hard_stop=False, warn_at=[0.25])
    eve.bills.set_budget(600)
    assert _terms(eve) == (600, "total", False, [0.25])
    changes = (
        (["--set", "700"], (700, "total", False, [0.25])),
        (["--hard"], (700, "total", True, [0.25])),
        (["--period", "month"], (700, "month", True, [0.25])),
        (["--warn-at", "0.5", "--warn-at", "0.9", "--soft"], (700, "month", False, [0.5, 0.9])),
    )
    for options, expected in changes:
        done = run_as(eve, "bills", "budget", *options)
        assert done.returncode == 0, done.stderr
        assert _terms(eve) == expected
    assert run_as(eve, "bills", "budget", "--remove").returncode == 0
    refused = run_as(eve, "bills", "budget", "--soft")
    assert refused.returncode != 0
    assert "--set" in refused.stderr
    eve.bills.set_budget(5)
    assert _terms(eve) == (5, "month", True, [0.5, 0.8, 1.0])
    eve.bills.remove_budget()


def _terms(client: Client) -> tuple[float | None, str | None, bool, list[float]]:
    budget = client.bills.budget()
    return budget.limit, budget.period, budget.hard_stop, budget.warn_at


def test_only_platform_admins_change_prices_and_bills_follow(people: dict[str, Client]) -> None:
    eve = people["eve"]
    with pytest.raises(Denied):
        eve.bills.set_prices("free")
    assert people["platform"].bills.set_prices("free").items[-1].book["name"] == "free"
    job = eve.jobs.submit(["true"], resources=SMALL).wait(60)
    until(lambda: bool(eve.bills.of(job.id).lines))
    assert eve.bills.of(job.id).amount == 0
    people["platform"].bills.set_prices("acai")
