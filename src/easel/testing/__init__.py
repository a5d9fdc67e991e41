"""Conformance suites for every interface, a real server to test against, and a clock that moves when told.

Shipped, so that other blob stores, executors, policies and strategies can be held to the same promises: subclass a
suite in a test file and say how to make yours. Needs pytest, and the extra of what is tested.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from easel.testing.blobs import BlobStoreSuite
    from easel.testing.clock import FakeClock
    from easel.testing.executor import ExecutorSuite
    from easel.testing.policy import PolicySuite
    from easel.testing.server import ServerProcess
    from easel.testing.store import StoreSuite
    from easel.testing.strategy import StrategySuite

_LAZY = {
    "BlobStoreSuite": "easel.testing.blobs",
    "ExecutorSuite": "easel.testing.executor",
    "FakeClock": "easel.testing.clock",
    "PolicySuite": "easel.testing.policy",
    "ServerProcess": "easel.testing.server",
    "StoreSuite": "easel.testing.store",
    "StrategySuite": "easel.testing.strategy",
}
"""Public names and where they live: each needs other extras."""

__all__ = [
    "BlobStoreSuite",
    "ExecutorSuite",
    "FakeClock",
    "PolicySuite",
    "ServerProcess",
    "StoreSuite",
    "StrategySuite",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'easel.testing' has no attribute {name!r}")
