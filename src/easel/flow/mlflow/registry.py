"""The model registry: a registered model is a file set, its versions are versions of it, aliases name them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from easel.errors import EaselError
from easel.flow.lake.file_set import create_in, create_of
from easel.flow.mlflow import artifacts, experiments, logged_models
from easel.flow.mlflow import runs as flow_runs
from easel.flow.mlflow.checks import MAX_REGISTRY_TAG, KeyValue, check_alias, check_model_name, check_tag
from easel.flow.mlflow.errors import absent, invalid, taken
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
from easel.lake.paths import escape
from easel.records.identity import Caller
from easel.records.run import ModelVersion, RegisteredModel
from easel.store import model_registry
from easel.store.engine import Tx
from easel.store.lake import artifacts as catalogue
from easel.store.lake.grants import rights_of

STAGES = ("None", "Staging", "Production", "Archived")
_PROMPT = "mlflow.prompt.is_prompt"
_ACTIVE_STAGES = ("Staging", "Production")
_NOT_ABSOLUTE = (
    "Invalid model version source: '{}'. If supplying a source as an http, https, local file path, ftp, objectstore, "
    "or mlflow-artifacts uri, an absolute path must be provided without relative path references present. Please "
    "provide an absolute path."
)
_LOCAL = (
    "Invalid model version source: '{}'. To use a local path as a model version source, the run_id request parameter "
    "has to be specified and the local path has to be contained within the artifact directory of the run specified "
    "by the run_id."
)


def find(tx: Tx, caller: Caller, name: str) -> RegisteredModel:
    found = model_registry.find(tx, caller.project_id, name)
    if found is None:
        raise absent(f"Registered Model with name={name} not found")
    return found


def create(
    tx: Tx, caller: Caller, name: str, description: str | None, tags: Sequence[KeyValue]
) -> RegisteredModel:
    check_model_name(name)
    kept = {tag.key: tag.value for tag in (check_tag(t, most=MAX_REGISTRY_TAG, cut=False) for t in tags)}
    model_registry.hold(tx, caller.project_id)
    if model_registry.find(tx, caller.project_id, name) is not None:
        raise taken(f"Registered Model (name={name}) already exists.")
    new = RegisteredModel(
        project_id=caller.project_id,
        name=name,
        file_set=_set_name(tx, caller, name),
        description=description,
        tags=kept,
        aliases={},
        latest=0,
        creator=caller.user.id,
        created_at=tx.now,
        updated_at=tx.now,
    )
    model_registry.add(tx, new)
    _tell(tx, caller, "model.registered", name, {})
    return new


def _set_name(tx: Tx, caller: Caller, name: str) -> str:
    """A name that a file set may have; two models never share one."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:80]
    wanted = f"model-{plain}"
    others = {model.file_set for model in model_registry.all_models(tx, caller.project_id)}
    if plain == name and wanted not in others:
        return wanted
    number = 0
    while (made := f"{wanted}-{hashlib.sha256(f'{name} {number}'.encode()).hexdigest()[:8]}") in others:
        number += 1
    return made


def rename(tx: Tx, caller: Caller, name: str, new_name: str) -> RegisteredModel:
    check_model_name(new_name)
    model_registry.hold(tx, caller.project_id)
    found = find(tx, caller, name)
    if new_name != name and model_registry.find(tx, caller.project_id, new_name) is not None:
        raise taken(f"Registered Model (name={new_name}) already exists.")
    model_registry.rename(tx, found, new_name)
    return find(tx, caller, new_name)


def describe(tx: Tx, caller: Caller, name: str, description: str | None) -> RegisteredModel:
    model_registry.change(tx, find(tx, caller, name), description=description)
    return find(tx, caller, name)


def delete(tx: Tx, caller: Caller, name: str) -> None:
    """Forget the name and its versions. The files stay in their set, so that what came of them can be traced."""
    model_registry.hold(tx, caller.project_id)
    model_registry.remove(tx, find(tx, caller, name))
    _tell(tx, caller, "model.unregistered", name, {})


