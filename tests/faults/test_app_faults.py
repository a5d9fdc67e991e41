"""Bad input and faults of apps, each done for real: clear answers, nothing lost, others unaffected."""

from __future__ import annotations

import io
import os
import signal
import struct
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from easel.declare.page import PageRequest
from easel.declare.resources import Resources
from easel.declare.roles import Role
from easel.errors import InvalidInput
from easel.flow.apps.declare import declare_app, delete_app
from easel.flow.apps.feed import feed
from easel.flow.apps.feed_files import feed_files
from easel.flow.apps.infer import Models, infer
from easel.flow.apps.refine import browse, refine
from easel.flow.apps.trial import read_pairs
from easel.flow.apps.trial_job import LEARN, trial_spec
from easel.flow.budgets import set_budget
from easel.flow.jobs.submit import submit_job
from easel.flow.lake.checkout import checkout
from easel.match.candidate import Candidate
from easel.match.raw import plain_value
from easel.price.budget import Budget
from easel.records.app import App, Fed
from easel.records.decision import Reasons, StartTrial, decision_json
from easel.records.identity import Caller
from easel.records.job import JobState
from easel.store import app_trials, apps
from easel.testing.engine import EngineUnderTest
from easel.testing.pool import PoolUnderTest

PHOTOS = "input: image 8 x 8\noutput: [dark, light]"
TABLE = "input: {size: number}\noutput: [no, yes]"


def declared(engine: EngineUnderTest, program: str, name: str = "app") -> Caller:
    ana = engine.caller()
    with engine.store.write() as tx:
        declare_app(tx, ana, name, program)
    return ana


def rows(n: int, seed: int = 0) -> list[tuple[Any, Any]]:
    sizes = np.random.default_rng(seed).normal(size=n)
    return [({"size": float(size)}, "yes" if size > 0 else "no") for size in sizes]


def pictures(n: int) -> list[tuple[Any, Any]]:
    rng = np.random.default_rng(0)
    found = []
    for k in range(n):
        pixels = rng.integers(0, 90, size=(8, 8, 1)) + (120 if k % 2 else 0)
        found.append((pixels.astype(np.float32), "light" if k % 2 else "dark"))
    return found


