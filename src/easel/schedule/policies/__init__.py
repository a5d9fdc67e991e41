"""Policies by name. Each is `decide(PoolState) -> Decision`, pure."""

from __future__ import annotations

from collections.abc import Callable

from easel.errors import InvalidInput
from easel.schedule.policies.compose import Composed, Policy
from easel.schedule.policies.default import Easel
from easel.schedule.policies.rank import (
    FirstCome,
    Greedy,
    Hybrid,
    LargestScore,
    RandomTenant,
    RoundRobin,
)
from easel.schedule.policies.score import EIRate, FixedOrder, UpperBound

__all__ = ["POLICIES", "Composed", "Easel", "Policy", "named"]

MOST_CITED = (
    "AlexNet",
    "VGG-16",
    "GoogLeNet",
    "ResNet-50",
    "ResNet-18",
    "NIN",
    "BN-AlexNet",
    "SqueezeNet",
)
MOST_RECENT = (
    "SqueezeNet",
    "BN-AlexNet",
    "ResNet-50",
    "ResNet-18",
    "GoogLeNet",
    "VGG-16",
    "NIN",
    "AlexNet",
)

POLICIES: dict[str, Callable[[int], Policy]] = {
    "easel": lambda seed: Easel(),
    "fcfs": lambda seed: Composed("fcfs", FirstCome(), UpperBound()),
    "random": lambda seed: Composed("random", RandomTenant(seed), UpperBound()),
    "round-robin": lambda seed: Composed("round-robin", RoundRobin(), UpperBound()),
    "greedy": lambda seed: Composed("greedy", Greedy(), UpperBound()),
    "hybrid": lambda seed: Composed("hybrid", Hybrid(), UpperBound()),
    "fcfs-oblivious": lambda seed: Composed("fcfs-oblivious", FirstCome(), UpperBound(False)),
    "random-oblivious": lambda seed: Composed("random-oblivious", RandomTenant(seed), UpperBound(False)),
    "round-robin-oblivious": lambda seed: Composed("round-robin-oblivious", RoundRobin(), UpperBound(False)),
    "greedy-oblivious": lambda seed: Composed("greedy-oblivious", Greedy(), UpperBound(False)),
    "hybrid-oblivious": lambda seed: Composed("hybrid-oblivious", Hybrid(), UpperBound(False)),
    "most-cited": lambda seed: Composed("most-cited", RoundRobin(), FixedOrder(MOST_CITED)),
    "most-recent": lambda seed: Composed("most-recent", RoundRobin(), FixedOrder(MOST_RECENT)),
    "spearmint": lambda seed: Composed("spearmint", RoundRobin(), EIRate()),
    "round-robin-ei": lambda seed: Composed("round-robin-ei", RoundRobin(), EIRate()),
    "gp-ei-random": lambda seed: Composed("gp-ei-random", RandomTenant(seed), EIRate(), warm=2),
    "gp-ei-round-robin": lambda seed: Composed("gp-ei-round-robin", RoundRobin(), EIRate(), warm=2),
    "mm-gp-ei": lambda seed: Composed("mm-gp-ei", LargestScore(), EIRate(), warm=2),
    "mm-gp-ei-prior": lambda seed: Composed("mm-gp-ei-prior", LargestScore(), EIRate()),
}
"""Every policy by name; the seed matters to the random ones only."""


def named(name: str, seed: int = 0) -> Policy:
    try:
        return POLICIES[name](seed)
    except KeyError:
        raise InvalidInput(f"no policy {name}; there are {', '.join(POLICIES)}") from None
