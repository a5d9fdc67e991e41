"""What people may say about an app or a study: weight, deadline, budget, enough, pause; within an admin's limits."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from easel.errors import InvalidInput, QuotaExhausted
from easel.flow.studies.declare import may_change
from easel.ids import ProjectId
from easel.price.bill import MICROS
from easel.records.identity import Caller
from easel.records.tenant import TermLimits, Terms
from easel.store import apps, tenants
from easel.store.engine import Tx


def set_app_terms(tx: Tx, caller: Caller, name: str, wanted: Mapping[str, Any]) -> Terms:
    """Change what `wanted` names and leave the rest; None takes a deadline, a budget or a target away."""
    app = apps.find(tx, caller.project_id, name)
    return _set(tx, caller, "app.set", app.id, app.name, wanted)


def set_study_terms(tx: Tx, caller: Caller, name: str, wanted: Mapping[str, Any]) -> Terms:
    study = may_change(tx, caller, name)
    return _set(tx, caller, "study.set", study.id, study.name, wanted)


def _set(tx: Tx, caller: Caller, kind: str, tenant: str, name: str, wanted: Mapping[str, Any]) -> Terms:
    values = _checked(tx, caller.project_id, wanted)
    if "paused" in wanted and wanted["paused"] is not None:
        paused = bool(wanted["paused"])
        values["paused_at"] = tx.now if paused else None
        values["paused_by"] = caller.user.id if paused else None
        values["asked"] = not paused
    if not values:
        raise InvalidInput("say what to change: weight, deadline, budget, until, pause or resume")
    tenants.put(tx, caller.project_id, tenant, **values)
    deadline: datetime | None = wanted.get("deadline")
    body = {"name": name, **wanted}
    if deadline is not None:
        body["deadline"] = deadline.isoformat()
    tx.emit(kind, tenant, project_id=caller.project_id, actor=caller.user.id, body=body)
    return tenants.terms(tx, tenant)


def _checked(tx: Tx, project_id: ProjectId, wanted: Mapping[str, Any]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    limits = tenants.limits(tx, project_id)
    if wanted.get("weight") is not None:
        weight = float(wanted["weight"])
        if limits.max_weight is not None and weight > limits.max_weight:
            raise QuotaExhausted(
                f"weights in this project go up to {limits.max_weight:g}, not {weight:g}: ask an admin to raise that"
            )
        values["weight"] = weight
    if "deadline" in wanted:
        deadline = wanted["deadline"]
        if deadline is not None and deadline <= tx.now:
            raise InvalidInput(f"the deadline {deadline.isoformat()} has passed already: name a later one")
        values["deadline"] = deadline
    if "budget" in wanted:
        budget = wanted["budget"]
        micros = None if budget is None else round(float(budget) * MICROS)
        most = limits.max_budget_micros
        if most is not None and (micros is None or micros > most):
            raise QuotaExhausted(
                f"budgets in this project go up to {most / MICROS:g}: ask an admin to raise that"
            )
        values["budget_micros"] = micros
    if "until" in wanted:
        values["until"] = wanted["until"]
    return values


def get_limits(tx: Tx, caller: Caller) -> TermLimits:
    """Returns the most that members of the project may ask for."""
    return tenants.limits(tx, caller.project_id)


def set_limits(tx: Tx, caller: Caller, wanted: TermLimits) -> None:
    """The most that members of the project may ask for from now on; what was asked for before stays."""
    tenants.set_limits(tx, caller.project_id, wanted)
    body = {"max_weight": wanted.max_weight, "max_budget_micros": wanted.max_budget_micros}
    tx.emit("terms.limited", caller.project_id, project_id=caller.project_id, actor=caller.user.id, body=body)
