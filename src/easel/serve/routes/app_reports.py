"""What is asked of a model after its first score: whole files through it, what matters, where it fails."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response

from easel.declare.verbs import Verb
from easel.flow.apps.card import CardForm, model_card
from easel.flow.apps.checks import ask_for_checks, checks_of
from easel.flow.apps.report import ask_for_report
from easel.flow.apps.score import score_files
from easel.serve.access import Member, State, acts
from easel.serve.router import Router
from easel.serve.routes.apps import Name
from easel.wire import app_report as wire

router = Router(prefix="/api/v1/projects/{project}/apps/{name}", tags=["apps"])


@router.post("/score", response_model=wire.Scoring, status_code=202)
@acts(Verb.RUN)
def score_app_files(state: State, caller: Member, name: Name, body: wire.ScoreFiles) -> wire.Scoring:
    """Start a job that answers every object of a file, a folder or a file set, all by the model that answers now."""
    return wire.Scoring.model_validate(score_files(state.lake, caller, name, body.reference))


@router.post("/report", response_model=wire.StartedJob, status_code=202)
@acts(Verb.RUN)
def ask_report(state: State, caller: Member, name: Name) -> wire.StartedJob:
    """Start the job that finds what matters, where the model that answers fails and what would help, or name the one
    that did."""
    with state.store.write() as tx:
        return wire.StartedJob(job=ask_for_report(tx, caller, name))


@router.get(
    "/card",
    response_class=Response,
    responses={200: {"content": {"text/markdown": {}, "text/html": {}}, "description": "The model card"}},
)
def card(
    state: State,
    caller: Member,
    name: Name,
    form: Annotated[CardForm, Query(description="md for Markdown, html for a page")] = "md",
) -> Response:
    """A page about the model that answers, to hand to a colleague: score, data and findings."""
    file, text = model_card(state.lake, state.model_files, caller, name, form)
    kind = "text/markdown" if form == "md" else "text/html"
    headers = {"Content-Disposition": f'attachment; filename="{file}"'}
    return Response(text, media_type=f"{kind}; charset=utf-8", headers=headers)


@router.get("/checks", response_model=wire.Checks)
def list_checks(state: State, caller: Member, name: Name) -> wire.Checks:
    """What was found about the examples: wrong labels, outliers, near-duplicates, drift, leaks, gaps, rare classes."""
    looked = checks_of(state.lake, state.model_files, caller, name)
    return wire.Checks(**(looked.found or {}), job=looked.job, state=looked.state)


@router.post("/checks", response_model=wire.StartedJob, status_code=202)
@acts(Verb.RUN)
def ask_checks(state: State, caller: Member, name: Name) -> wire.StartedJob:
    """Start the job that checks the examples that are switched on, or name the one that did."""
    with state.store.write() as tx:
        return wire.StartedJob(job=ask_for_checks(tx, caller, name))
