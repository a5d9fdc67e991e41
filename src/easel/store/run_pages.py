"""A page of runs with all that they logged, by one statement of PostgreSQL that writes the JSON which clients get.

Building a thousand small records from rows costs ten times what the database needs to find them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import ColumnElement, Text, literal_column

from easel.records.job import JobState
from easel.store.runs import FREE
from easel.store.schema.jobs import jobs

# What is infinite is the largest number that there is, as MLflow's own server says it.
_WRITTEN = """
SELECT CASE WHEN jobs.kind = '{free}' AND t.told
    AND NOT EXISTS (SELECT 1 FROM run_datasets d WHERE d.job_id = jobs.id)
    AND NOT EXISTS (SELECT 1 FROM run_models u WHERE u.job_id = jobs.id)
  THEN concat('{{"info":{{"run_uuid":"', jobs.id, '","run_id":"', jobs.id,
    '","run_name":', to_json(coalesce(t.named, jobs.name)),
    ',"experiment_id":"', jobs.experiment,
    '","user_id":', to_json(coalesce(nullif(jobs.spec -> 'run' ->> 'user', ''), t.tagged_user,
        (SELECT u.name FROM users u WHERE u.id = jobs.user_id), 'unknown')),
    ',"status":"', CASE jobs.state {statuses} END,
    '","start_time":', jobs.submitted_at / 1000,
    ',"artifact_uri":', to_json(concat(coalesce(
        (SELECT nullif(rtrim(e.artifact_location, '/'), '') FROM experiments e
         WHERE e.project_id = jobs.project_id AND e.number = jobs.experiment),
        concat('{scheme}', jobs.experiment)), '/', jobs.id, '/artifacts')),
    ',"lifecycle_stage":"', CASE WHEN jobs.deleted_at IS NULL THEN 'active' ELSE 'deleted' END, '"',
    ',"end_time":' || jobs.ended_at / 1000,
    '}},"data":{{', concat_ws(',', '"metrics":[' || m.metrics || ']', '"params":[' || t.params || ']',
        '"tags":[' || t.tags || ']'),
    '}},"inputs":{{}}}}') END
FROM (
  SELECT string_agg(concat('{{"key":', to_json(s.name), ',"value":', CASE
      WHEN s.last IS NOT NULL THEN CAST(s.last AS text)
      WHEN s.last_text = 'nan' THEN '"NaN"'
      WHEN s.last_text = '-inf' THEN '-1.7976931348623157e308'
      ELSE '1.7976931348623157e308' END,
    ',"timestamp":', s.last_at / 1000, ',"step":', s.last_step, '}}'), ',') AS metrics
  FROM job_series s WHERE s.job_id = jobs.id AND s.attempt = jobs.attempt AND s.last_at IS NOT NULL
) m, (
  SELECT string_agg(concat('{{"key":', to_json(substr(t.key, 7)),
      ',"value":', to_json(coalesce(t.whole, t.text)), '}}'), ',')
      FILTER (WHERE t.key >= 'param.' AND t.key < 'param/') AS params,
    string_agg(concat('{{"key":',
      to_json(CASE WHEN t.key >= 'tag.' AND t.key < 'tag/' THEN substr(t.key, 5) ELSE t.key END),
      ',"value":', to_json(coalesce(t.whole, t.text)), '}}'), ',')
      FILTER (WHERE t.key < 'param.' OR t.key >= 'param/') AS tags,
    coalesce(bool_and(t.text IS NOT NULL OR t.whole IS NOT NULL), true) AS told,
    max(coalesce(t.whole, t.text)) FILTER (WHERE t.key = 'mlflow.runName') AS named,
    max(coalesce(t.whole, t.text)) FILTER (WHERE t.key = 'mlflow.user') AS tagged_user
  FROM tags t WHERE t.artifact_id = jobs.artifact_id
) t
"""


def written_columns(statuses: Mapping[JobState, str], scheme: str) -> tuple[ColumnElement[Any], ...]:
    """Returns what a search selects in place of the plain columns of runs: the id, and the run as JSON.

    There is no JSON where it would not tell all: data sets, models, tags that are numbers, jobs, whose tags are
    completed. `scheme` begins the address of files that lie in Easel.
    """
    cases = " ".join(f"WHEN '{state.value}' THEN '{name}'" for state, name in statuses.items())
    query = " ".join(
        _WRITTEN.format(free=FREE, statuses=cases, scheme=scheme).split()
    )  # the driver reads it each time
    return jobs.c.id, literal_column(f"({query})", Text).label("written")
