"""Join series of metrics and tags by the number of their job's artifact, in indexes alone."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"
oldest_supported = "0024"  # series that older releases log get their number from a trigger

# The first of two phases: while servers of older releases log beside new ones, a series that comes without its number
# gets it. A release whose oldest supported schema is 0036 or later removes the trigger.
_SQLITE = (
    """
CREATE TRIGGER job_series_number AFTER INSERT ON job_series WHEN NEW.artifact_id IS NULL
BEGIN
  UPDATE job_series SET artifact_id = (SELECT artifact_id FROM jobs WHERE id = NEW.job_id) WHERE rowid = NEW.rowid;
END
""",
)
_POSTGRES = (
    """
CREATE FUNCTION job_series_number() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  SELECT artifact_id INTO NEW.artifact_id FROM jobs WHERE id = NEW.job_id;
  RETURN NEW;
END $$
""",
    """
CREATE TRIGGER job_series_number BEFORE INSERT ON job_series
FOR EACH ROW WHEN (NEW.artifact_id IS NULL) EXECUTE FUNCTION job_series_number()
""",
)


def upgrade() -> None:
    op.add_column("job_series", sa.Column("artifact_id", sa.BigInteger()))
    op.drop_index("ix_job_series_last", "job_series")  # before the update, which would write it row by row
    op.execute(
        "UPDATE job_series SET artifact_id = jobs.artifact_id FROM jobs WHERE jobs.id = job_series.job_id"
    )
    op.create_index(
        "ix_job_series_last",
        "job_series",
        ["project_id", "name", "last", "artifact_id"],
        postgresql_include=["attempt"],
    )
    op.create_index(
        "ix_job_series_artifact",
        "job_series",
        ["artifact_id", "name"],
        postgresql_include=["attempt", "last", "project_id"],
    )
    op.create_index("ix_jobs_artifact", "jobs", ["artifact_id"])
    for statement in _POSTGRES if op.get_bind().dialect.name == "postgresql" else _SQLITE:
        op.execute(statement)
