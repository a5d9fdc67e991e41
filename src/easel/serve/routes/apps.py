"""Apps: declare, look, pin, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Response

from easel.declare.friendly import read_program
from easel.declare.parse import parse_program
from easel.declare.propose import propose_from_folder, propose_from_table
from easel.declare.styles import read_styles
from easel.declare.verbs import Verb
from easel.errors import InvalidInput
from easel.flow.apps import declare, look, takeover, vectors
from easel.flow.apps.best import luck_of, shown_score
from easel.flow.apps.files import is_picture
from easel.flow.apps.ready import metric_of
from easel.flow.apps.rescore import kept_scores
from easel.match.curve import is_series
from easel.match.metrics import METRICS, interval
from easel.match.propose import propose_candidates
from easel.match.summary import expected_summary
from easel.match.templates import match_program as find_template
from easel.records.app import App, AppTrial
from easel.serve.access import Member, SignedIn, State, acts
from easel.serve.answers import make_ready
from easel.serve.creating import Create
from easel.serve.pool_mirror import looking
from easel.serve.router import Router
from easel.serve.routes.terms import shown_terms
from easel.serve.state import AppState, Tx
from easel.wire import app as wire

router = Router(prefix="/api/v1/projects/{project}/apps", tags=["apps"])
programs = Router(prefix="/api/v1/programs", tags=["apps"])

Name = Annotated[str, Path(max_length=64, examples=["flowers"])]


def summary(state: AppState, tx: Tx, app: App) -> wire.App:
    """One app as it stands in the pool; not for a transaction that has written."""
    with looking(state, tx) as keeper:
        return shown(look.standing(tx, app, keeper))


def _model(trial: AppTrial | None, metric: str, luck: float | None) -> wire.BestModel | None:
    if trial is None:
        return None
    shown = shown_score(trial, luck)
    low, high = (None, None) if trial.error is None else interval(metric, shown, trial.error)
    return wire.BestModel(
        candidate=look.candidate_name(trial),
        model=trial.model_set or "",
        quality=trial.quality or 0.0,
        error=trial.error,
        baseline=trial.baseline,
        shown=shown,
        luck=luck_of(trial, luck),
        low=low,
        high=high,
    )


def shown(found: look.AppSummary) -> wire.App:
    app = found.app
    program = parse_program(app.program)
    return wire.App(
        id=app.id,
        name=app.name,
        program=app.program,
        template=found.template,
        metric=found.metric,
        created_at=app.created_at,
        folder=app.folder,
        pictures=is_picture(program),
        series=is_series(program.input),
        examples=found.examples,
        switched_off=found.switched_off,
        trials=found.trials,
        running=list(found.running),
        best=_model(found.best, found.metric, found.luck),
        serving=_model(found.serving, found.metric, found.luck),
        pinned=app.pinned,
        rates="trial" if app.rates_inside else "candidates",
        vector_size=app.vector_size,
        styles=read_styles(app.styles),
        last_improvement_at=found.last_improvement_at,
        why=found.why,
        next=None if found.next is None else wire.NextTrial.model_validate(found.next),
        lacks=found.lacks,
        status=found.account.status.value,
        waiting=found.account.sentence,
        terms=shown_terms(found.terms),
    )


@programs.post("/match", response_model=wire.Matched)
@acts(Verb.READ)
def match_program(caller: SignedIn, body: wire.MatchProgram) -> wire.Matched:
    """Check a program: which template fires, and every candidate with its estimated cost."""
    program = read_program(body.program)
    template = find_template(program)
    found = propose_candidates(program, expected_summary(program, body.examples))
    return wire.Matched(
        program=str(program),
        template=template.name,
        task=template.task.value,
        metrics=list(METRICS[template.task]),
        candidates=[wire.CandidateView.model_validate({"name": c.name, **c.to_json()}) for c in found],
    )


@programs.post("/propose", response_model=wire.Proposed)
@acts(Verb.READ)
def propose_program(caller: SignedIn, body: wire.ProposeProgram) -> wire.Proposed:
    """Look at data and propose the program that describes them, with a reason for each choice."""
    if body.pictures:
        sizes = {p: (s[0], s[1], s[2]) if s and len(s) == 3 else None for p, s in body.pictures.items()}
        found = propose_from_folder(sizes)
    elif body.header and body.rows:
        if len(set(body.header)) < len(body.header):
            raise InvalidInput("two columns have the same name")
        columns = {
            name: [row[k] if k < len(row) else "" for row in body.rows] for k, name in enumerate(body.header)
        }
        found = propose_from_table(columns, body.target)
    else:
        raise InvalidInput("send a header with rows, or the pictures of a folder")
    return wire.Proposed(program=str(found.program), target=found.target, reasons=list(found.reasons))


@router.post("", response_model=wire.App, status_code=201)
@acts(Verb.RUN)
def declare_app(caller: Member, body: wire.DeclareApp, create: Create) -> Response:
    """Say what goes in and what comes out: the paper's notation, YAML or JSON."""

    def make(tx: Tx) -> wire.App:
        made = declare.declare_app(
            tx, caller, body.name, body.program, body.metric, rates_inside=body.rates == "trial"
        )
        return shown(look.standing(tx, made))

    return create(caller, body, make)


