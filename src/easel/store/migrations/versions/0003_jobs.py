"""Jobs, their logs and metrics, queues, pipelines, devices."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

BIG_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_ACTIVE = sa.text("state IN ('launching', 'downloading', 'running', 'uploading')")
_QUEUED = sa.text("state = 'queued'")


def upgrade() -> None:
    op.create_table(
        "jobs",
        sa.Column("seq", BIG_SERIAL, primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("user_id", sa.String(40), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("rank", sa.Integer, nullable=False),
        sa.Column("blocked", sa.Integer, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("lost", sa.Integer, nullable=False),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.Column("applied", sa.BigInteger, nullable=False),
        sa.Column("kill_requested", sa.Boolean, nullable=False),
        sa.Column("exit_code", sa.Integer),
        sa.Column("reason", sa.Text),
        sa.Column("result", sa.JSON),
        sa.Column("usage", sa.JSON),
        sa.Column("progress", sa.Float(53)),
        sa.Column("log_lines", sa.BigInteger, nullable=False),
        sa.Column("log_bytes", sa.BigInteger, nullable=False),
        sa.Column("artifact_id", sa.BigInteger),
        sa.Column("code_set", sa.Text),
        sa.Column("input_set", sa.Text),
        sa.Column("input_id", sa.BigInteger),
        sa.Column("output_set", sa.Text),
        sa.Column("output_id", sa.BigInteger),
        sa.Column("set_tags", sa.JSON),
        sa.Column("parent_id", sa.String(40)),
        sa.Column("pipeline_id", sa.String(40)),
        sa.Column("step", sa.String(100)),
        sa.Column("signature", sa.String(64)),
        sa.Column("device", sa.String(100)),
        sa.Column("submitted_at", sa.BigInteger, nullable=False),
        sa.Column("launched_at", sa.BigInteger),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger),
        sa.CheckConstraint(
            "state IN ('queued', 'launching', 'downloading', 'running', 'uploading', 'finished', 'failed', 'killed')",
            name="ck_jobs_state",
        ),
        sa.UniqueConstraint("id", name="uq_jobs_id"),
    )
    op.create_index(
        "ix_jobs_active", "jobs", ["project_id", "user_id"], postgresql_where=_ACTIVE, sqlite_where=_ACTIVE
    )
    op.create_index("ix_jobs_pipeline", "jobs", ["pipeline_id"])
    op.create_index("ix_jobs_project_seq", "jobs", ["project_id", "seq"])
    op.create_index("ix_jobs_signature", "jobs", ["project_id", "signature"])
    op.create_index(
        "ix_jobs_queue",
        "jobs",
        ["project_id", "user_id", "blocked", "rank", "seq"],
        postgresql_where=_QUEUED,
        sqlite_where=_QUEUED,
    )
    op.create_table(
        "job_needs",
        sa.Column("job_id", sa.String(40), primary_key=True),
        sa.Column("needs", sa.String(40), primary_key=True),
    )
    op.create_index("ix_job_needs_needs", "job_needs", ["needs"])
    op.create_table(
        "job_logs",
        sa.Column("job_id", sa.String(40), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True),
        sa.Column("first_line", sa.BigInteger, nullable=False),
        sa.Column("lines", sa.BigInteger, nullable=False),
        sa.Column("stream", sa.String(8), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("data", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "job_metrics",
        sa.Column("job_id", sa.String(40), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("step", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("value", sa.Float(53)),
        sa.Column("text", sa.String(4)),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "job_queues",
        sa.Column("project_id", sa.String(40), primary_key=True),
        sa.Column("user_id", sa.String(40), primary_key=True),
        sa.Column("max_active", sa.Integer),
        sa.Column("paused", sa.Boolean, nullable=False),
        sa.Column("served", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "pipelines",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("user_id", sa.String(40), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("parent_id", sa.String(40)),
        sa.Column("created_at", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_pipelines_project_id_created_at", "pipelines", ["project_id", "created_at"])
    op.create_table(
        "devices",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("executor", sa.String(20), nullable=False),
        sa.Column("vcpu", sa.Float(53), nullable=False),
        sa.Column("memory_mb", sa.BigInteger, nullable=False),
        sa.Column("gpus", sa.Integer, nullable=False),
        sa.Column("notes", sa.JSON, nullable=False),
        sa.Column("connected", sa.Boolean, nullable=False),
        sa.Column("seen_at", sa.BigInteger, nullable=False),
    )
