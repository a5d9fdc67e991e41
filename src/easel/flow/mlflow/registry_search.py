"""Searches over registered models and their versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from easel.flow.mlflow import registry
from easel.flow.mlflow.errors import invalid
from easel.flow.mlflow.pages import page_of
from easel.flow.mlflow.query import (
    LISTED,
    NULLABLE,
    ORDERED,
    Comparison,
    Entity,
    Operator,
    holds,
    parse_filter,
    parse_order,
)
from easel.flow.mlflow.runs import milliseconds
from easel.records.identity import Caller
from easel.records.run import ModelVersion, RegisteredModel
from easel.store.engine import Tx


def search_models(
    tx: Tx,
    caller: Caller,
    *,
    filter_string: str | None,
    max_results: int,
    order_by: Sequence[str],
    page_token: str | None,
) -> tuple[list[tuple[RegisteredModel, list[ModelVersion]]], str | None]:
    """A page of models, by name unless another order is asked for, each with the newest version of every stage."""
    if not 1 <= max_results <= 1000:
        raise invalid(
            f"Invalid value {max_results} for parameter 'max_results' supplied: It must be at most 1000"
        )
    terms = parse_filter(filter_string)
    for term in terms:
        _check_term(term, {"name": LISTED})
    prompts = any(term.entity is Entity.TAG and term.key.startswith("mlflow.prompt.") for term in terms)
    found = [
        model
        for model in registry.all_models(tx, caller)
        if (prompts or not _is_prompt(model))
        and all(holds(t, _tag(model.tags, t.key) if t.entity is Entity.TAG else model.name) for t in terms)
    ]
    for key in reversed(parse_order(order_by)):
        if key.entity is not Entity.ATTRIBUTE or key.key not in (
            "name",
            "timestamp",
            "last_updated_timestamp",
        ):
            raise invalid(f"Invalid order by key '{key.key}' specified. Valid keys are name, timestamp")
        field = "name" if key.key == "name" else "updated_at"
        found.sort(key=lambda model, by=field: getattr(model, by), reverse=key.descending)  # type: ignore[misc]
    page, token = page_of(found, page_token, max_results)
    versions: dict[str, dict[str, ModelVersion]] = {}
    shown = {model.name for model in page}
    for version in (each for each in registry.versions_of(tx, caller) if each.name in shown):
        versions.setdefault(version.name, {})[version.stage] = version
    return [(model, list(versions.get(model.name, {}).values())) for model in page], token


def _tag(tags: Mapping[str, str], key: str) -> str | None:
    """Clients ask for what is no prompt; what does not say so is none."""
    return tags.get(key, "false") if key == registry.PROMPT else tags.get(key)


def _is_prompt(model: RegisteredModel) -> bool:
    return model.tags.get(registry.PROMPT, "").lower() == "true"


def search_versions(
    tx: Tx,
    caller: Caller,
    *,
    filter_string: str | None,
    max_results: int,
    order_by: Sequence[str],
    page_token: str | None,
) -> tuple[Sequence[ModelVersion], str | None]:
    """A page of versions, those that changed last first unless another order is asked for."""
    if not 1 <= max_results <= 200_000:
        raise invalid(
            f"Invalid value {max_results} for parameter 'max_results' supplied: It must be at most 200000"
        )
    terms = parse_filter(filter_string)
    fields = {"name": LISTED, "run_id": LISTED, "source_path": LISTED, "version_number": ORDERED}
    for term in terms:
        _check_term(term, fields)
    only = next((t.value for t in terms if t.key == "name" and t.operator is Operator.EQ), None)
    found = [
        version
        for version in registry.versions_of(tx, caller, only if isinstance(only, str) else None)
        if all(holds(term, _version_value(version, term)) for term in terms)
    ]
    found.sort(key=lambda v: (v.name, -v.version))
    orders = parse_order(order_by)
    if not orders:
        found.sort(key=lambda v: milliseconds(v.updated_at), reverse=True)
    for key in reversed(orders):
        names = {
            "name": "name",
            "version_number": "version",
            "creation_timestamp": "created_at",
            "last_updated_timestamp": "updated_at",
        }
        if key.entity is not Entity.ATTRIBUTE or key.key not in names:
            raise invalid(f"Invalid order by key '{key.key}' specified. Valid keys are {sorted(names)}")
        found.sort(key=lambda v, by=names[key.key]: getattr(v, by), reverse=key.descending)  # type: ignore[misc]
    return page_of(found, page_token, max_results)


def _check_term(term: Comparison, fields: dict[str, Any]) -> None:
    if term.entity is Entity.TAG:
        if term.operator not in NULLABLE:
            raise invalid(f"Invalid comparator '{term.operator.value}' for a tag")
        return
    if term.entity is not Entity.ATTRIBUTE or term.key not in fields:
        raise invalid(f"Invalid attribute name: '{term.key}'. Expected one of {sorted(fields)} or a tag.")
    if term.operator not in fields[term.key]:
        raise invalid(f"Invalid comparator '{term.operator.value}' for '{term.key}'")


def _version_value(version: ModelVersion, term: Comparison) -> Any:
    if term.entity is Entity.TAG:
        return _tag(version.tags, term.key)
    match term.key:
        case "name":
            return version.name
        case "run_id":
            return version.run_id or ""
        case "source_path":
            return version.source
    return float(version.version)