@router.get("", response_model=wire.AppList)
def list_apps(state: State, caller: Member) -> wire.AppList:
    """Every app with its best model, what runs, what comes next and why."""
    with state.store.read() as tx, looking(state, tx) as keeper:
        found = look.standings(tx, look.list_apps(tx, caller), keeper)
    return wire.AppList(items=[shown(one) for one in found])


@router.get("/{name}", response_model=wire.App)
def get_app(state: State, caller: Member, name: Name) -> wire.App:
    """One app: its program, examples, best model so far, what runs for it and what comes next."""
    with state.store.read() as tx:
        app = look.find_app(tx, caller, name)
        found = summary(state, tx, app)
    if found.serving is not None:
        make_ready(state, caller, app, found.serving.model)
    return found


@router.patch("/{name}", response_model=wire.App)
def change_app(state: State, caller: Member, name: Name, body: wire.ChangeApp) -> wire.App:
    """Another metric, under which models go on serving, or a wider program."""
    if body.metric is None and body.program is None:
        raise InvalidInput("nothing to change: name a metric or a program")
    kept = {} if body.metric is None else kept_scores(state.lake, caller, name, body.metric)
    with state.store.write() as tx:
        if body.program is not None:
            changed = declare.change_program(tx, caller, name, body.program)
        if body.metric is not None:
            changed = declare.change_app(tx, caller, name, body.metric, kept)
    with state.store.read() as tx:
        return summary(state, tx, changed)


@router.delete("/{name}", status_code=204)
def delete_app(state: State, caller: Member, name: Name) -> None:
    """Delete an app and end its running trials; its examples and models stay in the lake's history."""
    with state.store.write() as tx:
        declare.delete_app(tx, caller, name)


@router.put("/{name}/pin", response_model=wire.App)
def pin_model(state: State, caller: Member, name: Name, body: wire.PinModel) -> wire.App:
    """Let this model answer from now on, whatever is found."""
    with state.store.write() as tx:
        made = declare.pin(tx, caller, name, body.model)
    with state.store.read() as tx:
        return summary(state, tx, made)


@router.delete("/{name}/pin", response_model=wire.App)
def unpin_model(state: State, caller: Member, name: Name) -> wire.App:
    """Let the best model so far answer again."""
    with state.store.write() as tx:
        made = declare.unpin(tx, caller, name)
    with state.store.read() as tx:
        return summary(state, tx, made)


@router.post("/{name}/rollback", response_model=wire.App)
def roll_back_model(state: State, caller: Member, name: Name, body: wire.RollBack) -> wire.App:
    """Let the model answer that answered before the present one, or forward again."""
    with state.store.write() as tx:
        move = takeover.roll_forward if body.forward else takeover.roll_back
        made = move(tx, caller, name)
    with state.store.read() as tx:
        return summary(state, tx, made)


@router.put("/{name}/vectors", response_model=wire.App)
def give_vectors(state: State, caller: Member, name: Name, body: wire.GiveVectors) -> wire.App:
    """Word vectors for an app that reads text: a GloVe file of the lake."""
    made = vectors.give_vectors(state.lake, caller, name, body.reference)
    with state.store.read() as tx:
        return summary(state, tx, made)


@router.get("/{name}/trials", response_model=wire.TrialList)
def list_trials(state: State, caller: Member, name: Name) -> wire.TrialList:
    """Candidates tried, with score and cost, in the order of the decisions, each with its reasons."""
    with state.store.read() as tx:
        views = look.trial_views(tx, caller, name)
    return wire.TrialList(
        items=[
            wire.TrialView.model_validate(
                {
                    "job": view.trial.job_id,
                    "candidate": view.candidate,
                    "state": view.state,
                    "quality": view.trial.quality,
                    "seconds": view.trial.seconds,
                    "cost_s": view.cost_s,
                    "expected": view.expected,
                    "deviation": view.deviation,
                    "examples": view.trial.examples,
                    "model": view.trial.model_set,
                    "started_at": view.trial.started_at,
                    "ended_at": view.trial.ended_at,
                    "why": view.why,
                    "details": view.details,
                }
            )
            for view in views
        ]
    )


@router.get("/{name}/progress", response_model=wire.TrialProgress)
def app_progress(state: State, caller: Member, name: Name) -> wire.TrialProgress:
    """The best score over time."""
    with state.store.read() as tx:
        metric = metric_of(look.find_app(tx, caller, name))
        found = look.progress(tx, caller, name)
    return wire.TrialProgress(metric=metric, items=[wire.Improvement.model_validate(step) for step in found])


@router.get("/{name}/next", response_model=wire.Prospects)
def app_next(state: State, caller: Member, name: Name) -> wire.Prospects:
    """What the policy would run next and why, and what it believes of every candidate."""
    with state.store.read() as tx:
        app = look.find_app(tx, caller, name)
        with looking(state, tx) as keeper:
            after = look.standing(tx, app, keeper).next
            found = look.prospects(tx, keeper, app)
    return wire.Prospects(
        next=None if after is None else wire.NextTrial.model_validate(after),
        items=[wire.Prospect.model_validate(one) for one in found],
    )