def set_tag(tx: Tx, caller: Caller, name: str, tag: KeyValue) -> None:
    kept = check_tag(tag, most=MAX_REGISTRY_TAG, cut=False)
    model_registry.hold(tx, caller.project_id)
    found = find(tx, caller, name)
    model_registry.change(tx, found, tags={**found.tags, kept.key: kept.value}, updated_at=found.updated_at)


def delete_tag(tx: Tx, caller: Caller, name: str, key: str) -> None:
    check_tag(KeyValue(key, ""))
    model_registry.hold(tx, caller.project_id)
    found = find(tx, caller, name)
    left = {k: v for k, v in found.tags.items() if k != key}
    model_registry.change(tx, found, tags=left, updated_at=found.updated_at)


def set_alias(tx: Tx, caller: Caller, name: str, alias: str, version: str) -> None:
    check_model_name(name)
    check_alias(alias)
    model_registry.hold(tx, caller.project_id)
    found = find_version(tx, caller, name, version)
    model = find(tx, caller, name)
    aliases = {**model.aliases, alias: found.version}
    model_registry.change(tx, model, aliases=aliases, updated_at=model.updated_at)
    _tell(tx, caller, "model.alias", name, {"alias": alias, "version": found.version})


def delete_alias(tx: Tx, caller: Caller, name: str, alias: str) -> None:
    check_alias(alias)
    model_registry.hold(tx, caller.project_id)
    model = find(tx, caller, name)
    left = {k: v for k, v in model.aliases.items() if k != alias}
    model_registry.change(tx, model, aliases=left, updated_at=model.updated_at)


def by_alias(tx: Tx, caller: Caller, name: str, alias: str) -> ModelVersion:
    """The version that an alias names; `latest` is the newest."""
    model = find(tx, caller, name)
    if alias.lower() == "latest":
        every = model_registry.versions(tx, caller.project_id, name=name)
        if not every:
            raise absent(f"Latest version not found for model {name}.")
        return every[-1]
    check_alias(alias)
    if alias not in model.aliases:
        raise invalid(f"Registered model alias {alias} not found.")
    return find_version(tx, caller, name, str(model.aliases[alias]))


def find_version(tx: Tx, caller: Caller, name: str, version: str) -> ModelVersion:
    found = None
    if number_of(version) < 2**31:
        found = model_registry.find_version(tx, caller.project_id, name, number_of(version))
    if found is None:
        raise absent(f"Model Version (name={name}, version={version}) not found")
    return found


def number_of(version: str) -> int:
    if not re.fullmatch(r"\d{1,18}", version):
        raise invalid(f"Parameter 'version' must be an integer, got '{version[:80]}'.")
    return int(version)


def create_version(
    tx: Tx,
    caller: Caller,
    *,
    name: str,
    source: str,
    run_id: str | None,
    run_link: str | None,
    description: str | None,
    tags: Sequence[KeyValue],
    model_id: str | None,
) -> ModelVersion:
    """The next version. Files that lie in Easel become the next version of the model's file set."""
    check_model_name(name)
    check_source(source, run_id)
    kept = {tag.key: tag.value for tag in (check_tag(t, most=MAX_REGISTRY_TAG, cut=False) for t in tags)}
    model_registry.hold(tx, caller.project_id)
    model = find(tx, caller, name)
    made = _keep_files(tx, caller, model.file_set, source)
    new = ModelVersion(
        project_id=caller.project_id,
        name=name,
        version=model.latest + 1,
        set_version=made,
        source=source,
        run_id=run_id or None,
        run_link=run_link or None,
        model_id=model_id or None,
        stage=STAGES[0],
        description=description,
        tags=kept,
        creator=caller.user.id,
        created_at=tx.now,
        updated_at=tx.now,
    )
    model_registry.add_version(tx, new)
    model_registry.change(tx, model, latest=new.version)
    body = {"version": new.version, "files": f"{model.file_set}:{made}" if made else None}
    _tell(tx, caller, "model.version", name, body)
    return new


