"""The provenance graph in other people's formats: W3C PROV-JSON and OpenLineage.

Their libraries are imported when a graph is asked for: they would be a tenth of the server's start.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from easel.flow.lake.trace import MAX_LIMIT, trace, whole_graph
from easel.records.identity import Caller
from easel.records.lake import Artifact, Edge, Graph, Kind
from easel.store.engine import Tx
from easel.store.lake.lineage import TraceDirection

NAMESPACE = "urn:easel:"
PRODUCER = "https://github.com/easel-ml/easel"


def gather(tx: Tx, caller: Caller, reference: str | None) -> Graph:
    """The whole project's graph, or all that a set was made from, in one piece."""
    nodes: dict[int, Artifact] = {}
    edges: dict[int, Edge] = {}
    cursor: str | None = None
    while True:
        if reference is None:
            page = whole_graph(tx, caller, limit=MAX_LIMIT, cursor=cursor)
        else:
            page = trace(tx, caller, reference, TraceDirection.BACKWARD, limit=MAX_LIMIT, cursor=cursor)
        nodes.update(page.nodes)
        edges.update((edge.id, edge) for edge in page.edges)
        cursor = page.next_cursor
        if cursor is None:
            return Graph(nodes, list(edges.values()))


def to_prov(graph: Graph, project: str, users: Mapping[str, str]) -> dict[str, Any]:
    """File sets are entities, jobs and set creations are activities, people are agents."""
    from prov.model import ProvDocument

    document = ProvDocument()
    document.add_namespace("easel", f"{NAMESPACE}{project}:")
    document.add_namespace("user", f"{NAMESPACE}user:")
    for user in sorted(users.values()):
        document.agent(f"user:{user}")
    for node in graph.nodes.values():
        name = _name(node)
        if node.kind is Kind.JOB:
            document.activity(name, startTime=node.created_at)
            document.wasAssociatedWith(name, f"user:{users[node.creator]}")
        else:
            document.entity(name, {"easel:version": node.version, "easel:bytes": node.size})
            document.wasAttributedTo(name, f"user:{users[node.creator]}")
    told: set[tuple[str, str, str]] = set()
    for edge in graph.edges:
        source, target = _name(graph.nodes[edge.source]), _name(graph.nodes[edge.target])
        activity = _activity(graph, edge)
        if edge.job is None and ("activity", activity, "") not in told:
            told.add(("activity", activity, ""))
            document.activity(activity, startTime=graph.nodes[edge.target].created_at)
        for what, one, two in (("used", activity, source), ("generated", target, activity)):
            if (what, one, two) not in told:
                told.add((what, one, two))
                (document.used if what == "used" else document.wasGeneratedBy)(one, two)
        document.wasDerivedFrom(target, source, activity=activity)
    return dict(json.loads(document.serialize(format="json") or "{}"))


def to_openlineage(graph: Graph, project: str) -> list[dict[str, Any]]:
    """One COMPLETE event a set that was made from others: who made it, of what."""
    from openlineage.client.event_v2 import InputDataset, OutputDataset, Run, RunEvent, RunState
    from openlineage.client.event_v2 import Job as LineageJob
    from openlineage.client.serde import Serde

    namespace = f"easel://{project}"
    by_target: dict[tuple[int, int | None], list[int]] = {}
    for edge in graph.edges:
        by_target.setdefault((edge.target, edge.job), []).append(edge.source)
    events = []
    for (target, job), sources in by_target.items():
        made = graph.nodes[target]
        name = graph.nodes[job].name if job else f"create {_label(made)}"
        event = RunEvent(
            eventType=RunState.COMPLETE,
            eventTime=made.created_at.isoformat(),
            run=Run(runId=str(uuid.uuid5(uuid.NAMESPACE_URL, f"{namespace}/{name}/{_label(made)}"))),
            job=LineageJob(namespace=namespace, name=name),
            producer=PRODUCER,
            inputs=[InputDataset(namespace, _label(graph.nodes[source])) for source in sources],
            outputs=[OutputDataset(namespace, _label(made))],
        )
        events.append(json.loads(Serde.to_json(event)))
    return events


def _activity(graph: Graph, edge: Edge) -> str:
    if edge.job is not None:
        return _name(graph.nodes[edge.job])
    return f"easel:create_{_plain(_label(graph.nodes[edge.target]))}"


def _name(node: Artifact) -> str:
    return f"easel:{_plain(node.name if node.kind is Kind.JOB else _label(node))}"


def _label(node: Artifact) -> str:
    return f"{node.name}:{node.version}"


def _plain(text: str) -> str:
    """A colon separates the namespace in PROV's names."""
    return text.replace(":", "_v")
