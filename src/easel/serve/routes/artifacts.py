"""Tags, search and provenance: the same for files, file sets and jobs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from fastapi import Query, Response
from fastapi.responses import JSONResponse

from easel.declare.verbs import Verb
from easel.errors import InvalidInput
from easel.flow.lake import export, find, tag, trace
from easel.flow.lake.labels import job_names, label_graph
from easel.flow.lake.trace import TraceDirection
from easel.flow.members import names_of
from easel.records import lake as records
from easel.records.identity import Caller
from easel.serve.access import Member, State, acts
from easel.serve.router import Router
from easel.serve.state import Tx
from easel.wire import lake as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1/projects/{project}", tags=["artifacts"])

Start = Annotated[str | None, Query(max_length=150, description="A file set; empty for the whole graph")]
Limit = Annotated[int, Query(ge=1, le=5000)]
Cursor = Annotated[str | None, Query(max_length=20)]


@router.post("/tags", response_model=wire.Artifact)
def set_tags(state: State, caller: Member, body: wire.SetTags) -> wire.Artifact:
    """Set and remove tags of a file version, a file-set version or a job."""
    with state.store.write() as tx:
        values = {key: _read(value) for key, value in body.tags.items()}
        kind = records.Kind(body.kind.value)
        found, now = tag.set_tags(tx, caller, kind, body.ref, values, [_text(key) for key in body.remove])
        return _shown(tx, caller, [(found, now)])[0]


@router.post("/find", response_model=Page[wire.Artifact])
@acts(Verb.READ)
def find_artifacts(state: State, caller: Member, body: wire.Find) -> Page[wire.Artifact]:
    """What fulfils a query, e.g. `job.creator = john and job.create_time = today and precision > 0.5`."""
    with state.store.read() as tx:
        found = find.find(
            tx,
            caller,
            records.Kind(body.kind.value),
            body.query,
            sort=body.sort,
            limit=body.limit,
            cursor=body.cursor,
        )
        items = _shown(tx, caller, found.items)
    return Page(items=items, next_cursor=found.next_cursor)


@router.get("/lineage", response_model=wire.Graph)
def lineage(
    state: State,
    caller: Member,
    ref: Start = None,
    direction: TraceDirection = TraceDirection.BACKWARD,
    one_step: bool = False,
    limit: Limit = 1000,
    cursor: Cursor = None,
) -> wire.Graph:
    """The provenance graph: all of it, or what a set was made from (backward) or what was made of it (forward)."""
    with state.store.read() as tx:
        if ref is None:
            found = trace.whole_graph(tx, caller, limit=limit, cursor=cursor)
        else:
            found = trace.trace(tx, caller, ref, direction, one_step=one_step, limit=limit, cursor=cursor)
        return _graph(tx, caller, found)


@router.get("/lineage/export", response_class=JSONResponse)
def export_lineage(
    state: State,
    caller: Member,
    ref: Start = None,
    form: Annotated[str, Query(pattern="^(prov|openlineage)$", alias="format")] = "prov",
) -> Response:
    """The graph as W3C PROV-JSON, or as a list of OpenLineage events."""
    assert caller.project is not None
    with state.store.read() as tx:
        whole = export.gather(tx, caller, ref)
        users = names_of(tx, [node.creator for node in whole.nodes.values()])
    if form == "prov":
        return JSONResponse(export.to_prov(whole, caller.project.name, users))
    return JSONResponse(export.to_openlineage(whole, caller.project.name))


def _shown(
    tx: Tx, caller: Caller, found: list[tuple[records.Artifact, Mapping[str, records.TagValue]]] | Any
) -> list[wire.Artifact]:
    names = names_of(tx, [each.creator for each, _ in found])
    jobs = find.makers_of(tx, [each for each, _ in found])
    own = {each.id: each.name for each, _ in found if each.kind is records.Kind.JOB}
    called = job_names(tx, caller, [*jobs.values(), *own.values()])
    return [
        wire.Artifact(
            kind=wire.Kind(each.kind.value),
            name=each.name,
            version=each.version,
            creator=names[each.creator],
            created_at=each.created_at,
            size=each.size,
            hash=each.digest.hex() if each.digest else None,
            job=jobs.get(each.made_by or 0),
            job_name=called.get(own.get(each.id, jobs.get(each.made_by or 0, ""))),
            tags={key: tag_value(value) for key, value in tags.items()},
        )
        for each, tags in found
    ]


def _graph(tx: Tx, caller: Caller, found: records.Graph) -> wire.Graph:
    told = label_graph(tx, caller, found)
    names = names_of(tx, [node.creator for node in found.nodes.values()])
    labels = {key: f"{node.name}:{node.version}" for key, node in found.nodes.items()}
    jobs = {k: n.name for k, n in found.nodes.items() if n.kind is records.Kind.JOB}
    called = {job_id: label.name for job_id, label in told.jobs.items()}
    return wire.Graph(
        nodes=[
            wire.Node(
                id=labels[key],
                name=node.name,
                version=node.version,
                creator=names[node.creator],
                created_at=node.created_at,
                made_by=jobs.get(node.made_by or 0),
                dropped=node.dropped_at is not None,
                kind=told.sets[key].kind.value,
                app=told.sets[key].app,
                made_by_name=called.get(jobs.get(node.made_by or 0, "")),
            )
            for key, node in found.nodes.items()
            if node.kind is records.Kind.FILE_SET
        ],
        edges=[
            wire.Edge(
                source=labels[edge.source],
                target=labels[edge.target],
                action="job" if edge.job else "create",
                job=jobs.get(edge.job or 0),
                job_name=called.get(jobs.get(edge.job or 0, "")),
            )
            for edge in found.edges
        ],
        next_cursor=found.next_cursor,
    )


def _read(value: wire.TagValue) -> records.TagValue:
    if isinstance(value, dict):
        if "time" not in value:
            raise InvalidInput('a tag that is a time is written {"time": "2026-11-16T12:00:00Z"}')
        return value["time"]
    if isinstance(value, str):
        return _text(value)
    try:
        return float(value)
    except OverflowError:
        raise InvalidInput("a tag's number is too large: at most about 1.8e308") from None


def _text(value: str) -> str:
    """Half of a surrogate pair is JSON, but no text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidInput("a tag's text must be valid Unicode") from None
    return value


def tag_value(value: records.TagValue) -> wire.TagValue:
    return {"time": value} if isinstance(value, datetime) else value
