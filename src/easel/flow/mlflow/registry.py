"""The model registry: a registered model is a file set, its versions are versions of it, aliases name them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote, urlsplit

from easel.errors import EaselError
from easel.flow.lake.file_set import create_in, create_of
from easel.flow.mlflow import app_models, artifacts, experiments, logged_models
from easel.flow.mlflow import runs as flow_runs
from easel.flow.mlflow.checks import MAX_REGISTRY_TAG, KeyValue, check_alias, check_model_name, check_tag
from easel.flow.mlflow.errors import absent, invalid, taken
from easel.lake.paths import escape
from easel.records.identity import Caller
from easel.records.run import ModelVersion, RegisteredModel
from easel.store import model_registry
from easel.store.engine import Tx
from easel.store.lake import artifacts as catalogue
from easel.store.lake.grants import rights_of

PROMPT = "mlflow.prompt.is_prompt"
STAGES = ("None", "Staging", "Production", "Archived")
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
    """A registered model, or an app's, which is one as soon as it has a model."""
    found = model_registry.find(tx, caller.project_id, name) or app_models.find(tx, caller, name)
    if found is None:
        raise absent(f"Registered Model with name={name} not found")
    return found


def _own(tx: Tx, caller: Caller, name: str) -> RegisteredModel:
    """One that may be changed here. What an app's models are is the app's business."""
    found = find(tx, caller, name)
    if app_models.OF_APP in found.tags and model_registry.find(tx, caller.project_id, name) is None:
        raise invalid(
            f"'{name}' is the model of an app: it is changed by feeding, refining and pinning the app"
        )
    return found


def _own_version(tx: Tx, caller: Caller, name: str, version: str) -> ModelVersion:
    _own(tx, caller, name)
    return find_version(tx, caller, name, version)


def create(
    tx: Tx, caller: Caller, name: str, description: str | None, tags: Sequence[KeyValue]
) -> RegisteredModel:
    check_model_name(name)
    kept = {tag.key: tag.value for tag in (check_tag(t, most=MAX_REGISTRY_TAG, cut=False) for t in tags)}
    model_registry.hold(tx, caller.project_id)
    _check_free(tx, caller, name)
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


def _check_free(tx: Tx, caller: Caller, name: str) -> None:
    known = model_registry.find(tx, caller.project_id, name) or app_models.find(tx, caller, name)
    if known is not None:
        raise taken(f"Registered Model (name={name}) already exists.")


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
    found = _own(tx, caller, name)
    if new_name != name:
        _check_free(tx, caller, new_name)
    model_registry.rename(tx, found, new_name)
    return find(tx, caller, new_name)


def describe(tx: Tx, caller: Caller, name: str, description: str | None) -> RegisteredModel:
    model_registry.change(tx, _own(tx, caller, name), description=description)
    return find(tx, caller, name)


def delete(tx: Tx, caller: Caller, name: str) -> None:
    """Forget the name and its versions. The files stay in their set, so that what came of them can be traced."""
    model_registry.hold(tx, caller.project_id)
    model_registry.remove(tx, _own(tx, caller, name))
    _tell(tx, caller, "model.unregistered", name, {})


def set_tag(tx: Tx, caller: Caller, name: str, tag: KeyValue) -> None:
    kept = check_tag(tag, most=MAX_REGISTRY_TAG, cut=False)
    model_registry.hold(tx, caller.project_id)
    found = _own(tx, caller, name)
    model_registry.change(tx, found, tags={**found.tags, kept.key: kept.value}, updated_at=found.updated_at)


def delete_tag(tx: Tx, caller: Caller, name: str, key: str) -> None:
    check_tag(KeyValue(key, ""))
    model_registry.hold(tx, caller.project_id)
    found = _own(tx, caller, name)
    left = {k: v for k, v in found.tags.items() if k != key}
    model_registry.change(tx, found, tags=left, updated_at=found.updated_at)


def set_alias(tx: Tx, caller: Caller, name: str, alias: str, version: str) -> None:
    check_model_name(name)
    check_alias(alias)
    model_registry.hold(tx, caller.project_id)
    found = _own_version(tx, caller, name, version)
    model = find(tx, caller, name)
    aliases = {**model.aliases, alias: found.version}
    model_registry.change(tx, model, aliases=aliases, updated_at=model.updated_at)
    _tell(tx, caller, "model.alias", name, {"alias": alias, "version": found.version})


