"""Fixtures that several folders need: real databases and clusters."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

from easel.store.engine import Store
from easel.testing import postgres
from easel.testing import ray as ray_testing
from easel.testing import slurm as slurm_testing
from easel.testing.databases import emptied, migrated, new_sqlite
from easel.testing.engine import EngineUnderTest, running

hypothesis.settings.register_profile(
    "easel",
    deadline=None,  # a busy machine is no fault of the code
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("easel")

_numbers = itertools.count()
_FOREIGN = ("tests/dashboard/", "test_ray", "test_slurm")
"""Parts of the paths of tests that drive a browser, Ray or Slurm."""


_ONE_WORKER = {
    "Ray": ("tests/run/executors/test_ray.py", "tests/end_to_end/test_ray_guide.py"),
    "Slurm": ("tests/run/executors/test_slurm.py", "tests/end_to_end/test_slurm_guide.py"),
}
"""Files that one worker of xdist runs one after the other: they share what takes longest to start."""
_LONGEST_FIRST = (
    "tests/end_to_end/test_demo_apps.py",
    "tests/end_to_end/test_apps.py",
    "tests/end_to_end/test_app_examples.py",
    # after those: when the tests begin, every worker still imports and the types are checked beside them
    *_ONE_WORKER["Ray"],
    "tests/faults/test_job_faults.py",
    *_ONE_WORKER["Slurm"],
    "tests/end_to_end/test_prices.py",
    "tests/end_to_end/test_mlflow",
    "tests/end_to_end/test_notebooks.py",
    "tests/end_to_end/",
    "tests/faults/",
    "tests/dashboard/",
    "tests/run/executors/",
    "tests/tenancy/",
    "tests/flow/apps/",
    "tests/flow/studies/",
    "tests/tune/",
    "tests/match/",
    "tests/serve/test_fuzz.py",
    "tests/flow/",
    "tests/serve/",
    "tests/schedule/",
)
"""Files whose tests take longest, and folders of them: begun first, so that no worker is left alone with one."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if any(part in item.path.as_posix() for part in _FOREIGN):
            item.add_marker(pytest.mark.foreign)
    items.sort(key=_place)


class _FilesTogether(LoadFileScheduling):  # type: ignore[misc]  # xdist has no types
    """Gives each file to one worker, and those that share a cluster to the same one."""

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        return next((name for name, files in _ONE_WORKER.items() if file in files), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling | None:
    return _FilesTogether(config, log) if config.getoption("dist") == "loadfile" else None


def _place(item: pytest.Item) -> int:
    """Returns when the item's file is begun: the order in a file stays."""
    named = (n for n, start in enumerate(_LONGEST_FIRST) if item.nodeid.startswith(start))
    return next(named, len(_LONGEST_FIRST))


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Postgres]:
    if postgres.find_binaries() is None:
        pytest.skip("PostgreSQL is not installed: scripts/test installs it where it may")
    with postgres.running() as server:
        yield server


BOTH = ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)]


@pytest.fixture(params=BOTH)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty database, on each engine in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/empty.sqlite"
    server: postgres.Postgres = request.getfixturevalue("postgres_server")
    return server.create(f"empty{next(_numbers)}")


@pytest.fixture(scope="session")
def postgres_template(postgres_server: postgres.Postgres) -> str:
    """The name of a migrated database to copy: migrating anew for each test would be most of its time."""
    migrated(postgres_server.create("template"))
    return "template"


@pytest.fixture
def sqlite_store(tmp_path: Path) -> Iterator[Store]:
    """A migrated, empty store."""
    found = Store(new_sqlite(tmp_path / "easel.sqlite"))
    yield found
    found.close()


@pytest.fixture(scope="session")
def postgres_database(postgres_server: postgres.Postgres, postgres_template: str) -> str:
    """The address of one database for all tests that want an empty store: each of them empties it first."""
    return postgres_server.create("shared", template=postgres_template)


@pytest.fixture
def postgres_store(postgres_database: str) -> Iterator[Store]:
    found = Store(emptied(postgres_database))
    yield found
    found.close()


@pytest.fixture(params=BOTH)
def store(request: pytest.FixtureRequest) -> Store:
    """A migrated, empty store, on each engine in turn."""
    name = "sqlite_store" if request.param == "sqlite" else "postgres_store"
    found: Store = request.getfixturevalue(name)
    return found


@pytest.fixture(params=BOTH)
def either_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EngineUnderTest]:
    """An engine with a real worker, on each database in turn: for what depends on how transactions meet."""
    url = emptied(request.getfixturevalue("postgres_database")) if request.param == "postgresql" else None
    with running(tmp_path / "home", url) as made:
        yield made


@pytest.fixture(scope="session")
def slurm() -> Iterator[slurm_testing.Slurm]:
    lacking = slurm_testing.missing()
    if lacking:
        pytest.skip(f"no Slurm here ({', '.join(lacking)}): scripts/test installs it where it may")
    with slurm_testing.running() as made:
        yield made


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[ray_testing.RayCluster]:
    if importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'easel-ml[ray]'")
    with ray_testing.running() as made:
        yield made
