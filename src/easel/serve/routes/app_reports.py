"""What is asked of a model after its first score: whole files through it, what matters, where it fails."""

from __future__ import annotations

from fastapi import APIRouter

from easel.declare.verbs import Verb
from easel.flow.apps.report import ask_for_report
from easel.flow.apps.score import score_files
from easel.serve.access import Member, State, acts
from easel.serve.routes.apps import Name
from easel.wire import app_report as wire

router = APIRouter(prefix="/api/v1/projects/{project}/apps/{name}", tags=["apps"])


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
