"""No search asks for the least or largest value of a series by index, and every point logged paid for both."""

from alembic import op

revision = "0040"
down_revision = "0039"
oldest_supported = "0024"  # older releases never asked these indexes either


def upgrade() -> None:
    op.drop_index("ix_job_series_low", "job_series")
    op.drop_index("ix_job_series_high", "job_series")
