"""The audit: a chain of entries that only grows."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("seq", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("actor", sa.String(40)),
        sa.Column("actor_name", sa.String(64)),
        sa.Column("token", sa.String(40)),
        sa.Column("project_id", sa.String(40)),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("method", sa.String(10), nullable=False),
        sa.Column("route", sa.String(200), nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("outcome", sa.String(12), nullable=False),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_index("ix_audit_at_seq", "audit", ["at", "seq"])
    op.create_index("ix_audit_actor_seq", "audit", ["actor", "seq"])
    op.create_index("ix_audit_project_id_seq", "audit", ["project_id", "seq"])
    op.create_table(
        "audit_pending",
        sa.Column("key", sa.String(64), primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.Column("entry", sa.JSON, nullable=False),
    )
    op.create_table(
        "audit_head",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("seq", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.Column("trimmed_seq", sa.BigInteger, nullable=False),
        sa.Column("trimmed_hash", sa.String(64), nullable=False),
        sa.Column("sent_seq", sa.BigInteger, nullable=False),
    )
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE TRIGGER audit_no_update BEFORE UPDATE ON audit "
            "BEGIN SELECT RAISE(ABORT, 'the audit only grows'); END"
        )
        op.execute(
            "CREATE TRIGGER audit_no_delete BEFORE DELETE ON audit "
            "WHEN OLD.seq > COALESCE((SELECT trimmed_seq FROM audit_head), 0) "
            "BEGIN SELECT RAISE(ABORT, 'the audit only grows'); END"
        )
        return
    op.execute(
        "CREATE FUNCTION audit_only_grows() RETURNS trigger AS $$ BEGIN "
        "IF TG_OP = 'DELETE' AND OLD.seq <= COALESCE((SELECT trimmed_seq FROM audit_head), 0) THEN RETURN OLD; "
        "END IF; RAISE EXCEPTION 'the audit only grows'; END $$ LANGUAGE plpgsql"
    )
    op.execute(
        "CREATE TRIGGER audit_only_grows BEFORE UPDATE OR DELETE ON audit "
        "FOR EACH ROW EXECUTE FUNCTION audit_only_grows()"
    )
