"""Prices, bills, budgets, profiles, provisions."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

BIG_SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "prices",
        sa.Column("seq", BIG_SERIAL, primary_key=True, autoincrement=True),
        sa.Column("since", sa.BigInteger, nullable=False),
        sa.Column("book", sa.JSON, nullable=False),
        sa.Column("actor", sa.String(40)),
    )
    op.create_table(
        "billed_events",
        sa.Column("name", sa.String(20), primary_key=True),
        sa.Column("seq", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "holds",
        sa.Column("job_id", sa.String(40), primary_key=True),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("since", sa.BigInteger, nullable=False),
    )
    op.create_index("ix_holds_project_id", "holds", ["project_id"])
    op.create_table(
        "bill_lines",
        sa.Column("job_id", sa.String(40), primary_key=True),
        sa.Column("attempt", sa.Integer, primary_key=True),
        sa.Column("line", sa.Integer, primary_key=True),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("user_id", sa.String(40), nullable=False),
        sa.Column("app", sa.String(100), nullable=False),
        sa.Column("month", sa.String(7), nullable=False),
        sa.Column("start", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Float(53), nullable=False),
        sa.Column("per_hour", sa.Float(53), nullable=False),
        sa.Column("micros", sa.BigInteger, nullable=False),
        sa.Column("currency", sa.String(8), nullable=False),
        sa.Column("book", sa.String(100), nullable=False),
    )
    op.create_index("ix_bill_lines_project_id_month", "bill_lines", ["project_id", "month"])
    op.create_table(
        "budgets",
        sa.Column("project_id", sa.String(40), primary_key=True),
        sa.Column("limit_micros", sa.BigInteger, nullable=False),
        sa.Column("period", sa.String(8), nullable=False),
        sa.Column("warn_at", sa.JSON, nullable=False),
        sa.Column("hard_stop", sa.Boolean, nullable=False),
        sa.Column("warned_in", sa.String(8), nullable=False),
        sa.Column("warned", sa.JSON, nullable=False),
    )
    op.create_table(
        "profiles",
        sa.Column("id", sa.String(40), primary_key=True),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("user_id", sa.String(40), nullable=False),
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("template", sa.Text, nullable=False),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("plan", sa.JSON, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("runs", sa.JSON, nullable=False),
        sa.Column("runtime", sa.JSON),
        sa.Column("memory", sa.JSON),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("fitted_at", sa.BigInteger),
    )
    op.create_index(
        "ix_profiles_project_id_name_version", "profiles", ["project_id", "name", "version"], unique=True
    )
    op.create_index("ix_profiles_state", "profiles", ["state"])
    op.create_table(
        "profile_runs",
        sa.Column("profile_id", sa.String(40), primary_key=True),
        sa.Column("job_id", sa.String(40), primary_key=True),
        sa.Column("features", sa.JSON, nullable=False),
    )
    op.create_table(
        "provisions",
        sa.Column("job_id", sa.String(40), primary_key=True),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("profile_id", sa.String(40), nullable=False),
        sa.Column("features", sa.JSON, nullable=False),
        sa.Column("wish", sa.JSON, nullable=False),
        sa.Column("promised_seconds", sa.Float(53), nullable=False),
        sa.Column("low_seconds", sa.Float(53), nullable=False),
        sa.Column("high_seconds", sa.Float(53), nullable=False),
        sa.Column("promised_micros", sa.BigInteger, nullable=False),
        sa.Column("seconds", sa.Float(53)),
        sa.Column("micros", sa.BigInteger),
        sa.Column("compared_at", sa.BigInteger),
    )
    op.create_index("ix_provisions_compared", "provisions", ["compared_at"])
    op.create_index("ix_provisions_project_id", "provisions", ["project_id"])