def png(width: int, height: int) -> bytes:
    """A valid head of a huge picture: what a decompression bomb looks like from outside."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
        + chunk(b"IEND", b"")
    )


def jpeg() -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.full((32, 32), 200, np.uint8)).save(out, "JPEG")
    return out.getvalue()


def stored(engine: EngineUnderTest, ana: Caller) -> App:
    with engine.store.read() as tx:
        return apps.find(tx, ana.project_id, "app")


def test_a_torn_jpeg_and_a_bomb_are_named_and_the_others_are_kept(engine: EngineUnderTest) -> None:
    ana = declared(engine, PHOTOS)
    engine.upload(
        {
            "dark/good.jpg": jpeg(),
            "dark/torn.jpg": jpeg()[:300],
            "light/bomb.png": png(60_000, 60_000),
            "light/good.jpg": jpeg(),
        },
        "photos",
    )
    with pytest.raises(InvalidInput, match="damaged"):
        feed_files(engine.lake, ana, "app", "/data/")
    assert stored(engine, ana).examples_set is None
    fed = feed_files(engine.lake, ana, "app", "/data/", skip_bad=True)
    assert fed.new == 2
    reasons = sorted(one.why for one in fed.refused)
    assert any("damaged" in why for why in reasons)
    assert any("pixels" in why for why in reasons)


def test_pixels_that_are_not_numbers_are_counted(engine: EngineUnderTest) -> None:
    ana = declared(engine, PHOTOS)
    bad = np.zeros((8, 8, 1), np.float32)
    bad[0, :3] = np.nan
    with pytest.raises(InvalidInput, match="pair 1: input: 3 of 64 numbers are NaN or infinite"):
        feed(engine.lake, ana, "app", [(plain_value(bad), "dark")])


def test_an_array_that_lies_about_its_size_is_refused(engine: EngineUnderTest) -> None:
    ana = declared(engine, PHOTOS)
    lie = {"$array": "AAAA", "kind": "<f4", "shape": [8, 8, 1]}
    with pytest.raises(InvalidInput, match="3 bytes do not fill 8 × 8 × 1"):
        feed(engine.lake, ana, "app", [(lie, "dark")])


def test_two_examples_of_one_class_wait_for_more(engine: EngineUnderTest) -> None:
    ana = declared(engine, TABLE)
    feed(engine.lake, ana, "app", [({"size": 1.0}, "yes"), ({"size": 2.0}, "yes")])
    pool = PoolUnderTest(engine.lake)
    pool.device()
    assert pool.turn() == []


def test_a_file_of_another_app_cannot_be_fed(engine: EngineUnderTest) -> None:
    ana = declared(engine, PHOTOS)
    with pytest.raises(InvalidInput, match="files of this app lie below /apps/app/"):
        feed(engine.lake, ana, "app", [({"$file": "/apps/other/1.png"}, "dark")])


def test_an_app_that_comes_after_one_of_its_name_starts_empty(
    engine: EngineUnderTest, tmp_path: Path
) -> None:
    ana = declared(engine, TABLE)
    feed(engine.lake, ana, "app", rows(8))
    with engine.store.write() as tx:
        delete_app(tx, ana, "app")
        declare_app(tx, ana, "app", TABLE)
    fed = feed(engine.lake, ana, "app", rows(4, seed=5))
    assert replace(fed, notes=()) == Fed(4, 0, 4)
    now = stored(engine, ana)
    assert now.examples_set is not None
    checkout(engine.lake, ana, now.examples_set, tmp_path / "here")
    assert len(list(read_pairs(tmp_path / "here", frozenset()))) == 4


def test_a_project_whose_budget_is_spent_keeps_nobody_else_waiting(engine: EngineUnderTest) -> None:
    ana = declared(engine, TABLE)
    admin = replace(ana, role=Role.ADMIN)
    eve = engine.caller("eve", project="bio")
    with engine.store.write() as tx:
        declare_app(tx, eve, "others", TABLE)
        set_budget(tx, admin, Budget(0))
    feed(engine.lake, ana, "app", rows(12))
    feed(engine.lake, eve, "others", rows(12))
    pool = PoolUnderTest(engine.lake)
    pool.device(vcpu=2.0)
    assert [job.user_id for job in pool.turn()] == [eve.user.id, eve.user.id]


@pytest.mark.slow
def test_a_network_that_diverges_is_a_failed_trial_and_not_a_model(engine: EngineUnderTest) -> None:
    ana = declared(engine, PHOTOS)
    feed(engine.lake, ana, "app", pictures(40))
    hopeless = Candidate("convnet", (("augment", "none"), ("lr", 1e30), ("width", 0.25)))
    job = start(engine, ana, hopeless)
    (ended,) = engine.finish(engine.controller(), job, seconds=240)
    assert ended.state is JobState.FAILED
    assert "learned anything" in (ended.reason or "")
    PoolUnderTest(engine.lake).turn()
    with engine.store.read() as tx:
        trial = app_trials.trials(tx)[0]
    assert (trial.ended, trial.quality, trial.model_set) == (True, None, None)


@pytest.mark.slow
def test_a_trial_killed_halfway_goes_on_from_its_checkpoint_and_its_model_answers(
    engine: EngineUnderTest, tmp_path: Path
) -> None:
    ana = declared(engine, PHOTOS)
    examples = pictures(150)
    feed(engine.lake, ana, "app", examples)
    # Five folds of sixty passes: the first checkpoint is there long before the end.
    job = start(engine, ana, Candidate("convnet", (("augment", "affine"), ("lr", 3e-3), ("width", 0.5))), 150)
    controller = engine.controller()
    kept = engine.home / "run" / "checkpoints" / job.id
    engine.turn_until(controller, lambda: any(kept.glob("*.safetensors")), 240)
    os.kill(engine.agent_pid(job), signal.SIGKILL)
    (ended,) = engine.finish(controller, job, seconds=240)
    assert (ended.state, ended.attempt) == (JobState.FINISHED, 2), ended.reason
    assert ended.result is not None
    assert ended.result["resumed_epochs"] >= 1
    assert ended.result["examples"] == 150
    PoolUnderTest(engine.lake).turn()
    found = infer(engine.lake, Models(tmp_path), ana, "app", [plain_value(x) for x, _ in examples[:2]])
    assert [answer["label"] for answer in found.answers] == ["dark", "light"]
    assert found.model == ended.output_set


@pytest.mark.slow
def test_feeding_refining_and_deleting_while_it_trains(engine: EngineUnderTest, tmp_path: Path) -> None:
    ana = declared(engine, TABLE)
    feed(engine.lake, ana, "app", rows(60))
    pool = PoolUnderTest(engine.lake)
    pool.device(vcpu=2.0)
    first, second = pool.turn()
    assert feed(engine.lake, ana, "app", rows(5, seed=9)).total == 65
    controller = engine.controller()
    (ended,) = engine.finish(controller, first, seconds=240)
    assert ended.state is JobState.FINISHED, ended.reason
    assert ended.result is not None
    assert ended.result["examples"] == 60
    with engine.store.write() as tx:
        everything = [one.digest for one in browse(tx, ana, "app", PageRequest(limit=500)).items]
        refine(tx, ana, "app", everything, on=False)
    assert pool.turn() == []
    # The model found before goes on answering.
    assert infer(engine.lake, Models(tmp_path), ana, "app", [{"size": 1.0}]).answers
    with engine.store.write() as tx:
        delete_app(tx, ana, "app")
    (other,) = engine.finish(controller, second, seconds=240)
    assert other.state in (JobState.KILLED, JobState.FINISHED)
    assert pool.turn() == []
    with engine.store.read() as tx:
        assert app_trials.trials(tx) == []


def start(engine: EngineUnderTest, ana: Caller, candidate: Candidate, examples: int = 40) -> Any:
    """The very candidate, as the service loop would start it."""
    with engine.store.write() as tx:
        app = apps.find(tx, ana.project_id, "app")
        arguments = {"program": app.program, "candidate": candidate.to_json(), "seed": 0, "budget_s": 200.0}
        spec = trial_spec(app, LEARN, arguments, candidate.name, "app-model", Resources(1.0, 2048))
        job = submit_job(tx, ana, spec)
        decision = decision_json(
            StartTrial(
                app.id, candidate.name, 0, "core", Reasons("as the test says", 0.5, 0.1, 0.0, 1.0, 0.0)
            )
        )
        app_trials.add(tx, [app.id], job.id, candidate.name, candidate.to_json(), decision, examples)
        return job
