"""What the file sets of a provenance graph are: examples or models of which app, outputs of which jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from easel.flow.lake.visible import hidden_jobs
from easel.records.identity import Caller
from easel.records.lake import Artifact, Graph, Kind
from easel.store import apps
from easel.store.engine import Tx
from easel.store.job_labels import JobLabel, labels_of


class SetKind(StrEnum):
    """What a file set is for."""

    DATA = "data"
    EXAMPLES = "examples"
    MODEL = "model"
    MEMBERS = "members"
    PROFILE = "profile"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class SetLabel:
    """What a set is, and of which app, where it is of one."""

    kind: SetKind
    app: str | None = None


@dataclass(frozen=True, slots=True)
class GraphLabels:
    """`jobs` by the id that people know, `sets` by the artifact's."""

    jobs: Mapping[str, JobLabel]
    sets: Mapping[int, SetLabel]


def job_names(tx: Tx, caller: Caller, job_ids: Sequence[str]) -> dict[str, str]:
    """Returns what these jobs are called, by id; nothing of those that a grant hides from the caller."""
    return {job_id: label.name for job_id, label in _labels(tx, caller, job_ids).items()}


def _labels(tx: Tx, caller: Caller, job_ids: Sequence[str]) -> dict[str, JobLabel]:
    hidden = hidden_jobs(tx, caller, job_ids)
    return labels_of(tx, [job_id for job_id in job_ids if job_id not in hidden])


def label_graph(tx: Tx, caller: Caller, graph: Graph) -> GraphLabels:
    """Returns what the sets and jobs of a graph are."""
    jobs = _labels(tx, caller, [node.name for node in graph.nodes.values() if node.kind is Kind.JOB])
    known = {app.name for app in apps.list_apps(tx, caller.project_id)}
    makers = {key: jobs.get(node.name) for key, node in graph.nodes.items() if node.kind is Kind.JOB}
    sets = {
        key: _label(node, makers.get(node.made_by or 0), known)
        for key, node in graph.nodes.items()
        if node.kind is Kind.FILE_SET
    }
    return GraphLabels(jobs, sets)


def _label(node: Artifact, maker: JobLabel | None, apps_here: set[str]) -> SetLabel:
    if node.made_by is not None:
        of = maker.app if maker else None
        return SetLabel(SetKind.MODEL if node.name == f"{of}-model" else SetKind.OUTPUT, of)
    app, _, what = node.name.rpartition("-")
    if app in apps_here and what in (SetKind.EXAMPLES, SetKind.MEMBERS):
        return SetLabel(SetKind(what), app)
    return SetLabel(SetKind.PROFILE if node.name.startswith("profile-") else SetKind.DATA)
