"""What people say about apps and studies; the admin's limits; why something runs or waits."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from easel.declare.close import did_you_mean
from easel.errors import NotFound
from easel.flow import terms as flow
from easel.flow import why
from easel.flow.apps import look
from easel.flow.jobs.expected import ExpectedTimes
from easel.flow.jobs.look import find_job
from easel.flow.studies import look as look_study
from easel.price.bill import MICROS
from easel.records.standing import Account
from easel.records.tenant import TermLimits, Terms
from easel.serve.access import Member, ProjectAdmin, State
from easel.serve.pool_mirror import looking
from easel.serve.router import Router
from easel.wire import terms as wire

router = Router(prefix="/api/v1/projects/{project}", tags=["apps"])

Name = Annotated[str, Path(max_length=64, examples=["flowers"])]


def shown_terms(terms: Terms) -> wire.Terms:
    return wire.Terms(
        weight=terms.weight,
        deadline=terms.deadline,
        budget=None if terms.budget_micros is None else terms.budget_micros / MICROS,
        until=terms.until,
        paused=terms.paused_at is not None,
    )


@router.patch("/apps/{name}/terms", response_model=wire.Terms)
def set_app_terms(state: State, caller: Member, name: Name, body: wire.SetTerms) -> wire.Terms:
    """Weight, deadline, budget, what is enough; pause and resume."""
    with state.store.write() as tx:
        return shown_terms(flow.set_app_terms(tx, caller, name, body.model_dump(exclude_unset=True)))


@router.patch("/studies/{name}/terms", response_model=wire.Terms)
def set_study_terms(state: State, caller: Member, name: Name, body: wire.SetTerms) -> wire.Terms:
    """The same for a study; only its owner or an admin may."""
    with state.store.write() as tx:
        return shown_terms(flow.set_study_terms(tx, caller, name, body.model_dump(exclude_unset=True)))


@router.get("/term-limits", response_model=wire.TermLimits)
def get_limits(state: State, caller: Member) -> wire.TermLimits:
    """The most that members may ask for."""
    with state.store.read() as tx:
        found = flow.get_limits(tx, caller)
    most = found.max_budget_micros
    return wire.TermLimits(max_weight=found.max_weight, max_budget=None if most is None else most / MICROS)


@router.put("/term-limits", response_model=wire.TermLimits)
def set_limits(state: State, caller: ProjectAdmin, body: wire.TermLimits) -> wire.TermLimits:
    """Set the most that members may ask for; null: no limit."""
    most = None if body.max_budget is None else round(body.max_budget * MICROS)
    with state.store.write() as tx:
        flow.set_limits(tx, caller, TermLimits(body.max_weight, most))
    return body


@router.get("/why/{what}", response_model=wire.Why)
def why_it_waits(
    state: State, caller: Member, what: Annotated[str, Path(max_length=64, examples=["flowers"])]
) -> wire.Why:
    """What an app, a study or a job does or waits for, since when, and what would change it."""
    with state.store.read() as tx, looking(state, tx) as keeper:
        try:
            app = look.standing(tx, look.find_app(tx, caller, what), keeper)
            following = app.next
            return _told(
                "app",
                app.app.name,
                app.account,
                None if following is None else following.why,
                None if following is None else following.details,
            )
        except NotFound:
            pass
        try:
            study = look_study.standing(tx, look_study.find_study(tx, caller, what), keeper)
            return _told("study", study.study.name, study.account)
        except NotFound:
            pass
        try:
            job = find_job(tx, caller, what)
        except NotFound:
            if what.startswith("job_"):
                raise
            known = [*look.names(tx, caller), *look_study.names(tx, caller)]
            raise NotFound(
                f"this project has no app, study or job {what[:60]!r}{did_you_mean(what, known)}"
            ) from None
        settings = state.settings
        half_life = settings.share_half_life_days * 86_400.0
        account = why.of_job(tx, job, settings.max_active_jobs, half_life)
        expected = why.expected_of(tx, job, settings.max_active_jobs, half_life)
        return _told("job", job.name, account, expected=expected)


def _told(
    kind: wire.Kind,
    name: str,
    account: Account,
    following: str | None = None,
    details: str | None = None,
    expected: ExpectedTimes | None = None,
) -> wire.Why:
    return wire.Why(
        kind=kind,
        name=name,
        status=account.status.value,
        sentence=account.sentence,
        since=account.since,
        next=following,
        details=details,
        starts_at=None if expected is None else expected.start,
        starts_by=None if expected is None else expected.start_by,
        ends_by=None if expected is None else expected.end_by,
    )
