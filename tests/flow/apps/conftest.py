"""An engine with a real worker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.testing.engine import EngineUnderTest, running


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EngineUnderTest]:
    with running(tmp_path / "home") as made:
        yield made
