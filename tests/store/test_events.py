"""The history from a moment on, and the last that happened to somebody."""

from __future__ import annotations

from easel.ids import ProjectId
from easel.store import events
from easel.store.engine import Store

LAB, OTHER = ProjectId("prj_lab"), ProjectId("prj_other")


def test_the_history_goes_on_behind_what_was_seen_for_all_projects_or_for_one(store: Store) -> None:
    with store.write() as tx:
        for number in range(4):
            tx.emit("app.fed", f"app_{number}", project_id=LAB if number % 2 else OTHER)
    with store.read() as tx:
        whole = events.events_after(tx, None, 0)
        assert [one.subject for one in whole] == ["app_0", "app_1", "app_2", "app_3"]
        assert events.events_after(tx, None, whole[1].seq) == whole[2:]
        assert events.events_after(tx, None, 0, 3) == whole[:3]
        assert events.events_after(tx, LAB, 0) == whole[1::2]
        assert events.events_after(tx, LAB, whole[1].seq, 1) == whole[3:]
        assert events.events_after(tx, None, whole[-1].seq) == []


def test_the_newest_of_some_kinds_is_told_of_every_subject_however_many_are_asked_for(store: Store) -> None:
    kinds = ("app.trial", "app.done", "app.fed")
    with store.write() as tx:
        for number in range(1003):
            tx.emit("app.trial", f"app_{number:04d}", project_id=LAB)
        tx.emit("app.done", "app_0001", project_id=LAB)
        tx.emit("app.fed", "app_0001", project_id=LAB)
        tx.emit("app.done", "app_0002", project_id=LAB)
        tx.emit("app.trial", "app_0002", project_id=LAB)
    with store.read() as tx:
        everybody = {f"app_{number:04d}" for number in range(1003)}
        told = {**dict.fromkeys(everybody, "app.trial"), "app_0001": "app.done"}
        assert events.newest_of_kinds(tx, everybody, kinds[:2]) == told
        assert events.newest_of_kinds(tx, {"app_0001"}, kinds) == {"app_0001": "app.fed"}
        assert events.newest_of_kinds(tx, {"app_0001", "app_0002", "app_none"}, kinds[1:2]) == {
            "app_0001": "app.done",
            "app_0002": "app.done",
        }
        assert events.newest_of_kinds(tx, {"app_none"}, kinds) == {}
        assert events.newest_of_kinds(tx, (), kinds) == {}