def delete_alias(tx: Tx, caller: Caller, name: str, alias: str) -> None:
    check_alias(alias)
    model_registry.hold(tx, caller.project_id)
    model = _own(tx, caller, name)
    left = {k: v for k, v in model.aliases.items() if k != alias}
    model_registry.change(tx, model, aliases=left, updated_at=model.updated_at)


def by_alias(tx: Tx, caller: Caller, name: str, alias: str) -> ModelVersion:
    """The version that an alias names; `latest` is the newest."""
    model = find(tx, caller, name)
    if alias.lower() == "latest":
        every = versions_of(tx, caller, name)
        if not every:
            raise absent(f"Latest version not found for model {name}.")
        return every[-1]
    check_alias(alias)
    if alias not in model.aliases:
        raise invalid(f"Registered model alias {alias} not found.")
    return find_version(tx, caller, name, str(model.aliases[alias]))


def find_version(tx: Tx, caller: Caller, name: str, version: str) -> ModelVersion:
    number, found = number_of(version), None
    if number < 2**31:
        found = model_registry.find_version(tx, caller.project_id, name, number)
    if found is None and model_registry.find(tx, caller.project_id, name) is None:
        found = next((v for v in app_models.versions(tx, caller, name) if v.version == number), None)
    if found is None:
        raise absent(f"Model Version (name={name}, version={version}) not found")
    return found


def versions_of(tx: Tx, caller: Caller, name: str | None = None) -> list[ModelVersion]:
    """Returns the versions of one model or of all, with those of apps; by name and number."""
    kept = model_registry.versions(tx, caller.project_id, name=name)
    if name is not None and kept:
        return kept
    names = {model.name for model in model_registry.all_models(tx, caller.project_id)}
    of_apps = [v for v in app_models.versions(tx, caller, name) if v.name not in names]
    return sorted([*kept, *of_apps], key=lambda v: (v.name, v.version))


def all_models(tx: Tx, caller: Caller) -> list[RegisteredModel]:
    """Returns every model of the project, by name."""
    kept = model_registry.all_models(tx, caller.project_id)
    names = {model.name for model in kept}
    return sorted(
        [*kept, *(m for m in app_models.every(tx, caller) if m.name not in names)], key=lambda m: m.name
    )


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
    if not any(tag.key == PROMPT and tag.value.lower() == "true" for tag in tags):  # a prompt has no files
        check_source(source, run_id)
    kept = {tag.key: tag.value for tag in (check_tag(t, most=MAX_REGISTRY_TAG, cut=False) for t in tags)}
    model_registry.hold(tx, caller.project_id)
    model = _own(tx, caller, name)
    if model_id:
        logged_models.note_version(tx, caller, model_id, name, model.latest + 1)
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
    """Refuses a version's source that leads up, hides something, or is a file of the server."""
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
    if app_models.OF_APP in find(tx, caller, name).tags and address.path.startswith("/filesets/"):
        return app_models.folder_uri(tx, caller, found)
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
    found = _own_version(tx, caller, name, version)
    model_registry.change_version(tx, found, description=description)
    return find_version(tx, caller, name, version)


def delete_version(tx: Tx, caller: Caller, name: str, version: str) -> None:
    model_registry.hold(tx, caller.project_id)
    found = _own_version(tx, caller, name, version)
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
    found = _own_version(tx, caller, name, version)
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
    found = _own_version(tx, caller, name, version)
    model_registry.change_version(tx, found, tags={**found.tags, kept.key: kept.value})


def delete_version_tag(tx: Tx, caller: Caller, name: str, version: str, key: str) -> None:
    check_tag(KeyValue(key, ""))
    model_registry.hold(tx, caller.project_id)
    found = _own_version(tx, caller, name, version)
    left = {k: v for k, v in found.tags.items() if k != key}
    model_registry.change_version(tx, found, tags=left)


def latest_versions(tx: Tx, caller: Caller, name: str, stages: Sequence[str]) -> list[ModelVersion]:
    """The newest version of each stage, or of those that are named."""
    find(tx, caller, name)
    wanted = [stage_name(stage) for stage in stages] or list(STAGES)
    newest = {v.stage: v for v in versions_of(tx, caller, name)}
    return [newest[stage] for stage in STAGES if stage in wanted and stage in newest]


def _tell(tx: Tx, caller: Caller, kind: str, name: str, body: dict[str, Any]) -> None:
    tx.emit(kind, name[:200], project_id=caller.project_id, actor=caller.user.id, body=body)
