"""The examples of an app: feed, look, refine."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query, Response

from easel.declare.page import parse_filter
from easel.flow.apps import feed as feeding
from easel.flow.apps import feed_files as feeding_files
from easel.flow.apps import files, refine, suspects
from easel.flow.apps.curves import example_curve
from easel.serve.access import Member, State
from easel.serve.paging import Paging
from easel.serve.router import Router
from easel.serve.routes.apps import Name
from easel.wire import app as wire
from easel.wire.model import Page

router = Router(prefix="/api/v1/projects/{project}/apps/{name}", tags=["apps"])

Digest = Annotated[str, Path(max_length=64)]


@router.post("/feed", response_model=wire.Fed)
def feed(state: State, caller: Member, name: Name, body: wire.FeedPairs) -> wire.Fed:
    """Add pairs. Those fed before are left out, so a repeated feed adds nothing."""
    pairs = [(pair.input, pair.output) for pair in body.pairs]
    fed = feeding.feed(
        state.lake,
        caller,
        name,
        pairs,
        skip_bad=body.skip_bad,
        styles=body.styles,
        first_number=body.first,
    )
    return wire.Fed.model_validate(fed)


@router.post("/feed/files", response_model=wire.Fed)
def feed_files(state: State, caller: Member, name: Name, body: wire.FeedFiles) -> wire.Fed:
    """Add what was uploaded to the lake: pictures in one folder for each class, arrays, tables, JSON lines."""
    found = feeding_files.feed_files(
        state.lake,
        caller,
        name,
        body.reference,
        fit=body.fit,
        skip_bad=body.skip_bad,
        more=body.more,
    )
    return wire.Fed.model_validate(found)


@router.get("/examples", response_model=Page[wire.FedExample])
def list_examples(state: State, caller: Member, name: Name, page: Paging) -> Page[wire.FedExample]:
    """All examples ever fed; filter by class, on, fold, fed_at, answer, preview."""
    with state.store.read() as tx:
        found = refine.browse(tx, caller, name, page)
    items = [wire.FedExample.model_validate(example) for example in found.items]
    return Page(items=items, next_cursor=found.next_cursor)


@router.get("/examples/{digest}", response_model=wire.ExampleContent)
def get_example(state: State, caller: Member, name: Name, digest: Digest) -> wire.ExampleContent:
    """One example with its input and output."""
    with state.store.read() as tx:
        _, found = refine.find_example(tx, caller, name, digest)
    source, target = files.read_pair(state.lake, caller, found)
    return wire.ExampleContent(example=wire.FedExample.model_validate(found), input=source, output=target)


@router.get(
    "/examples/{digest}/thumbnail",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}, "description": "A small PNG"}},
)
def example_thumbnail(state: State, caller: Member, name: Name, digest: Digest) -> Response:
    """A small picture of an example whose input is one. It never changes."""
    with state.store.read() as tx:
        app, found = refine.find_example(tx, caller, name, digest)
    data = files.thumbnail(state.lake, caller, app, found)
    return Response(data, media_type="image/png", headers={"Cache-Control": "private, max-age=86400"})


@router.get("/examples/{digest}/curve", response_model=wire.ExampleCurve)
def show_example_curve(state: State, caller: Member, name: Name, digest: Digest) -> wire.ExampleCurve:
    """The curves of an example whose input is a series. They never change."""
    with state.store.read() as tx:
        app, found = refine.find_example(tx, caller, name, digest)
    return wire.ExampleCurve.model_validate(
        example_curve(state.lake, caller, app, found), from_attributes=True
    )


@router.post("/refine", response_model=wire.Refined)
def refine_examples(state: State, caller: Member, name: Name, body: wire.Refine) -> wire.Refined:
    """Switch examples off or on, singly or by filter, or undo the newest switch."""
    with state.store.write() as tx:
        if body.undo:
            return wire.Refined(changed=refine.undo_refine(tx, caller, name))
        digests = list(body.digests)
        if body.filter:
            chosen = refine.matching(tx, caller, name, [parse_filter(text) for text in body.filter])
            digests = [digest for digest in chosen if not body.digests or digest in set(body.digests)]
        return wire.Refined(changed=refine.refine(tx, caller, name, digests, on=body.on))


@router.get("/suspects", response_model=wire.Suspects)
def list_suspects(
    state: State, caller: Member, name: Name, limit: Annotated[int, Query(ge=1, le=1000)] = 50
) -> wire.Suspects:
    """Examples that are most likely mislabelled first, as far as they were judged."""
    return wire.Suspects.model_validate(
        suspects.suspects(state.lake, state.model_files, caller, name, limit), from_attributes=True
    )


@router.post("/suspects", response_model=wire.Suspects, status_code=202)
def look_for_suspects(state: State, caller: Member, name: Name) -> wire.Suspects:
    """Judge every example by models trained without it: starts a job, or names the one under way."""
    with state.store.write() as tx:
        job = suspects.look_for_suspects(tx, caller, name)
    return wire.Suspects(items=[], judged=0, job=job, state="queued")
