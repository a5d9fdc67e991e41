"""Several networks trained as one program are as good as alone, and do not touch each other."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.match import worlds
from tests.match.test_train import CONDITIONS, candidate_of, run

from easel.match import fit_packed, packed, train_network
from easel.match.candidate import Candidate
from easel.match.checkpoint import state_in
from easel.match.device_data import Batch, ByteScale, Data, batches
from easel.match.encode.images import fit_pictures
from easel.match.examples import Example, Single
from easel.match.kinds import OUT_OF_TIME
from easel.match.loop import Diverged, Schedule, TrainingRun, batch_for, fit
from easel.match.objectives import ClassObjective
from easel.match.packed import PackedMember, fit_together
from easel.match.packing import RATES
from easel.match.zoo.images import build_image_network


@pytest.fixture
def pictures() -> Data:
    torch.manual_seed(0)
    y = torch.randint(4, (240,))
    x = 0.5 * torch.randn(240, 1, 12, 12)
    x[torch.arange(240), 0, 3 * y] += 1.5
    return Data({"x": x}, {"y": y})


@pytest.fixture(params=["merged", "branches"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small networks as one, and beside each other."""
    if request.param == "branches":
        monkeypatch.setattr(packed, "merges", lambda *given: False)
    return str(request.param)


def members(rates: tuple[float, ...], epochs: int = 4) -> list[PackedMember]:
    rows = torch.arange(240)
    return [
        PackedMember(
            build_image_network("convnet", (1, 12, 12), 4, 0.25),
            rows[:200],
            rows[200:],
            Schedule(epochs, rate),
        )
        for rate in rates
    ]


@pytest.mark.usefixtures("either_way")
def test_a_member_that_diverges_leaves_the_others_as_they_were(pictures: Data) -> None:
    torch.manual_seed(1)
    three = members((1e-2, 1e30, 1e-2), epochs=12)
    runs = fit_together(three, pictures, ClassObjective(), seed=0)
    assert isinstance(runs[1], Diverged)
    for good in (runs[0], runs[2]):
        assert isinstance(good, TrainingRun)
        assert good.best_loss < 0.2
    assert all(torch.isfinite(one).all() for one in three[0].network.state_dict().values())


@pytest.mark.usefixtures("either_way")
def test_together_is_as_good_as_alone(pictures: Data) -> None:
    torch.manual_seed(1)
    (member,) = members((1e-2,), epochs=12)
    alone = copy.deepcopy(member.network)
    (packed,) = fit_together([member], pictures, ClassObjective(), seed=3)
    assert isinstance(packed, TrainingRun)
    train, validate = pictures.only(member.train), pictures.only(member.validate)
    lone = fit(
        alone, train, validate, ClassObjective(), Schedule(12, 1e-2), seed=3, out_of_time=lambda: False
    )
    np.testing.assert_allclose(packed.curve[0], lone.curve[0], rtol=0.05)
    assert packed.best_loss < 0.2


def test_out_of_time_ends_all_members_with_what_they_have(pictures: Data) -> None:
    runs = fit_together(
        members((1e-2, 1e-3)), pictures, ClassObjective(), seed=0, stop=lambda number: OUT_OF_TIME
    )
    assert [one.stopped for one in runs if isinstance(one, TrainingRun)] == ["out of time"] * 2


def test_a_trial_with_packed_rounds_validates_every_example(monkeypatch: pytest.MonkeyPatch) -> None:
    world = worlds.pictures()
    monkeypatch.setattr(fit_packed, "PACKED_DEVICES", ("cpu",))
    trained = run(world, candidate_of(world, "convnet"), replace(CONDITIONS, epochs=2))
    assert trained.measurement.validated_on == len(world[1])


def test_batches_grow_on_a_gpu_only_and_never_past_a_quarter_of_the_examples() -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda", 0)
    assert [batch_for(64, n, cpu) for n in (6, 100, 10**6)] == [2, 25, 64]
    assert [batch_for(64, n, gpu) for n in (6, 100, 20_000, 10**6)] == [2, 25, 512, 1024]


def test_batches_come_in_order_from_the_host(pictures: Data) -> None:
    places = torch.arange(12).view(3, 4)
    found = [targets["y"].tolist() for _, targets in batches(pictures, places, torch.device("cpu"))]
    assert [one for row in found for one in row] == pictures.targets["y"][:12].tolist()


