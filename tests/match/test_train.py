"""A trial learns, repeats, resumes, stops in time and stores what it learned."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.match import worlds
from tests.match.worlds import World

from easel.errors import InvalidInput
from easel.match.candidate import Candidate
from easel.match.loop import Diverged
from easel.match.model import load_model, present
from easel.match.propose import propose_candidates
from easel.match.registry import all_families
from easel.match.split import assign_folds
from easel.match.summary import strata, summarise
from easel.match.train import Conditions, Trained, train

CONDITIONS = Conditions(seed=1, budget_s=600.0, clock=time.monotonic, epochs=12)

LEARNABLE: list[tuple[Callable[[], World], str, float]] = [
    (worlds.pictures, "convnet", 0.9),
    (worlds.pictures, "svm", 0.7),
    (worlds.recovery, "unet", 0.6),
    (worlds.recovery, "autoencoder", 0.25),
    (worlds.recovery, "pix2pix_gan", 0.6),
    (worlds.waves, "minirocket", 0.95),
    (worlds.waves, "multirocket_hydra", 0.95),
    (worlds.waves, "quant", 0.9),
    (worlds.waves, "fcn", 0.9),
    (worlds.waves, "gru", 0.75),
    (worlds.waves, "bilstm", 0.9),
    (worlds.translation, "seq2seq", 0.15),
    (worlds.trees, "tree_lstm", 0.9),
    (worlds.trees, "tree_kernel_svm", 0.9),
    (worlds.texts, "text_linear", 0.9),
    (worlds.texts, "text_bayes", 0.9),
    (worlds.texts, "text_network", 0.9),
    (worlds.general, "bit_rnn", 0.9),
    (worlds.copying, "bit_autoencoder", 0.9),
]
TABLES = ["logistic_regression", "svm", "random_forest", "extra_trees", "lightgbm", "boosted_trees"]
TABLES += ["neural_network", "bayes_point", "averaged_perceptron", "tabm", "real_mlp", "catboost"]
REGRESSORS = ["linear", "blend", *TABLES[1:]]


def candidate_of(world: World, family: str) -> Candidate:
    """The first candidate of a family that is proposed for these examples."""
    program, examples = world
    if not all_families()[family].installed:
        pytest.skip(f"{family} is not installed")
    found = [c for c in propose_candidates(program, summarise(program, examples)) if c.family == family]
    assert found, f"{family} is not proposed"
    if family in ("random_forest", "extra_trees"):
        return Candidate(family, (("trees", 20),))
    if family == "catboost":
        return Candidate(family, (("trees", 50),))
    return Candidate(family, (("lr", 0.01), ("width", 0.5))) if family == "tree_lstm" else found[0]


def run(world: World, candidate: Candidate, conditions: Conditions = CONDITIONS) -> Trained:
    program, examples = world
    folds = [fold % 2 for fold in assign_folds(strata(program, examples))]
    return train(candidate, program, examples, folds, conditions)


def check(world: World, family: str, least: float, folder: Path) -> None:
    """It learns, and the stored model answers exactly as the one in memory."""
    trained = run(world, candidate_of(world, family))
    assert trained.measurement.quality >= least
    trained.model.save(folder)
    inputs = [example.input for example in world[1][:3]]
    again = load_model(folder)
    np.testing.assert_allclose(again.predict(inputs), trained.model.predict(inputs), rtol=1e-5, atol=1e-6)
    assert len(present(again, again.predict(inputs))) == 3
    assert not list(folder.glob("*.pkl")) + list(folder.glob("*.pt"))


@pytest.mark.parametrize(
    ("make", "family", "least"), LEARNABLE, ids=[f"{f}-{m.__name__}" for m, f, _ in LEARNABLE]
)
def test_every_family_learns_its_kind_of_data(
    make: Callable[[], World], family: str, least: float, tmp_path: Path
) -> None:
    check(make(), family, least, tmp_path)


@pytest.mark.parametrize("family", TABLES)
def test_every_table_family_classifies_with_gaps_and_categories(family: str, tmp_path: Path) -> None:
    check(worlds.table(), family, 0.8, tmp_path)


@pytest.mark.parametrize("family", REGRESSORS)
def test_every_table_family_predicts_numbers(family: str, tmp_path: Path) -> None:
    check(worlds.line(), family, 0.45, tmp_path)


@pytest.mark.parametrize("family", ["linear", "extra_trees", "neural_network", "tabm", "catboost"])
def test_several_numbers_are_predicted_at_once(family: str, tmp_path: Path) -> None:
    check(worlds.line(outputs=2), family, 0.45, tmp_path)


def test_the_same_seed_gives_the_same_measurement_and_weights() -> None:
    world = worlds.waves()
    one, two = (run(world, candidate_of(world, "fcn")) for _ in range(2))
    assert one.measurement.quality == two.measurement.quality
    inputs = [example.input for example in world[1]]
    np.testing.assert_array_equal(one.model.predict(inputs), two.model.predict(inputs))


@pytest.mark.parametrize(
    ("world", "family"), [(worlds.pictures(40), "convnet"), (worlds.recovery(), "pix2pix_gan")]
)
def test_a_trial_killed_halfway_resumes_to_the_same_model(world: World, family: str, tmp_path: Path) -> None:
    candidate = candidate_of(world, family)
    whole = run(world, candidate)
    calls = 0

    class Killed(Exception):
        pass

    def die_in_the_third_epoch(share: float) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise Killed

    stopped = replace(CONDITIONS, checkpoints=tmp_path, progress=die_in_the_third_epoch)
    with pytest.raises(Killed):
        run(world, candidate, stopped)
    assert list(tmp_path.glob("*.safetensors"))
    resumed = run(world, candidate, replace(CONDITIONS, checkpoints=tmp_path))
    assert resumed.measurement.quality == whole.measurement.quality
    inputs = [example.input for example in world[1]]
    np.testing.assert_allclose(resumed.model.predict(inputs), whole.model.predict(inputs), rtol=1e-5)


def test_a_trial_out_of_budget_keeps_what_it_has() -> None:
    now = iter(range(0, 10**6, 100))
    tight = replace(CONDITIONS, budget_s=1.0, clock=lambda: float(next(now)))
    world = worlds.waves(40)
    assert run(world, candidate_of(world, "gru"), tight).measurement.stopped == "out of time"


def test_a_diverging_network_says_so() -> None:
    program, examples = worlds.waves(40)
    wild = Candidate("gru", (("lr", 1e30), ("width", 0.25)))
    with pytest.raises(Diverged, match="smaller learning rate"):
        run((program, examples), wild)


@pytest.mark.parametrize(
    ("labels", "says"),
    [
        (["no"] * 6, 'all 6 examples are of the class "no"'),
        (["no", "yes"], "two examples each"),
    ],
)
def test_too_little_to_learn_from_is_explained(labels: list[str], says: str) -> None:
    text = "{input: {[Tensor[2]], []}, output: {[Category[no, yes]], []}}"
    world = worlds.world(text, [([1.0, float(i)], label) for i, label in enumerate(labels)])
    with pytest.raises(InvalidInput, match=says):
        run(world, Candidate("svm"))


def test_two_examples_of_two_classes_are_enough() -> None:
    text = "{input: {[Tensor[2]], []}, output: {[Category], []}}"
    pairs = [([0.0, 0.0], "a"), ([0.1, 0.0], "a"), ([5.0, 5.0], "b"), ([5.1, 5.0], "b")]
    trained = run(worlds.world(text, pairs), Candidate("logistic_regression"))
    assert trained.measurement.quality == 1.0
    assert trained.measurement.validated_on == 4


def test_a_class_without_examples_gets_no_probability() -> None:
    text = "{input: {[Tensor[1]], []}, output: {[Category[a, b, never]], []}}"
    world = worlds.world(text, [([float(i % 2)], "ab"[i % 2]) for i in range(20)])
    trained = run(world, Candidate("svm"))
    assert trained.model.predict([world[1][0].input])[0, 2] == 0.0


def test_the_losses_point_at_the_wrong_label() -> None:
    text = "{input: {[Tensor[1]], []}, output: {[Category], []}}"
    pairs = [([float(i % 2)], "ab"[i % 2]) for i in range(40)]
    pairs[7] = (pairs[7][0], "a")
    trained = run(worlds.world(text, pairs), Candidate("logistic_regression"))
    assert int(np.nanargmax(trained.losses)) == 7
