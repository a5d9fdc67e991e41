"""A fitted model in the provenance graph: a version of the set `profile-NAME`, made from what its runs left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from easel.errors import EaselError
from easel.flow.jobs.people import Owners
from easel.flow.lake.file_set import Resolved, add_version, own_nodes
from easel.lake.manifest import tree
from easel.price.runs import ProfiledRun
from easel.records.lake import FileSetVersion, TagValue
from easel.store import jobs
from easel.store.engine import Tx
from easel.store.lake import lineage, tags
from easel.store.profiles import Profile


def record_model(
    tx: Tx, profile: Profile, model: Mapping[str, Any], runs: Sequence[ProfiledRun]
) -> FileSetVersion | None:
    """The node of a profile's version, with an edge for each run that its model was fitted to; none when whoever
    began the profile has left the project meanwhile.

    The set holds no files: the model is in the profile itself, and the tags say which. Edges come from what a run
    wrote, or, where it wrote nothing, from what it read.
    """
    try:
        owner = Owners(tx).caller(profile.project_id, profile.user_id)
    except EaselError:
        return None
    nodes = own_nodes(tx)
    empty = tree.build(nodes, iter(()))
    nodes.flush()
    made = add_version(tx, owner, f"profile-{profile.name}", Resolved((), empty, frozenset()))
    rows = jobs.rows(tx, [run.job for run in runs if run.job], lock=False)
    for row in rows.values():
        source = row.output_id if row.output_id is not None else row.input_id
        if source is not None:
            lineage.add_edges(tx, owner.project_id, [source], made.artifact.id, row.artifact_id)
    found: dict[str, TagValue] = {
        "profile": f"{profile.name}:{profile.version}",
        "model": str(model["chosen"]),
        "error": float(model["left_out"][model["chosen"]]),
        "runs": float(model["runs"]),
    }
    tags.put_tags(tx, made.artifact, found)
    return made
