"""A text app is given word vectors: one file of the lake, checked, which goes along with the examples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from easel.errors import InvalidInput
from easel.flow.apps.declare import declare_app
from easel.flow.apps.feed import feed
from easel.flow.apps.ready import candidates_of
from easel.flow.apps.trial import learn
from easel.flow.apps.vectors import give_vectors
from easel.flow.lake.checkout import checkout
from easel.records.app import App
from easel.records.identity import Caller
from easel.store import apps
from easel.testing.engine import EngineUnderTest

GLOVE = b"good 1.0 0.0\nfine 0.9 0.1\nbad -1.0 0.0\npoor -0.9 0.1\n"
PAIRS = [(f"a {word} film {k}", label) for k in range(6) for word, label in (("good", "yes"), ("bad", "no"))]


@dataclass(frozen=True)
class Folder:
    """A trial's place on this machine."""

    arguments: Mapping[str, Any]
    home: Path

    @property
    def input(self) -> Path:
        return self.home / "input"

    @property
    def output(self) -> Path:
        return self.home / "output"

    @property
    def checkpoint(self) -> Path:
        (self.home / "checkpoint").mkdir(exist_ok=True)
        return self.home / "checkpoint"

    def asked_to_give_way(self) -> bool:
        return False


def declared(engine: EngineUnderTest, program: str = "input: text\noutput: [no, yes]") -> Caller:
    ana = engine.caller()
    with engine.store.write() as tx:
        declare_app(tx, ana, "reviews", program)
    return ana


def stored(engine: EngineUnderTest, ana: Caller) -> App:
    with engine.store.read() as tx:
        return apps.find(tx, ana.project_id, "reviews")


@pytest.mark.parametrize("vectors_first", [True, False])
def test_vectors_reach_the_trial_whether_they_come_before_or_after_the_examples(
    engine: EngineUnderTest, tmp_path: Path, vectors_first: bool
) -> None:
    ana = declared(engine)
    engine.upload({"glove.txt": GLOVE}, "glove")
    if not vectors_first:
        feed(engine.lake, ana, "reviews", PAIRS)
    give_vectors(engine.lake, ana, "reviews", "/data/glove.txt")
    if vectors_first:
        feed(engine.lake, ana, "reviews", PAIRS)
    app = stored(engine, ana)
    (candidate,) = [one for one in candidates_of(app) if one.number("vectors", 0)]
    assert app.examples_set is not None
    arguments = {"program": app.program, "candidate": candidate.to_json(), "seed": 0, "budget_s": 0.1}
    place = Folder({**arguments, "vectors": app.vectors}, tmp_path)
    checkout(engine.lake, ana, app.examples_set, place.input)
    place.output.mkdir()
    found = learn(place)
    assert found["candidate"] == "text_network(lr=0.003, vectors=2, width=1)"
    assert found["examples"] == len(PAIRS)


def test_a_file_set_of_one_file_will_do_and_several_files_will_not(engine: EngineUnderTest) -> None:
    ana = declared(engine)
    engine.upload({"glove.txt": GLOVE, "other.txt": GLOVE + b"dull -1 0\n"}, "glove")
    with pytest.raises(InvalidInput, match="is 2 files: name the one file"):
        give_vectors(engine.lake, ana, "reviews", "/@glove:1")
    engine.upload({"glove.txt": GLOVE}, "one")
    assert give_vectors(engine.lake, ana, "reviews", "/@one:1").vector_size == 2


def test_a_file_that_holds_something_else_leaves_the_app_as_it_was(engine: EngineUnderTest) -> None:
    ana = declared(engine)
    engine.upload({"essay.txt": b"it was a dark and stormy night\n"}, "essay")
    with pytest.raises(InvalidInput, match="line 1: expected a word and its numbers"):
        give_vectors(engine.lake, ana, "reviews", "/data/essay.txt")
    assert stored(engine, ana).vectors is None


def test_vectors_are_of_no_use_to_an_app_that_reads_no_text(engine: EngineUnderTest) -> None:
    ana = declared(engine, "input: {size: number}\noutput: [no, yes]")
    engine.upload({"glove.txt": GLOVE}, "glove")
    with pytest.raises(InvalidInput, match="word vectors are for apps that read text"):
        give_vectors(engine.lake, ana, "reviews", "/data/glove.txt")


def test_an_app_with_rates_inside_its_trials_has_no_candidates_for_single_rates(
    engine: EngineUnderTest,
) -> None:
    ana = engine.caller()
    with engine.store.write() as tx:
        declare_app(tx, ana, "reviews", "input: series of tensor 1\noutput: [no, yes]", rates_inside=True)
    feed(engine.lake, ana, "reviews", [([[k], [k + 1.0]], "yes" if k % 2 else "no") for k in range(8)])
    rates = {one.text("lr", "grid") for one in candidates_of(stored(engine, ana))}
    assert rates == {"grid"}
