"""Scheduled backups and retention rules."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"


def upgrade() -> None:
    big = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "backup_plans",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("every_s", sa.Integer, nullable=False),
        sa.Column("keep", sa.Integer, nullable=False),
        sa.Column("asked", sa.Boolean, nullable=False),
        sa.Column("since", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_backup_plans"),
    )
    op.create_table(
        "backup_runs",
        sa.Column("seq", big, nullable=False, autoincrement=True),
        sa.Column("target", sa.Text, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.Column("name", sa.String(40)),
        sa.Column("rows", sa.Integer),
        sa.Column("blobs", sa.Integer),
        sa.Column("damaged", sa.Integer),
        sa.Column("error", sa.Text),
        sa.PrimaryKeyConstraint("seq", name="pk_backup_runs"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "retention_rules",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("what", sa.String(8), nullable=False),
        sa.Column("older_than_days", sa.Float(53), nullable=False),
        sa.Column("tag", sa.String(200), nullable=False),
        sa.Column("created_by", sa.String(40), nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("applied_at", sa.BigInteger),
        sa.PrimaryKeyConstraint("id", name="pk_retention_rules"),
    )
    op.create_index("ix_retention_rules_project_id", "retention_rules", ["project_id"])