def check_source(source: str, run_id: str | None) -> None:
    """Where a version's files are must be said plainly: no way up, nothing hidden, no file of the server."""
    if not source:
        raise invalid(
            "Missing value for required parameter 'source'. See the API docs for more information about "
            "request parameters."
        )
    address = urlsplit(source)
    if address.scheme in ("", "file"):
        if address.netloc not in ("", "localhost"):
            raise invalid(
                f"{source} is not a valid remote uri. For remote access on windows, please consider using a "
                "different scheme such as SMB."
            )
        raise invalid(_LOCAL.format(source))
    if address.scheme in ("runs", "models"):
        return
    path = f"{address.path}?{address.query}#{address.fragment}"
    decoded = unquote(path)
    while decoded != path:
        path, decoded = decoded, unquote(decoded)
    hidden = any(ord(c) < 32 for c in path) or "\\" in path
    if hidden or any(part == ".." for part in re.split(r"[/?#]", path)):
        raise invalid(_NOT_ABSOLUTE.format(source))


def _keep_files(tx: Tx, caller: Caller, file_set: str, source: str) -> int | None:
    """The version of the set that holds the files of `source`; None where they do not lie here."""
    try:
        place = _place(tx, caller, source)
    except EaselError:
        return None
    if place is None:
        return None
    folder = place.full.rstrip("/") + "/"
    entries = list(catalogue.stream_entries(tx, caller.project_id, folder, rights_of(tx, caller)))
    run = place.run
    if run is None and place.model is not None and place.model.run_id:
        try:
            run = flow_runs.find(tx, caller, place.model.run_id)
        except EaselError:
            run = None
    made_by = run.artifact_id if run is not None else None
    if entries:
        made = create_of(tx, caller, file_set, iter(entries), made_by=made_by)
        return made.artifact.version
    if place.run is not None and place.run.output_set:
        name = place.run.output_set.partition(":")[0]
        inside = f"/{name}/{place.path.strip('/')}".rstrip("/") + "/"
        try:
            reference = f"{escape(inside)}@{place.run.output_set}"
            return create_in(tx, caller, file_set, [reference], made_by=made_by).artifact.version
        except EaselError:
            return None
    return None


def _place(tx: Tx, caller: Caller, source: str) -> artifacts.ArtifactPlace | None:
    address = urlsplit(source)
    if address.scheme == "mlflow-artifacts":
        return artifacts.locate(tx, caller, address.path.lstrip("/"))
    if address.scheme == "runs":
        run_id, _, path = address.path.strip("/").partition("/")
        return artifacts.of_run(tx, caller, run_id, path)
    if address.scheme == "models" and (match := re.fullmatch(r"/+(m-[0-9a-f]{32})", address.path)):
        return artifacts.locate(tx, caller, f"models/{match[1]}/artifacts")
    return None


def download_uri(tx: Tx, caller: Caller, name: str, version: str, depth: int = 0) -> str:
    """Where the files of a version are, followed through versions that were copied from others."""
    found = find_version(tx, caller, name, version)
    address = urlsplit(found.source)
    if address.scheme != "models" or depth > 10:
        return found.source
    if match := re.fullmatch(r"/+(m-[0-9a-f]{32})", address.path):
        model = logged_models.find(tx, caller, match[1])
        location = experiments.find(tx, caller, str(model.experiment)).artifact_location
        return artifacts.model_uri(model, location)
    if match := re.fullmatch(r"/+([^/@]+)/(\d+)", unquote(address.path)):
        return download_uri(tx, caller, match[1], match[2], depth + 1)
    return found.source


