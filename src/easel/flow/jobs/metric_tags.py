"""What a job measured becomes searchable: the last, least and largest value of each metric as tags of the job."""

from __future__ import annotations

import math
from collections.abc import Sequence

from easel.flow.lake.tag import give_tags
from easel.ids import ProjectId
from easel.records.lake import Kind
from easel.store import job_series
from easel.store.engine import Tx
from easel.store.lake.tags import NewTag
from easel.store.stored_job import StoredJob

PLATFORM = "system/"
MOST = 50
"""Of a job's metrics: with three tags each, all that a job may have."""


def tag_metrics(tx: Tx, ended: Sequence[StoredJob]) -> None:
    """`accuracy` is the last value, `accuracy_min` and `accuracy_max` the extremes; a tag of the user's own stays."""
    found: list[NewTag] = []
    for row in ended:
        own = row.spec["tags"]
        summaries = job_series.summaries_of(tx, row.id, row.attempt)
        for each in [s for s in summaries if not s.name.startswith(PLATFORM)][:MOST]:
            key = each.name.replace("/", ".")
            values = {key: each.last, f"{key}_min": each.low, f"{key}_max": each.high}
            found += [
                NewTag(ProjectId(row.project_id), row.artifact_id, Kind.JOB, name, value)
                for name, value in values.items()
                if value is not None and math.isfinite(value) and name not in own
            ]
    give_tags(tx, found)
