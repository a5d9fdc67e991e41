"""Devices that get no more work, and until when what they have may run."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"


def upgrade() -> None:
    for name, kind in (
        ("drain_since", sa.BigInteger),
        ("drain_by", sa.BigInteger),
        ("drain_reason", sa.Text),
    ):
        op.add_column("devices", sa.Column(name, kind))
