"""The people of `tests/serve`, calling MLflow's API."""

from __future__ import annotations

from tests.serve.conftest import world

__all__ = ["world"]
