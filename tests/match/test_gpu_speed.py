"""What makes trainings quick on a GPU changes no result on a CPU, and says when it is worth its time."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.match import worlds
from tests.match.test_train import CONDITIONS, candidate_of, run
from torch import nn

from easel.match import (
    build_kernels,
    compiling,
    device_data,
    fit_packed,
    fit_rounds,
    loop,
    train_steps,
    validation,
)
from easel.match.candidate import Candidate
from easel.match.checkpoint import TrainingState, put_back, snapshot
from easel.match.compiling import compiling_pays, compiling_s, kernels_pay, searching_pays
from easel.match.device import own_free_bytes
from easel.match.device_data import Data
from easel.match.fit_rounds import mean_of
from easel.match.fitting import inner_split, seeds_of
from easel.match.loop import Schedule, fit
from easel.match.objectives import ClassObjective, smoothed_loss
from easel.match.packed import PackedMember, fit_together
from easel.match.zoo import gpu_layers, kernel_use, norm
from easel.match.zoo.images import IMAGE_NETWORKS, build_image_network


def some_pictures() -> Data:
    torch.manual_seed(0)
    y = torch.randint(4, (160,))
    x = 0.5 * torch.randn(160, 1, 12, 12)
    x[torch.arange(160), 0, 3 * y] += 1.5
    return Data({"x": x}, {"y": y})


def test_a_compiler_is_called_only_where_it_saves_more_than_it_takes() -> None:
    resnet = build_image_network("resnet18", (3, 224, 224), 10, 0.25)
    assert compiling_s(resnet) == compiling.FIRST_S + compiling.LAYER_S * 21
    assert [compiling_pays(resnet, left_s) for left_s in (2.0, 60.0, 480.0, 500.0)] == [
        False,
        False,
        False,
        True,
    ]


def test_a_network_without_normalisation_is_never_compiled() -> None:
    assert not compiling_pays(build_image_network("alexnet", (3, 224, 224), 10, 0.25), 1e9)


def test_algorithms_are_searched_for_in_long_trainings_only() -> None:
    assert [searching_pays(steps) for steps in (60, compiling.SEARCH_STEPS - 1, compiling.SEARCH_STEPS)] == [
        False,
        False,
        True,
    ]


def test_the_setting_of_the_search_is_put_back() -> None:
    before = torch.backends.cudnn.benchmark
    with train_steps.searching(True):
        assert torch.backends.cudnn.benchmark
    assert torch.backends.cudnn.benchmark == before


def test_a_normalisation_with_addition_and_relu_is_the_three_layers() -> None:
    torch.manual_seed(0)
    ours, plain = norm.Norm(8, relu=True), nn.BatchNorm2d(8)
    plain.load_state_dict(ours.state_dict())
    x, beside = torch.randn(4, 8, 5, 5), torch.randn(4, 8, 5, 5)
    torch.testing.assert_close(ours(x, beside), torch.relu(plain(x) + beside), rtol=0, atol=0)
    torch.testing.assert_close(ours.state_dict(), plain.state_dict(), rtol=0, atol=0)


def test_paths_are_joined_in_their_order() -> None:
    torch.manual_seed(0)
    one = nn.Sequential(nn.Conv2d(3, 8, 1), norm.Norm(8))
    other = nn.Sequential(nn.MaxPool2d(3, 1, padding=1), nn.Sequential(nn.Conv2d(3, 16, 1), norm.Norm(16)))
    x = torch.randn(4, 3, 5, 5)
    made = norm.joined((one, other), x)
    torch.testing.assert_close(made, torch.cat([one(x), other(x)], dim=1))


def test_kernels_that_cannot_be_built_are_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "easel.match.zoo.fused_norm", None)
    norm._tried.cache_clear()
    assert norm.kernels() is None
    norm._tried.cache_clear()


def test_half_weights_give_the_exact_ones_their_gradients() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.LayerNorm(8), nn.Linear(8, 3))
    x, y = torch.randn(5, 6), torch.randint(3, (5,))
    half = train_steps.HalfWeights(network)
    half.follow()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(half.network(x).float(), y)
    half.backward(loss)
    mine = [one.grad for one in network.parameters()]
    network.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.autograd.backward(nn.functional.cross_entropy(network(x).float(), y))
    for found, one in zip(mine, network.parameters(), strict=True):
        assert found is not None
        assert found.dtype == torch.float32
        torch.testing.assert_close(found, one.grad, rtol=0.02, atol=2e-3)


def test_a_gpu_without_half_precision_trains_in_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda **asked: False)
    train_steps.half_precision.cache_clear()
    assert not train_steps.half_precision("cuda")
    assert train_steps.half_weights(nn.Linear(2, 2), torch.device("cuda")) is None
    assert not train_steps.autocast(torch.device("cuda"))._enabled
    train_steps.half_precision.cache_clear()


def test_a_network_that_reads_its_own_weights_keeps_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train_steps, "half_precision", lambda kind: True)
    plain, reading = nn.Linear(2, 2), nn.Linear(2, 2)
    reading.reads_its_weights = True  # type: ignore[assignment]
    assert train_steps.half_weights(plain, torch.device("cpu")) is not None
    assert train_steps.half_weights(reading, torch.device("cpu")) is None


def test_out_of_memory_halves_the_batches_and_the_training_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    data = some_pictures()
    network = build_image_network("convnet", (1, 12, 12), 4, 0.25)
    training = loop._Training(
        network, data, ClassObjective(), Schedule(2, 1e-2), lambda batch: batch, data.device
    )
    asked: list[int] = []
    real = training._eager.run

    def run_out(places: torch.Tensor, rates: list[float]) -> torch.Tensor:
        asked.append(places.shape[1])
        if places.shape[1] > 10:
            raise torch.cuda.OutOfMemoryError("somebody else took it")
        return real(places, rates)

    monkeypatch.setattr(training._eager, "run", run_out)
    # The part of the loop that is for GPUs, on the CPU: the device says so, and nothing else is asked of it.
    training.device = SimpleNamespace(type="cuda")  # type: ignore[assignment]
    lost = training.epoch(0, 0, TrainingState(), lambda: False)
    assert asked == [40, 20, 10]
    assert training.halved == 2
    assert torch.isfinite(lost)


def test_memory_that_is_taken_in_a_later_epoch_halves_the_batches_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = some_pictures()
    network = build_image_network("convnet", (1, 12, 12), 4, 0.25)
    training = loop._Training(
        network, data, ClassObjective(), Schedule(3, 1e-2), lambda batch: batch, data.device
    )
    training.device = SimpleNamespace(type="cuda")  # type: ignore[assignment]
    training.epoch(0, 0, TrainingState(), lambda: False)
    real, short = training._eager.run, [True]

    def run_out(places: torch.Tensor, rates: list[float]) -> torch.Tensor:
        if short and short.pop():
            raise torch.cuda.OutOfMemoryError("somebody else took it")
        return real(places, rates)

    monkeypatch.setattr(training._eager, "run", run_out)
    training.epoch(1, 0, TrainingState(epoch=1), lambda: False)
    assert (training.halved, training.steps) == (1, 8)


def test_a_long_epoch_on_a_gpu_stops_between_its_steps_and_goes_on_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "PART_STEPS", 2)
    waits: list[int] = []
    stream = SimpleNamespace(synchronize=lambda: waits.append(1))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    data, asked = some_pictures(), iter([False, True])

    def training(batch: int) -> loop._Training:
        torch.manual_seed(0)
        network = build_image_network("convnet", (1, 12, 12), 4, 0.25)
        schedule = Schedule(2, 1e-2, batch=batch)
        made = loop._Training(network, data, ClassObjective(), schedule, lambda batch: batch, data.device)
        made.device = SimpleNamespace(type="cuda")  # type: ignore[assignment]
        return made

    whole, part, state = training(20), training(20), TrainingState()
    part.epoch(0, 0, state, lambda: next(asked))
    assert (state.steps, state.batch, len(waits)) == (4, 20, 2)
    part.epoch(0, 0, state, lambda: False)
    assert state.steps == 0
    whole.epoch(0, 0, TrainingState(), lambda: False)
    # The same path, stopped or not.
    torch.testing.assert_close(part._network.state_dict(), whole._network.state_dict())
    # Where batches are half as large, what was seen is not seen again.
    smaller, seen = training(10), []

    def noted(places: torch.Tensor, rates: list[float]) -> torch.Tensor:
        seen.append(len(places))
        return torch.zeros(())

    monkeypatch.setattr(smaller._eager, "run", noted)
    smaller.epoch(0, 0, TrainingState(steps=4, batch=20), lambda: False)
    assert sum(seen) == 16 - 8


def test_examples_on_a_gpu_take_no_more_than_our_share_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    gpu, gb = torch.device("cuda", 0), 2**30
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (8 * gb, 8 * gb))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: gb)
    monkeypatch.setenv("EASEL_GPU_SHARE", "0.25")
    assert own_free_bytes(gpu) == gb
    monkeypatch.delenv("EASEL_GPU_SHARE")
    assert own_free_bytes(gpu) == 7 * gb


def test_examples_stay_on_the_host_where_somebody_takes_the_memory_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = some_pictures()

    def full(*_: object) -> None:
        raise torch.cuda.OutOfMemoryError("somebody else took it")

    monkeypatch.setattr(device_data, "own_free_bytes", lambda device: 2**40)
    monkeypatch.setattr(device_data, "_moved", full)
    assert data.resident(torch.device("cuda", 0)) is data


def test_a_trial_brings_its_examples_to_a_gpu_once(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[int] = []
    real = Data.resident

    def noted(data: Data, device: torch.device) -> Data:
        moved.append(len(data))
        return real(data, device)

    monkeypatch.setattr(Data, "resident", noted)
    world = worlds.pictures()
    for together in ((), ("cpu",)):
        moved.clear()
        monkeypatch.setattr(fit_packed, "PACKED_DEVICES", together)
        run(world, candidate_of(world, "convnet"), replace(CONDITIONS, epochs=1))
        assert moved.count(len(world[1])) == 1  # the trainings ask again for their parts, which are there
    moved.clear()
    waves = worlds.waves(24)
    run(waves, candidate_of(waves, "minirocket"), CONDITIONS)
    assert not moved


def test_examples_that_do_not_fit_a_share_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_rounds, "training_device", lambda: torch.device("cuda", 0))
    monkeypatch.setattr(Data, "resident", lambda data, device: data)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    world = worlds.pictures()
    for share, halved in (("0.25", 1), ("1", 0)):
        monkeypatch.setenv("EASEL_GPU_SHARE", share)
        trained = run(world, candidate_of(world, "convnet"), replace(CONDITIONS, epochs=1))
        assert trained.learned.halved == halved


def test_the_last_epoch_is_kept_where_the_recipe_wants_it() -> None:
    data = some_pictures()
    train, validate = data.only(torch.arange(120)), data.only(torch.arange(120, 160))
    schedule = Schedule(4, 3e-2, chooses=False)
    network = build_image_network("convnet", (1, 12, 12), 4, 0.25)
    alone = fit(network, train, validate, ClassObjective(), schedule, seed=0, out_of_time=lambda: False)
    assert alone.best_epoch == 3
    assert alone.best_loss == alone.curve[-1][1]
    member = PackedMember(network, torch.arange(120), torch.arange(120, 160), schedule)
    (packed,) = fit_together([member], data, ClassObjective(), seed=0)
    assert packed.best_epoch == 3  # type: ignore[union-attr]


def test_validation_is_the_mean_over_all_examples() -> None:
    data = some_pictures()
    network = build_image_network("convnet", (1, 12, 12), 4, 0.25)
    found = validation.Validation(network, data, ClassObjective(0.05), epochs=100).loss()
    wanted = smoothed_loss(network(data.inputs["x"]), data.targets["y"], 0.05)
    torch.testing.assert_close(found, wanted)


def test_answers_of_a_bag_are_averaged_for_each_part() -> None:
    answers = np.arange(10.0).reshape(10, 1)
    np.testing.assert_allclose(mean_of(answers, (2, 3), 2)[:, 0], [1.0, 2.0, 5.5, 6.5, 7.5])


def test_each_network_of_a_bag_leaves_out_another_eighth() -> None:
    rows, labels = np.arange(80), np.repeat([0, 1], 40)
    held = [set(inner_split(rows, labels, turn)[1].tolist()) for turn in range(8)]
    assert set.union(*held) == set(range(80))
    assert sum(len(one) for one in held) == 80


def test_a_candidate_with_a_bag_has_so_many_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    world = worlds.pictures()
    base = candidate_of(world, "convnet")
    bagged = Candidate(base.family, (*base.settings, ("bag", 2)))
    assert [seeds_of(base), seeds_of(bagged)] == [1, 2]
    for devices in ((), ("cpu",)):
        monkeypatch.setattr(fit_packed, "PACKED_DEVICES", devices)
        one = run(world, base, replace(CONDITIONS, epochs=1))
        two = run(world, bagged, replace(CONDITIONS, epochs=1))
        assert two.measurement.validated_on == len(world[1])
        assert len(two.model.body.networks) == 2 * len(one.model.body.networks)  # type: ignore[attr-defined]


def test_what_an_optimiser_remembers_lies_as_its_weights_after_a_checkpoint() -> None:
    """The fused optimiser of a GPU takes no other: trials that went on from a slice failed at once."""
    network = nn.Conv2d(3, 4, 3)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's types forget it
    optimiser = torch.optim.AdamW(network.parameters(), lr=0.1)
    network(torch.ones(1, 3, 5, 5)).sum().backward()
    optimiser.step()
    before = {name: one.clone() for name, one in optimiser.state[network.weight].items()}
    put_back(snapshot({"": (network, optimiser)}, {}), {"": (network, optimiser)})
    kept = optimiser.state[network.weight]
    assert {kept[name].stride() for name in ("exp_avg", "exp_avg_sq")} == {network.weight.stride()}
    assert all(torch.equal(kept[name], before[name]) for name in before)


def test_kernels_are_built_only_where_they_save_more_than_that_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    convnet = build_image_network("convnet", (1, 28, 28), 10, 0.25)
    resnet = build_image_network("resnet18", (1, 28, 28), 10, 0.25)
    assert [kernels_pay(one, 60.0) for one in (convnet, resnet)] == [True, False]
    assert kernels_pay(resnet, 150.0)
    monkeypatch.setitem(kernel_use._said, "wanted", False)
    assert [one() for one in (norm.kernels, gpu_layers.conv_kernels, gpu_layers.adam_kernel)] == [None] * 3


def test_kernels_are_kept_network_by_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {name for name, _ in build_kernels.networks()} == set(IMAGE_NETWORKS)
    built, folder = tmp_path / "cache", tmp_path / "kept"

    def build(name: str, shape: tuple[int, int, int], width: float) -> None:
        if name == "alexnet":
            raise RuntimeError("no compiler")
        (built / f"{name}-{width}").mkdir(parents=True, exist_ok=True)

    monkeypatch.setattr(build_kernels, "networks", lambda: [("alexnet", 0.25), ("convnet", 0.25)])
    monkeypatch.setattr(build_kernels, "build", build)
    build_kernels.main(built, folder)
    build_kernels.main(built, folder)
    assert (folder / build_kernels.WHOLE).read_text() == "convnet-0.25\n"
    assert [one.name for one in (folder / "networks").iterdir()] == ["convnet 0.25"]


def test_a_network_takes_its_steps_alone_and_together() -> None:
    build_kernels.build("convnet", (1, 28, 28), 0.25)
