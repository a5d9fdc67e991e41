"""An engine with a real worker, and how to drive a study on it without waiting for anybody's clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from easel.declare.study import StudySpec
from easel.flow.studies import advance
from easel.flow.studies.declare import create_study
from easel.records.study import StoredStudy, StudyPoint, StudyState
from easel.serve.controller import Controller
from easel.serve.learning import build_keeper
from easel.store import studies
from easel.tenancy.keeper import Keeper
from easel.testing.databases import emptied
from easel.testing.engine import EngineUnderTest, running
from easel.wire.study import study_fields


@dataclass
class Studio:
    """One engine and its loops, a step at a time."""

    engine: EngineUnderTest
    controller: Controller
    keeper: Keeper = field(init=False)

    def __post_init__(self) -> None:
        self.keeper = build_keeper(self.engine.lake)

    def create(self, text: str, who: str = "ana") -> StoredStudy:
        asked = study_fields(text)
        return self.declare(asked.name, asked.spec(), who, asked.earlier)

    def declare(
        self, name: str, spec: StudySpec, who: str = "ana", earlier: list[str] | None = None
    ) -> StoredStudy:
        with self.engine.store.write() as tx:
            return create_study(tx, self.engine.people[who], name, spec, earlier=earlier or [])

    def step(self) -> None:
        self.keeper.turn()

    def until(self, done: Callable[[], bool]) -> None:
        def stepped() -> bool:
            self.step()
            return done()

        self.engine.turn_until(self.controller, stepped, 250.0)

    def study(self, name: str) -> StoredStudy:
        with self.engine.store.read() as tx:
            return studies.find(tx, self.engine.people["ana"].project_id, name)

    def points(self, name: str) -> list[StudyPoint]:
        study = self.study(name)
        with self.engine.store.read() as tx:
            return studies.points(tx, study.id)

    def finish(self, name: str) -> list[StudyPoint]:
        self.until(lambda: self.study(name).state is StudyState.FINISHED)
        while advance.note_recommendations(self.engine.store):
            pass
        return self.points(name)


on_both_databases = pytest.mark.parametrize(
    "studio", ["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True
)


@pytest.fixture
def studio(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Studio]:
    database = None
    if getattr(request, "param", "sqlite") == "postgresql":
        database = emptied(request.getfixturevalue("postgres_database"))
    with running(tmp_path / "home", database) as engine:
        controller = engine.controller(sandbox=False, unsandboxed=True)
        engine.turn_until(controller, lambda: controller.connected)
        yield Studio(engine, controller)