@pytest.mark.usefixtures("either_way")
def test_one_that_is_killed_leaves_and_the_others_go_on(pictures: Data) -> None:
    torch.manual_seed(1)
    runs = fit_together(
        members((1e-2, 1e-2), epochs=3),
        pictures,
        ClassObjective(),
        seed=0,
        stop=lambda number: packed.LEFT if number == 1 else "",
    )
    assert isinstance(runs[0], TrainingRun)
    assert (runs[0].epochs, runs[0].stopped) == (3, "finished")
    assert isinstance(runs[1], TrainingRun)
    assert (runs[1].epochs, runs[1].stopped) == (1, packed.LEFT)


def test_more_than_fit_at_once_take_turns(pictures: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MOST_AT_ONCE", 2)
    torch.manual_seed(1)
    runs = fit_together(members((1e-2, 1e30, 1e-2), epochs=12), pictures, ClassObjective(), seed=0)
    assert isinstance(runs[1], Diverged)
    for good in (runs[0], runs[2]):
        assert isinstance(good, TrainingRun)
        assert (good.best_loss < 0.2, good.epochs) == (True, 12)


@pytest.mark.usefixtures("either_way")
def test_each_member_is_augmented_as_it_wants(pictures: Data) -> None:
    three, seen = members((1e-2, 1e-2, 1e-2), epochs=1), []

    def noted(batch: Batch) -> Batch:
        seen.append(len(batch["x"]))
        return batch

    three[2] = replace(three[2], augment=noted)
    fit_together(three, pictures, ClassObjective(), seed=0)
    assert seen == [50] * 4  # of the third member's batches, and of nobody else's


def test_of_64_together_one_that_diverges_and_one_that_is_killed_leave_62(pictures: Data) -> None:
    torch.manual_seed(1)
    rates = [1e-2] * 64
    rates[17] = 1e30
    runs = fit_together(
        [replace(one, train=one.train[:40]) for one in members(tuple(rates), epochs=3)],
        pictures,
        ClassObjective(),
        seed=0,
        stop=lambda number: packed.LEFT if number == 40 else "",
    )
    assert {number for number, one in enumerate(runs) if isinstance(one, Diverged)} == {17}
    for number, one in enumerate(runs):
        if isinstance(one, TrainingRun):
            assert (one.epochs, one.stopped) == ((1, packed.LEFT) if number == 40 else (3, "finished"))
            assert np.isfinite(one.best_loss)


@pytest.mark.usefixtures("either_way")
def test_a_checkpoint_of_a_packed_member_goes_on_alone(pictures: Data, tmp_path: Path) -> None:
    torch.manual_seed(1)
    two = [
        replace(one, schedule=replace(one.schedule, until=2), checkpoint=tmp_path / f"round-{i}.safetensors")
        for i, one in enumerate(members((1e-2, 1e-2)))
    ]
    runs = fit_together(two, pictures, ClassObjective(), seed=0)
    assert [(one.stopped, one.reached) for one in runs if isinstance(one, TrainingRun)] == [
        ("end of the slice", 0.5)
    ] * 2
    (fresh,) = members((1e-2,))
    train, validate = pictures.only(fresh.train), pictures.only(fresh.validate)
    alone = fit(
        fresh.network,
        train,
        validate,
        ClassObjective(),
        fresh.schedule,
        seed=0,
        out_of_time=lambda: False,
        checkpoint=tmp_path / "round-1.safetensors",
    )
    assert (alone.resumed, alone.epochs) == (2, 4)
    again = [replace(one, schedule=replace(one.schedule, until=None)) for one in two]
    whole = fit_together(again, pictures, ClassObjective(), seed=0)
    # The second member's checkpoint is at the end by now; the first goes on from where it was.
    assert [one.resumed for one in whole if isinstance(one, TrainingRun)] == [2, 4]
    # Asked again for the slice that is there already, they say how far they are.
    longer = [replace(one, schedule=replace(one.schedule, until=4, epochs=8)) for one in two]
    runs = fit_together(longer, pictures, ClassObjective(), seed=0)
    assert [(one.stopped, one.reached) for one in runs if isinstance(one, TrainingRun)] == [
        ("end of the slice", 0.5)
    ] * 2


def test_each_of_many_has_a_checkpoint_and_one_that_stops_early_at_once(
    pictures: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "MOST_AT_ONCE", 2)
    many = [
        replace(one, checkpoint=tmp_path / f"round-{i}.safetensors")
        for i, one in enumerate(members((1e-2, 1e-2, 1e-2, 1e-2)))
    ]
    fit_together(
        many, pictures, ClassObjective(), seed=0, stop=lambda number: "gave way" if number == 2 else ""
    )
    assert [state_in(one.checkpoint).epoch for one in many] == [4, 4, 1, 4]
    again = fit_together(many[2:3], pictures, ClassObjective(), seed=0)
    assert isinstance(again[0], TrainingRun)
    assert (again[0].resumed, again[0].epochs) == (1, 4)


def test_all_rates_of_a_grid_are_trained_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    world = worlds.pictures()
    base = candidate_of(world, "convnet")
    settings = tuple((name, "grid" if name == "lr" else value) for name, value in base.settings)
    grid, here = Candidate(base.family, settings), replace(CONDITIONS, epochs=4)
    in_turn = run(world, grid, here)
    monkeypatch.setattr(fit_packed, "PACKED_DEVICES", ("cpu",))
    given: list[int] = []
    real = fit_together

    def watched(pack: list[PackedMember], *rest: Any, **named: Any) -> Any:
        given.append(len(pack))
        return real(pack, *rest, **named)

    monkeypatch.setattr(fit_packed, "fit_together", watched)
    together = run(world, grid, replace(here, checkpoints=tmp_path))
    rounds = together.measurement.rounds
    assert given == [len(RATES) * rounds]
    assert len(list(tmp_path.glob("rate-*-round-*.safetensors"))) == len(RATES) * rounds
    assert together.measurement.quality == pytest.approx(in_turn.measurement.quality, abs=0.15)
    again = run(world, grid, replace(here, checkpoints=tmp_path))
    assert again.learned.resumed == len(RATES) * rounds * 4


@pytest.mark.parametrize(
    ("error", "halved"),
    [(torch.cuda.OutOfMemoryError("CUDA out of memory"), 1), (RuntimeError("no batching rule"), 0)],
)
def test_rounds_that_cannot_be_trained_together_train_in_turn(
    monkeypatch: pytest.MonkeyPatch, error: Exception, halved: int
) -> None:
    world = worlds.pictures()
    monkeypatch.setattr(fit_packed, "PACKED_DEVICES", ("cpu",))

    def full(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(fit_packed, "fit_together", full)
    trained = run(world, candidate_of(world, "convnet"), replace(CONDITIONS, epochs=1))
    assert trained.measurement.validated_on == len(world[1])
    assert trained.learned.halved == halved


def test_packed_rounds_never_choose_their_epoch_by_the_fold_that_scores_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = worlds.pictures(80)
    monkeypatch.setattr(fit_packed, "PACKED_DEVICES", ("cpu",))
    given: list[PackedMember] = []
    real = fit_together

    def watched(pack: list[PackedMember], *rest: Any, **named: Any) -> Any:
        given.extend(pack)
        return real(pack, *rest, **named)

    monkeypatch.setattr(fit_packed, "fit_together", watched)
    run(world, candidate_of(world, "convnet"), replace(CONDITIONS, epochs=1))
    used = [set(torch.cat([one.train, one.validate]).tolist()) for one in given]
    assert len(used) > 1
    assert all(len(one) < len(world[1]) for one in used)
    assert not set.intersection(*used)


def test_pictures_in_bytes_are_the_numbers_that_the_encoder_makes() -> None:
    rng = np.random.default_rng(0)
    pictures = [Single((rng.integers(0, 256, (9, 7, 3)).astype(np.float32),)) for _ in range(6)]
    for name in ("standard", "log", "f_0.5"):
        encoder = fit_pictures(pictures, name)
        found = encoder.in_bytes(pictures)
        assert found is not None
        scale = ByteScale(torch.from_numpy(encoder.byte_values()))
        assert scale.straight == (name == "standard")
        data = Data({"x": torch.from_numpy(found["x"])}, {"y": torch.zeros(6)}, scales={"x": scale})
        made, _ = data.take(torch.arange(6), torch.device("cpu"))
        np.testing.assert_allclose(made["x"].numpy(), encoder(pictures)["x"], atol=2e-5)


def test_a_picture_that_is_not_made_of_bytes_stays_numbers() -> None:
    pictures = [Single((np.full((4, 4, 1), 0.5, dtype=np.float32),))]
    assert fit_pictures(pictures, "standard").in_bytes(pictures) is None


def test_a_trial_with_pictures_in_bytes_learns_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    program, examples = worlds.pictures()
    dark = [
        Example(Single((np.clip(one.input.values[0] * 100 + 100, 0, 255).astype(np.uint8),)), one.output)
        for one in examples
        if isinstance(one.input, Single) and isinstance(one.input.values[0], np.ndarray)
    ]
    world = (program, dark)
    usual = run(world, candidate_of(world, "convnet"), replace(CONDITIONS, epochs=2))
    monkeypatch.setattr(train_network, "BYTE_DEVICES", ("cpu",))
    bytes_ = run(world, candidate_of(world, "convnet"), replace(CONDITIONS, epochs=2))
    np.testing.assert_allclose(bytes_.learned.predicted, usual.learned.predicted, atol=0.05)
