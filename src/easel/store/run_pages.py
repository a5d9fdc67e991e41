"""A page of runs with all that they logged, by one statement of PostgreSQL: what was logged comes as JSON text.

Building a thousand small records from rows costs ten times what the database needs to find them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Text, literal_column

from easel.records.run import RunRecord
from easel.store.engine import AnyRow
from easel.store.runs import FREE, RUN_COLUMNS, run_of

_NO_TEXT = '"value" : null'
"""How PostgreSQL writes a tag whose value is a number or a time. Inside of a text the quotes would be escaped."""
# What is infinite is the largest number that there is, as MLflow's own server says it.
_LOGGED = {
    "metrics": """
        SELECT CAST(json_agg(json_build_object('key', s.name, 'value', CASE
            WHEN s.last IS NOT NULL THEN to_json(s.last)
            WHEN s.last_text = 'nan' THEN CAST('"NaN"' AS json)
            WHEN s.last_text = '-inf' THEN CAST('-1.7976931348623157e308' AS json)
            ELSE CAST('1.7976931348623157e308' AS json) END,
          'timestamp', s.last_at / 1000, 'step', s.last_step)) AS text)
        FROM job_series s
        WHERE s.job_id = jobs.id AND s.attempt = jobs.attempt AND s.last_at IS NOT NULL""",
    "params": """
        SELECT CAST(json_agg(json_build_object('key', substr(t.key, 7), 'value', coalesce(t.whole, t.text))) AS text)
        FROM tags t WHERE t.artifact_id = jobs.artifact_id AND t.key >= 'param.' AND t.key < 'param/'""",
    "tags": """
        SELECT CAST(json_agg(json_build_object(
          'key', CASE WHEN t.key >= 'tag.' AND t.key < 'tag/' THEN substr(t.key, 5) ELSE t.key END,
          'value', coalesce(t.whole, t.text))) AS text)
        FROM tags t WHERE t.artifact_id = jobs.artifact_id AND (t.key < 'param.' OR t.key >= 'param/')""",
    "named": """
        SELECT coalesce(t.whole, t.text) FROM tags t
        WHERE t.artifact_id = jobs.artifact_id AND t.key = 'mlflow.runName'""",
    "tagged_user": """
        SELECT coalesce(t.whole, t.text) FROM tags t
        WHERE t.artifact_id = jobs.artifact_id AND t.key = 'mlflow.user'""",
    "owner": "SELECT u.name FROM users u WHERE u.id = jobs.user_id",
    "location": """
        SELECT e.artifact_location FROM experiments e
        WHERE e.project_id = jobs.project_id AND e.number = jobs.experiment""",
    "more": """
        SELECT EXISTS (SELECT 1 FROM run_datasets d WHERE d.job_id = jobs.id)
          OR EXISTS (SELECT 1 FROM run_models m WHERE m.job_id = jobs.id)""",
}
COLUMNS: tuple[ColumnElement[Any], ...] = (
    *RUN_COLUMNS,
    *(literal_column(f"({query})", Text).label(name) for name, query in _LOGGED.items()),
)
"""What a search selects in place of the plain columns of runs."""


@dataclass(frozen=True, slots=True)
class WrittenRun:
    """A run, and what it logged as JSON in MLflow's words; None where there is nothing."""

    record: RunRecord
    metrics: str | None
    params: str | None
    tags: str | None
    name: str
    user: str
    location: str | None


def written_of(row: AnyRow) -> WrittenRun | None:
    """None where JSON does not tell all: data sets, models, tags that are numbers, jobs, whose tags are completed."""
    if row.kind != FREE or row.more or (row.tags is not None and _NO_TEXT in row.tags):
        return None
    record = run_of(row)
    user = record.said_user or row.tagged_user or row.owner or "unknown"
    return WrittenRun(record, row.metrics, row.params, row.tags, row.named or record.name, user, row.location)
