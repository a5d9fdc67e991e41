"""Queries on apps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import bindparam, delete, func, insert, select, update

from easel.declare.close import did_you_mean
from easel.errors import Conflict, NotFound
from easel.ids import AppId, JobId, ProjectId, UserId
from easel.records.app import App
from easel.store.engine import AnyRow, Tx
from easel.store.schema.apps import app_examples, app_refinements, app_reports, app_trials, apps
from easel.store.schema.tenants import tenants


def add(
    tx: Tx,
    project_id: ProjectId,
    user_id: UserId,
    name: str,
    program: str,
    metric: str | None,
    *,
    rates_inside: bool = False,
) -> App:
    taken = tx.execute(select(apps.c.id).where(apps.c.project_id == project_id, apps.c.name == name)).first()
    if taken is not None:
        raise Conflict(f"there is an app {name!r} already: choose another name")
    app = App(
        AppId(tx.mint("app")),
        project_id,
        user_id,
        name,
        program,
        metric,
        tx.now,
        None,
        None,
        rates_inside=rates_inside,
    )
    tx.execute(
        insert(apps).values(
            id=app.id,
            project_id=project_id,
            user_id=user_id,
            name=name,
            program=program,
            metric=metric,
            created_at=tx.now,
            rates_inside=rates_inside,
        )
    )
    return app


# Every answer of a model asks this: it is built once.
_FIND = select(apps).where(
    apps.c.project_id == bindparam("of_project"),
    (apps.c.name == bindparam("called")) | (apps.c.id == bindparam("called")),
)


def find(tx: Tx, project_id: ProjectId, name: str) -> App:
    """Returns an app by name or id; one of another project does not exist here."""
    row = tx.execute(_FIND, {"of_project": project_id, "called": name}).first()
    if row is None:
        known = names_in(tx, project_id)
        raise NotFound(f"no app {name[:80]!r} in this project{did_you_mean(name, known)}")
    return _app(row)


def names_in(tx: Tx, project_id: ProjectId) -> list[str]:
    """Returns the names of a project's apps, for whoever mistyped one."""
    return [row.name for row in tx.execute(select(apps.c.name).where(apps.c.project_id == project_id))]


_BY_ID = select(apps).where(apps.c.id == bindparam("of_app"))


def maybe(tx: Tx, app_id: AppId) -> App | None:
    """Returns an app by id alone: for the controller, which serves every project."""
    row = tx.execute(_BY_ID, {"of_app": app_id}).first()
    return None if row is None else _app(row)


def names_of(tx: Tx, ids: Sequence[str]) -> dict[str, str]:
    """Returns the names of these apps, by id; of one that is no longer there, none."""
    query = select(apps.c.id, apps.c.name).where(apps.c.id.in_(sorted(set(ids))))
    return {row.id: row.name for row in tx.execute(query)} if ids else {}


def fingerprint(tx: Tx) -> tuple[int, ...]:
    """Changes whenever an app comes, goes, is fed or refined."""
    found = tx.execute(
        select(func.count(), func.count(apps.c.examples_set), func.count(apps.c.vectors))
    ).one()
    newest = tx.execute(select(func.max(app_examples.c.seq))).scalar()
    switches = tx.execute(select(func.max(app_refinements.c.seq))).scalar()
    undone = tx.execute(select(func.count()).where(app_refinements.c.undone.is_(True))).scalar()
    return (*found, newest or 0, switches or 0, undone or 0)


def all_apps(tx: Tx) -> list[App]:
    """Returns the apps of every project, oldest first: what shares the pool."""
    return [_app(row) for row in tx.execute(select(apps).order_by(apps.c.created_at, apps.c.id))]


def list_apps(tx: Tx, project_id: ProjectId) -> list[App]:
    rows = tx.execute(select(apps).where(apps.c.project_id == project_id).order_by(apps.c.id))
    return [_app(row) for row in rows]


def remove(tx: Tx, app_id: AppId) -> None:
    """The app and all that is known of it; its files and jobs stay in the lake's history."""
    for table in (app_examples, app_refinements, app_reports, app_trials):
        tx.execute(delete(table).where(table.c.app_id == app_id))
    tx.execute(delete(tenants).where(tenants.c.id == app_id))
    tx.execute(delete(apps).where(apps.c.id == app_id))


def _app(row: AnyRow) -> App:
    return App(
        row.id,
        row.project_id,
        row.user_id,
        row.name,
        row.program,
        row.metric,
        row.created_at,
        row.examples_set,
        row.summary,
        row.pinned,
        row.suspects_job,
        row.rates_inside,
        row.vectors,
        row.vector_size,
        row.more_until,
        row.examples_key,
        row.styles,
    )


def expect_more(tx: Tx, app_id: AppId, until: datetime | None) -> None:
    """The rest of a feed is on its way: until then, or until it is there (None), nothing is learned from a part."""
    tx.execute(update(apps).where(apps.c.id == app_id).values(more_until=until))


def add_styles(tx: Tx, app: App, styles: Mapping[str, Mapping[str, str]]) -> None:
    """How columns write numbers and dates; what was known first stays, and what was not known yet is added."""
    known = app.styles or {}
    together = {name: {**styles.get(name, {}), **known.get(name, {})} for name in {**known, **styles}}
    if together != known:
        tx.execute(update(apps).where(apps.c.id == app.id).values(styles=together))


def pin(tx: Tx, app_id: AppId, model_set: str | None) -> None:
    tx.execute(update(apps).where(apps.c.id == app_id).values(pinned=model_set))


def give_vectors(tx: Tx, app_id: AppId, path: str, size: int, examples_set: str | None) -> None:
    """The file of word vectors; `examples_set`, where there are examples, is the version that holds it with them."""
    tx.execute(
        update(apps)
        .where(apps.c.id == app_id)
        .values(vectors=path, vector_size=size, examples_set=examples_set)
    )


def set_program(tx: Tx, app_id: AppId, program: str) -> None:
    tx.execute(update(apps).where(apps.c.id == app_id).values(program=program))


def set_metric(tx: Tx, app_id: AppId, metric: str | None) -> None:
    tx.execute(update(apps).where(apps.c.id == app_id).values(metric=metric))


def note_suspects(tx: Tx, app_id: AppId, job_id: JobId) -> None:
    """The job that looks for wrong labels; its result takes the place of the one before."""
    tx.execute(update(apps).where(apps.c.id == app_id).values(suspects_job=job_id))
