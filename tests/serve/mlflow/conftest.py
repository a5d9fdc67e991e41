"""The people of `tests/serve`, calling MLflow's API."""

from __future__ import annotations

from tests.serve.conftest import either_world, world

__all__ = ["either_world", "world"]
