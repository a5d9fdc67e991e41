"""Series by fixed convolutions and a ridge on top: MiniRocket, and MultiRocket beside Hydra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from easel.match.candidate import Candidate
from easel.match.family import NetworkFamily, Plan, Situation, fits, rounds_of
from easel.match.kinds import TemplateKind
from easel.match.summary import DataSummary

if TYPE_CHECKING:
    from torch import nn

    from easel.match.device_data import Data
    from easel.match.networks import Wiring

AT_ONCE = 64
"""Series whose convolutions are held in memory together."""
MANY = 4_000
"""Above so many series fewer features keep the ridge small."""


def _mini_plan(situation: Situation) -> Plan:
    few, other = (9_996, 4_956) if situation.summary.examples <= MANY else (4_956, 2_520)
    return Plan(0.95, (("features", few),), (("features", other, 0.01), *situation.scales))


def _mini_cost(candidate: Candidate, summary: DataSummary) -> float:
    n = summary.examples
    share = candidate.number("features", 9_996) / 9_996
    return 1.0 + (rounds_of(n) + 1) * (n * share * (summary.steps * 2e-5 + 2e-4) + 4e-10 * min(n, 5_000) ** 3)


def _mini(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    from easel.match.encode.series import SeriesEncoder
    from easel.match.zoo.minirocket import MiniRocket

    source = wiring.source
    assert isinstance(source, SeriesEncoder)
    features = int(candidate.number("features", 9_996))
    return MiniRocket(source.steps.width, source.length, wiring.outputs, features, seed)


def _multi_plan(situation: Situation) -> Plan:
    return Plan(0.94, (("features", 1_512 if situation.summary.examples <= MANY else 504),), situation.scales)


def _multi_cost(candidate: Candidate, summary: DataSummary) -> float:
    n = summary.examples
    share = candidate.number("features", 1_512) / 1_512
    one: float = n * (summary.steps * 6e-5 * share + 1e-4 * summary.steps**0.5 + 1e-3)
    return float(1.5 + (rounds_of(n) + 1) * (one + 4e-10 * min(n, 5_000) ** 3))


def _multi(candidate: Candidate, wiring: Wiring, seed: int) -> nn.Module:
    from easel.match.encode.series import SeriesEncoder
    from easel.match.zoo.multirocket_hydra import MultiRocketHydra

    source = wiring.source
    assert isinstance(source, SeriesEncoder)
    features = int(candidate.number("features", 1_512))
    return MultiRocketHydra(source.steps.width, source.length, wiring.outputs, features, seed)


def _solve(network: nn.Module, candidate: Candidate, train: Data, target: Any, seed: int) -> None:
    import numpy as np
    import torch

    from easel.match.targets import Classes
    from easel.match.zoo.minirocket import MiniRocket
    from easel.match.zoo.multirocket_hydra import MultiRocketHydra

    assert isinstance(network, MiniRocket | MultiRocketHydra)
    inputs, targets = train.take(torch.arange(len(train)), torch.device("cpu"))
    x, mask = inputs["x"], inputs["mask"]
    with torch.no_grad():
        network.fit_biases(x, mask, torch.Generator().manual_seed(seed))
        parts = [
            network.features(x[i : i + AT_ONCE], mask[i : i + AT_ONCE]) for i in range(0, len(x), AT_ONCE)
        ]
    y = targets["y"].numpy()
    goal = 2.0 * np.eye(len(target.names))[y] - 1.0 if isinstance(target, Classes) else y
    network.head.solve(torch.cat(parts), goal)


FAMILIES = (
    NetworkFamily(
        name="minirocket",
        fits=fits(TemplateKind.SERIES),
        plan=_mini_plan,
        cost=_mini_cost,
        network=_mini,
        solve=_solve,
    ),
    NetworkFamily(
        name="multirocket_hydra",
        fits=fits(TemplateKind.SERIES),
        plan=_multi_plan,
        cost=_multi_cost,
        network=_multi,
        solve=_solve,
        no_onnx="MultiRocket-Hydra is exported as safetensors only (--form native): ONNX lacks running maxima",
    ),
)
