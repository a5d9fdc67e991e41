"""Jobs beside the trials of an app ask for as much memory as its data and models take."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime

from easel.flow.apps.memory import to_look, to_train
from easel.ids import AppId, ProjectId, UserId
from easel.match.candidate import Candidate
from easel.match.summary import DataSummary
from easel.records.app import App
from easel.store.engine import Store

PROGRAM = "{input: {[a :: Number, b :: Number], []}, output: {[Category[no, yes]], []}}"


def app_of(examples: int, cells: int) -> App:
    at = datetime(2026, 11, 19, tzinfo=UTC)
    summary = asdict(DataSummary(examples, cells, classes=2))
    return App(AppId("app_1"), ProjectId("prj_1"), UserId("usr_1"), "a", PROGRAM, None, at, "a:1", summary)


def test_a_job_asks_for_little_where_data_are_few_and_for_more_where_they_are_many(
    sqlite_store: Store,
) -> None:
    with sqlite_store.read() as tx:
        small = to_look(tx, app_of(300, 10))
        large = to_look(tx, app_of(1_000_000, 100))
        assert small.memory_mb == 1024
        assert large.memory_mb > 6_000
        svm, network = Candidate("svm"), Candidate("tabm")
        assert to_train(tx, app_of(300, 10), [svm]).memory_mb == 1024
        assert to_train(tx, app_of(300, 10), [svm, network]).memory_mb == 2048
