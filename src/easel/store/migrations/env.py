"""Alembic's entry. The connection is handed in by store/migrate.py; there is no offline mode."""

from alembic import context

from easel.store.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