def describe_version(
    tx: Tx, caller: Caller, name: str, version: str, description: str | None
) -> ModelVersion:
    found = find_version(tx, caller, name, version)
    model_registry.change_version(tx, found, description=description)
    return find_version(tx, caller, name, version)


def delete_version(tx: Tx, caller: Caller, name: str, version: str) -> None:
    model_registry.hold(tx, caller.project_id)
    found = find_version(tx, caller, name, version)
    model = find(tx, caller, name)
    left = {alias: number for alias, number in model.aliases.items() if number != found.version}
    model_registry.change(tx, model, aliases=left)
    model_registry.remove_version(tx, found)


def transition(
    tx: Tx, caller: Caller, name: str, version: str, stage: str, *, archive_existing: bool
) -> ModelVersion:
    wanted = stage_name(stage)
    if archive_existing and wanted not in _ACTIVE_STAGES:
        raise invalid(
            f"Model version transition cannot archive existing model versions because '{wanted}' is not an Active "
            "stage. Valid stages are ['Staging', 'Production']"
        )
    model_registry.hold(tx, caller.project_id)
    found = find_version(tx, caller, name, version)
    if archive_existing:
        for other in model_registry.versions(tx, caller.project_id, name=name):
            if other.stage == wanted and other.version != found.version:
                model_registry.change_version(tx, other, stage="Archived")
    model_registry.change_version(tx, found, stage=wanted)
    model_registry.change(tx, find(tx, caller, name))
    return find_version(tx, caller, name, version)


def stage_name(stage: str) -> str:
    found = next((known for known in STAGES if known.lower() == stage.lower()), None)
    if found is None:
        raise invalid(
            f"Invalid Model Version stage: {stage}. Value must be one of None, Staging, Production, Archived."
        )
    return found


def set_version_tag(tx: Tx, caller: Caller, name: str, version: str, tag: KeyValue) -> None:
    kept = check_tag(tag, most=MAX_REGISTRY_TAG, cut=False)
    model_registry.hold(tx, caller.project_id)
    found = find_version(tx, caller, name, version)
    model_registry.change_version(tx, found, tags={**found.tags, kept.key: kept.value})


def delete_version_tag(tx: Tx, caller: Caller, name: str, version: str, key: str) -> None:
    check_tag(KeyValue(key, ""))
    model_registry.hold(tx, caller.project_id)
    found = find_version(tx, caller, name, version)
    left = {k: v for k, v in found.tags.items() if k != key}
    model_registry.change_version(tx, found, tags=left)


def latest_versions(tx: Tx, caller: Caller, name: str, stages: Sequence[str]) -> list[ModelVersion]:
    """The newest version of each stage, or of those that are named."""
    find(tx, caller, name)
    wanted = [stage_name(stage) for stage in stages] or list(STAGES)
    newest = {v.stage: v for v in model_registry.versions(tx, caller.project_id, name=name)}
    return [newest[stage] for stage in STAGES if stage in wanted and stage in newest]


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
        for model in model_registry.all_models(tx, caller.project_id)
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
    for version in model_registry.versions(tx, caller.project_id, names=[model.name for model in page]):
        versions.setdefault(version.name, {})[version.stage] = version
    return [(model, list(versions.get(model.name, {}).values())) for model in page], token


def _tag(tags: Mapping[str, str], key: str) -> str | None:
    """Clients ask for what is no prompt; what does not say so is none."""
    return tags.get(key, "false") if key == _PROMPT else tags.get(key)


def _is_prompt(model: RegisteredModel) -> bool:
    return model.tags.get(_PROMPT, "").lower() == "true"


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
        for version in model_registry.versions(
            tx, caller.project_id, name=only if isinstance(only, str) else None
        )
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


def _tell(tx: Tx, caller: Caller, kind: str, name: str, body: dict[str, Any]) -> None:
    tx.emit(kind, name[:200], project_id=caller.project_id, actor=caller.user.id, body=body)
