"""Attempts that are over, with what they are billed for; why jobs ended; when they may be tried again."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

_UNBILLED = sa.text("billed = false")


def upgrade() -> None:
    serial = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "job_attempts",
        sa.Column("seq", serial, primary_key=True, autoincrement=True),
        sa.Column("job_id", sa.String(40), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("device", sa.String(100)),
        sa.Column("held_at", sa.BigInteger),
        sa.Column("started_at", sa.BigInteger),
        sa.Column("ended_at", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Float(53), nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("end_reason", sa.String(20)),
        sa.Column("reason", sa.Text),
        sa.Column("exit_code", sa.Integer),
        sa.Column("log_lines", sa.BigInteger, nullable=False),
        sa.Column("billed", sa.Boolean, nullable=False),
    )
    op.create_index("ix_job_attempts_job_id_attempt", "job_attempts", ["job_id", "attempt"], unique=True)
    op.create_index(
        "ix_job_attempts_unbilled",
        "job_attempts",
        ["seq"],
        postgresql_where=_UNBILLED,
        sqlite_where=_UNBILLED,
    )
    op.add_column("jobs", sa.Column("end_reason", sa.String(20)))
    for name in ("not_before", "held_at", "heard_at"):
        op.add_column("jobs", sa.Column(name, sa.BigInteger))
    op.add_column("work", sa.Column("shift", sa.Float(53)))
    op.add_column("work_reports", sa.Column("gone_end", sa.String(20)))
    # Who holds a device now is billed from the moment that was known; who held one and was not billed yet, too.
    op.execute(
        "UPDATE jobs SET heard_at = (SELECT since FROM holds WHERE holds.job_id = jobs.id), "
        "held_at = (SELECT since FROM holds WHERE holds.job_id = jobs.id) "
        "WHERE state IN ('launching', 'downloading', 'running', 'uploading')"
    )
    op.execute(
        "INSERT INTO job_attempts (job_id, attempt, device, held_at, started_at, ended_at, seconds, state, "
        "reason, exit_code, log_lines, billed) "
        "SELECT jobs.id, jobs.attempt, jobs.device, holds.since, jobs.started_at, jobs.ended_at, "
        "(CASE WHEN jobs.ended_at > holds.since THEN jobs.ended_at - holds.since ELSE 0 END) / 1000000.0, "
        "jobs.state, jobs.reason, jobs.exit_code, jobs.log_lines, false "
        "FROM holds JOIN jobs ON jobs.id = holds.job_id WHERE jobs.ended_at IS NOT NULL"
    )
    op.drop_table("holds")
    op.drop_table("billed_events")
