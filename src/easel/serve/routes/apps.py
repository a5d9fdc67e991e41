"""Apps: declare, feed, refine, infer."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response

from easel.flow.apps import declare, look
from easel.flow.apps import feed as feeding
from easel.flow.apps.infer import Models, infer
from easel.serve.access import Here, Member
from easel.serve.creating import Create
from easel.serve.parts import Parts
from easel.store import apps
from easel.wire import app as wire

router = APIRouter(prefix="/api/v1/projects/{project}/apps", tags=["apps"])

Name = Annotated[str, Path(max_length=64, examples=["flowers"])]
_MODELS: dict[str, Models] = {}
"""One cache of loaded models for each home; versions never change, so it is never stale."""


def _models(here: Parts) -> Models:
    folder = here.settings.folder / "models"
    return _MODELS.setdefault(str(folder), Models(folder))


def shown(found: look.Standing) -> wire.App:
    best = found.best
    return wire.App(
        id=found.app.id,
        name=found.app.name,
        program=found.app.program,
        template=found.template,
        metric=found.metric,
        created_at=found.app.created_at,
        examples=found.examples,
        switched_off=found.switched_off,
        trials=found.trials,
        running=list(found.running),
        best=None
        if best is None
        else wire.BestModel(
            candidate=look.candidate_name(best), model=best.model_set or "", quality=best.quality or 0.0
        ),
        last_improvement_at=found.last_improvement_at,
        why=found.why,
    )


@router.post("", response_model=wire.App, status_code=201)
def declare_app(caller: Member, body: wire.DeclareApp, create: Create) -> Response:
    """Say what goes in and what comes out: the paper's notation, YAML or JSON."""
    return create(
        caller,
        body,
        lambda tx: shown(
            look.standing(tx, declare.declare_app(tx, caller, body.name, body.program, body.metric))
        ),
    )


@router.get("", response_model=wire.AppList)
def list_apps(here: Here, caller: Member) -> wire.AppList:
    """Every app with its best model, what runs and why."""
    with here.store.read() as tx:
        found = [look.standing(tx, app) for app in apps.list_apps(tx, caller.project_id)]
    return wire.AppList(items=[shown(one) for one in found])


@router.get("/{name}", response_model=wire.App)
def get_app(here: Here, caller: Member, name: Name) -> wire.App:
    """One app: its program, examples, best model so far and what runs for it."""
    with here.store.read() as tx:
        return shown(look.standing(tx, apps.find(tx, caller.project_id, name)))


@router.delete("/{name}", status_code=204)
def delete_app(here: Here, caller: Member, name: Name) -> None:
    """Its trials that still run end by themselves and are ignored."""
    with here.store.write() as tx:
        declare.delete_app(tx, caller, name)


@router.post("/{name}/feed", response_model=wire.Fed)
def feed(here: Here, caller: Member, name: Name, body: wire.FeedPairs) -> wire.Fed:
    """Add pairs. Those fed before are left out, so a repeated feed adds nothing."""
    pairs = [(pair.input, pair.output) for pair in body.pairs]
    return wire.Fed.model_validate(feeding.feed(here.lake, caller, name, pairs))


@router.get("/{name}/examples", response_model=wire.ExampleList)
def browse(here: Here, caller: Member, name: Name) -> wire.ExampleList:
    """All examples ever fed, oldest first."""
    with here.store.read() as tx:
        found = feeding.browse(tx, caller, name)
    return wire.ExampleList(items=[wire.Example.model_validate(example) for example in found])


@router.post("/{name}/refine", response_model=wire.Refined)
def refine(here: Here, caller: Member, name: Name, body: wire.Refine) -> wire.Refined:
    """Switch examples off or on, or undo the newest switch."""
    with here.store.write() as tx:
        if body.undo:
            return wire.Refined(changed=feeding.undo_refine(tx, caller, name))
        return wire.Refined(changed=feeding.refine(tx, caller, name, body.digests, on=body.on))


@router.post("/{name}/infer", response_model=wire.Answers)
def infer_objects(here: Here, caller: Member, name: Name, body: wire.Infer) -> wire.Answers:
    """Through the best model so far, with its name, version and validation score."""
    found = infer(here.lake, _models(here), caller, name, body.objects)
    return wire.Answers.model_validate(found)
