"""A client reads the answers of servers of earlier releases: what they do not tell has a default."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.fixtures.keep_answers import FOLDER, answers

from easel.sdk.connection import sent
from easel.wire.app import BestModel, FeedPairs, Pair
from easel.wire.job import Command, Resources, SubmitJob
from easel.wire.simulation import PastTrial, Simulate

RELEASES = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("release", RELEASES, ids=lambda path: path.stem)
def test_no_answer_needs_a_field_that_an_earlier_release_did_not_tell(release: Path) -> None:
    then: dict[str, list[str]] = json.loads(release.read_text())
    assert len(then) > 100
    needed = {
        f"{name}.{field}"
        for name, model in answers().items()
        for field, about in model.model_fields.items()
        if name in then and about.is_required() and field not in then[name]
    }
    assert needed == set(), "give these a default: servers of earlier releases do not tell them"


def test_the_best_model_of_an_older_server_shows_its_score() -> None:
    told = {"candidate": "trees", "model": "flowers:3", "quality": 0.91}
    assert BestModel.model_validate(told).score() == 0.91
    assert BestModel.model_validate({**told, "shown": 0.88}).score() == 0.88


def test_what_nobody_said_is_not_sent() -> None:
    body = Simulate(history=[PastTrial(tenant="a", candidate="b", quality=None, cost=1.0)], devices=[2])
    assert sent(body)["history"] == [{"tenant": "a", "candidate": "b", "quality": None, "cost": 1.0}]
    assert sent(Simulate()) == {}


def test_what_would_be_so_anyway_is_not_sent_and_which_kind_a_value_is_always_is() -> None:
    pairs = [Pair(input=1.0, output="yes")]
    plain = FeedPairs(pairs=pairs, skip_bad=False, styles={}, first=1)
    assert sent(plain) == {"pairs": [{"input": 1.0, "output": "yes"}]}
    assert sent(FeedPairs(pairs=pairs, first=3))["first"] == 3
    job = SubmitJob(run=Command(argv=["true"]), resources=Resources(vcpu=2.0))
    assert sent(job) == {"run": {"kind": "command", "argv": ["true"]}, "resources": {"vcpu": 2.0}}
    assert SubmitJob.model_validate(sent(job)) == job
