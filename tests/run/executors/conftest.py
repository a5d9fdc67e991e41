"""One cluster of each kind for all tests of this folder."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

from easel.testing import ray as ray_testing
from easel.testing import slurm as slurm_testing
from easel.testing.ray import RayCluster
from easel.testing.slurm import Slurm


@pytest.fixture(scope="session")
def slurm() -> Iterator[Slurm]:
    lacking = slurm_testing.missing()
    if lacking:
        pytest.skip(f"no Slurm here ({', '.join(lacking)}): scripts/test installs it where it may")
    with slurm_testing.running() as made:
        yield made


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[RayCluster]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'easel-ml[ray]'")
    with ray_testing.running() as made:
        yield made
