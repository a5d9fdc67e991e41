"""Studies, points, samples."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

BIG_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "studies",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("user_id", sa.String(40), nullable=False),
        sa.Column("name", sa.String(64), nullable=False),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("earlier", sa.JSON, nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("changed_at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("project_id", "name", name="uq_studies_project_id_name"),
    )
    op.create_index("ix_studies_state", "studies", ["state"])
    op.create_table(
        "study_points",
        sa.Column("seq", BIG_SERIAL, primary_key=True, autoincrement=True),
        sa.Column("study_id", sa.String(40), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("point", sa.JSON, nullable=False),
        sa.Column("state", sa.String(10), nullable=False),
        sa.Column("job_id", sa.String(40)),
        sa.Column("values", sa.JSON, nullable=False),
        sa.Column("why", sa.JSON, nullable=False),
        sa.Column("decision", sa.JSON),
        sa.Column("reason", sa.Text),
        sa.Column("told", sa.Integer),
        sa.Column("spent", sa.Float(53)),
        sa.Column("best", sa.JSON),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("ended_at", sa.BigInteger),
        sa.UniqueConstraint("job_id", name="uq_study_points_job_id"),
        sa.UniqueConstraint("study_id", "number", name="uq_study_points_study_id_number"),
    )
    op.create_table(
        "study_samples",
        sa.Column("study_id", sa.String(40), primary_key=True),
        sa.Column("fraction", sa.Float(53), primary_key=True),
        sa.Column("file_set", sa.Text, nullable=False),
    )
