from __future__ import annotations

import gzip
import io
import re
from pathlib import Path

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text
from tests.fixtures.fill_gaps import RELEASED

from easel.declare.page import PageRequest
from easel.errors import Misconfigured
from easel.ids import ProjectId
from easel.store import apps, jobs, migrations
from easel.store.billing import find_budget
from easel.store.dump import dump, load
from easel.store.engine import Store, Tx
from easel.store.job_logs import read_lines
from easel.store.lake import file_sets
from easel.store.migrate import SchemaFit, head, look_at_schema, migrate, revision
from easel.store.schema import metadata


def test_the_migrations_build_exactly_the_declared_tables(store: Store) -> None:
    with store.read() as tx:
        context = MigrationContext.configure(tx.conn, opts={"compare_type": False})
        assert compare_metadata(context, metadata) == []


def test_an_empty_database_needs_no_backup(database_url: str) -> None:
    store = Store(database_url)
    backups: list[str] = []
    migrate(store, backups.append)
    assert revision(store) == head()
    assert backups == []
    store.close()


def test_a_newer_schema_is_refused_with_a_remedy(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/easel.sqlite")
    migrate(store, backup=lambda _revision: None)
    with store.write() as tx:
        tx.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        tx.execute(text("UPDATE schema_support SET oldest = '9999'"))
    with pytest.raises(Misconfigured, match="newer than this Easel"):
        migrate(store, backup=lambda _revision: None)
    store.close()


def test_a_schema_that_a_newer_release_only_added_to_is_used_as_it_is(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/easel.sqlite")
    migrate(store, backup=lambda _revision: None)
    with store.write() as tx:
        tx.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        tx.execute(text("ALTER TABLE jobs ADD COLUMN of_the_next TEXT"))
    for oldest, fit in ((head(), SchemaFit.NEWER), ("9999", SchemaFit.TOO_NEW)):
        with store.write() as tx:
            tx.execute(text("UPDATE schema_support SET oldest = :oldest"), {"oldest": oldest})
        assert look_at_schema(store) == ("9999", fit)
        if fit is SchemaFit.NEWER:
            migrate(store, backup=pytest.fail)
    assert revision(store) == "9999"
    store.close()


VERSIONS = Path(migrations.__file__).parent / "versions"
REMOVES = re.compile(
    r"\b(drop_\w+|alter_column|rename_table|batch_alter_table|DROP |RENAME |UPDATE |DELETE )"
)


def test_migrations_only_add_or_say_which_release_can_still_use_the_schema() -> None:
    """`oldest_supported = "NNNN"` in a migration: servers of releases before that schema are told to stop."""
    since = [file for file in VERSIONS.glob("[0-9]*.py") if file.name >= "0024"]
    assert since
    for file in since:
        body = file.read_text().partition("def downgrade")[0]
        required = re.search(r"add_column\([^)]*nullable=False(?![^)]*server_default)", body, re.DOTALL)
        if "oldest_supported" not in body:
            assert not REMOVES.search(body), f"{file.name} changes what older releases use"
            assert not required, f"{file.name} adds a column that older releases do not fill"


def test_migrations_are_numbered_in_the_order_in_which_they_follow_each_other() -> None:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    scripts = list(ScriptDirectory.from_config(config).walk_revisions())
    assert [script.revision for script in scripts] == sorted(
        (script.revision for script in scripts), reverse=True
    )
    assert scripts[0].revision == head()
    assert all(Path(script.path).name.startswith(f"{script.revision}_") for script in scripts)


KEPT = sorted((Path(__file__).parent.parent / "fixtures" / "databases").glob("*.jsonl.gz"))


@pytest.mark.parametrize("file", KEPT, ids=lambda file: file.name)
def test_a_database_of_every_released_schema_is_upgraded_and_read_as_if_it_were_ours(
    file: Path, database_url: str
) -> None:
    """CONTRIBUTING says how to keep one when a schema is released."""
    store = Store(database_url)
    with gzip.open(file, "rb") as lines:
        rows = load(store, iter(lines))
    migrate(store, backup=lambda _revision: None)
    assert revision(store) == head()
    assert rows > 0
    with store.read() as tx:
        assert tx.execute(text("SELECT count(*) FROM projects")).scalar_one() == 2
        context = MigrationContext.configure(tx.conn, opts={"compare_type": False})
        assert compare_metadata(context, metadata) == []
        if file.name >= FIRST_WITH_JOBS:
            _check_what_was_kept(tx)
    store.close()


FIRST_WITH_JOBS = "0005"


def _check_what_was_kept(tx: Tx) -> None:
    project = ProjectId(tx.execute(text("SELECT id FROM projects WHERE name = 'astro'")).scalar_one())
    found = [job for job, _owner in jobs.list_jobs(tx, project, PageRequest(sort="seq")).items]
    counted, failed, killed, waiting = found
    assert [job.state for job in found] == ["finished", "failed", "killed", "queued"]
    assert (counted.output_set, counted.spec.tags) == ("counts:1", {"paper": "acai"})
    lines_of = [line.text for line in read_lines(tx, failed.id, failed.attempt, 0, 10)]
    assert (failed.exit_code, lines_of) == (3, ["oh"])
    assert killed.reason == "enough"
    assert waiting.attempt == 0
    budget = find_budget(tx, project)
    assert budget is not None
    assert budget.limit_micros == 5_000_000
    assert apps.find(tx, project, "flowers").examples_set == "flowers-examples:1"
    assert file_sets.find(tx, project, "counts", None) is not None


def test_every_released_schema_has_its_database() -> None:
    """A schema that is still being written may have none: `python -m tests.fixtures.keep_database` makes it."""
    kept = [file.name.partition(".")[0] for file in KEPT]
    assert kept[: len(RELEASED)] == RELEASED


def test_a_migration_that_fails_leaves_the_old_state(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(database_url)
    kept = next(file for file in KEPT if file.name >= FIRST_WITH_JOBS)
    with gzip.open(kept, "rb") as lines:
        load(store, iter(lines))
    before = _everything(store)
    upgrade = command.upgrade

    def fails_at_the_end(config: Config, to: str) -> None:
        upgrade(config, to)
        raise RuntimeError("the power went")

    monkeypatch.setattr(command, "upgrade", fails_at_the_end)
    with pytest.raises(RuntimeError, match="power"):
        migrate(store, backup=lambda _revision: None)
    assert revision(store) == kept.name.partition(".")[0]
    assert _everything(store) == before
    monkeypatch.undo()
    migrate(store, backup=lambda _revision: None)
    assert revision(store) == head()
    store.close()


def _everything(store: Store) -> bytes:
    copy = io.BytesIO()
    dump(store, copy)
    return copy.getvalue()
