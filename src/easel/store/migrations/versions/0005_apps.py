"""Apps, examples, refinements, trials."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

BIG_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "apps",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("user_id", sa.String(40), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("program", sa.Text, nullable=False),
        sa.Column("metric", sa.String(40)),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("examples_set", sa.Text),
        sa.Column("summary", sa.JSON),
        sa.UniqueConstraint("project_id", "name", name="uq_apps_project_id_name"),
    )
    op.create_table(
        "app_examples",
        sa.Column("seq", BIG_SERIAL, primary_key=True, autoincrement=True),
        sa.Column("app_id", sa.String(40), nullable=False),
        sa.Column("digest", sa.String(32), nullable=False),
        sa.Column("stratum", sa.Text, nullable=False),
        sa.Column("fold", sa.Integer, nullable=False),
        sa.Column("on", sa.Boolean, nullable=False),
        sa.Column("fed_at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("app_id", "digest", name="uq_app_examples_app_id_digest"),
    )
    op.create_table(
        "app_refinements",
        sa.Column("seq", BIG_SERIAL, primary_key=True, autoincrement=True),
        sa.Column("app_id", sa.String(40), nullable=False),
        sa.Column("actor", sa.String(40), nullable=False),
        sa.Column("on", sa.Boolean, nullable=False),
        sa.Column("digests", sa.JSON, nullable=False),
        sa.Column("undone", sa.Boolean, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "app_trials",
        sa.Column("seq", BIG_SERIAL, primary_key=True, autoincrement=True),
        sa.Column("app_id", sa.String(40), nullable=False),
        sa.Column("job_id", sa.String(40), nullable=False),
        sa.Column("candidate", sa.JSON, nullable=False),
        sa.Column("decision", sa.JSON, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("examples", sa.Integer, nullable=False),
        sa.Column("ended", sa.Boolean, nullable=False),
        sa.Column("quality", sa.Float(53)),
        sa.Column("seconds", sa.Float(53)),
        sa.Column("model_set", sa.Text),
        sa.UniqueConstraint("job_id", name="uq_app_trials_job_id"),
    )
    op.create_index("ix_app_trials_app_id", "app_trials", ["app_id"])
