"""Who holds how many bytes, and what is given up when it is old."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from fastapi import Path, Response

from easel.flow.operate import retention
from easel.flow.operate.storage import StorageReport, storage_report
from easel.records.retention import Leaving, Retention, RetentionRule
from easel.serve.access import Member, PlatformAdmin, ProjectAdmin, State
from easel.serve.creating import Create
from easel.serve.router import Router
from easel.serve.state import Tx
from easel.wire import operate as wire

router = Router(prefix="/api/v1", tags=["operations"])

RuleId = Annotated[str, Path(max_length=40)]


@router.get("/storage", response_model=wire.StorageReport)
def whole_storage(state: State, caller: PlatformAdmin) -> wire.StorageReport:
    """Who holds what, over all projects."""
    with state.store.read() as tx:
        return _report(storage_report(tx))


@router.get("/projects/{project}/storage", response_model=wire.StorageReport)
def project_storage(state: State, caller: Member) -> wire.StorageReport:
    """Who holds what in this project."""
    with state.store.read() as tx:
        return _report(storage_report(tx, caller.project_id))


@router.post("/projects/{project}/retention", response_model=wire.GivenUp)
def give_up(state: State, caller: ProjectAdmin, body: wire.GiveUp) -> wire.GivenUp:
    """Old logs, events or outputs: told, or with `really` given up."""
    with state.store.write() as tx:
        found = retention.give_up(tx, caller, _rule(body), really=body.really)
    return wire.GivenUp(count=found.count, bytes=found.bytes, kept=found.kept, examples=list(found.examples))


@router.get("/projects/{project}/retention/rules", response_model=wire.RetentionRules)
def retention_rules(state: State, caller: Member) -> wire.RetentionRules:
    """What is given up every day."""
    with state.store.read() as tx:
        return wire.RetentionRules(items=[_shown(each) for each in retention.rules_of(tx, caller)])


@router.post("/projects/{project}/retention/rules", response_model=wire.RetentionRule, status_code=201)
def add_retention_rule(state: State, caller: ProjectAdmin, create: Create, body: wire.Retention) -> Response:
    """Give this up every day from now on."""

    def make(tx: Tx) -> wire.RetentionRule:
        return _shown(retention.keep_rule(tx, caller, _rule(body)))

    return create(caller, body, make)


@router.delete("/projects/{project}/retention/rules/{rule}", status_code=204)
def remove_retention_rule(state: State, caller: ProjectAdmin, rule: RuleId) -> None:
    """Give it up no longer."""
    with state.store.write() as tx:
        retention.remove_rule(tx, caller, rule)


def _rule(body: wire.Retention) -> Retention:
    return Retention(Leaving(body.what), timedelta(days=body.older_than_days), body.tag)


def _shown(each: RetentionRule) -> wire.RetentionRule:
    return wire.RetentionRule(
        id=each.id,
        what=each.rule.what.value,
        older_than_days=each.rule.older_than / timedelta(days=1),
        tag=each.rule.tag,
        created_at=each.created_at,
        applied_at=each.applied_at,
    )


def _report(found: StorageReport) -> wire.StorageReport:
    return wire.StorageReport(
        holders=[
            wire.StorageHolder(
                project=each.project,
                user=each.user,
                files=each.files,
                bytes=each.bytes,
                log_bytes=each.log_bytes,
            )
            for each in found.holders
        ],
        objects=found.objects,
        stored_bytes=found.stored_bytes,
    )
