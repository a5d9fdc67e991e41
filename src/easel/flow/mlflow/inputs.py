"""`log_input`: a data set that a run read becomes a file set that the run reads, an edge of the graph.

What a client says of it (source, schema, profile) is a small file of that set. Where the source names a file set of
the lake (`easel:///@name:3`), the edge leads there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from easel.errors import EaselError
from easel.flow.jobs.outputs import record_objects
from easel.flow.lake.file_set import create_of, find_set
from easel.flow.lake.upload import Lake
from easel.flow.mlflow import runs as flow_runs
from easel.flow.mlflow.errors import invalid
from easel.lake.blobs.store import Incoming, put
from easel.lake.digest import digest_of
from easel.lake.manifest.node import Entry
from easel.lake.paths import SetRef, parse_set
from easel.records.identity import Caller
from easel.records.lake import Artifact, Kind
from easel.records.run import DatasetUse, ModelUse
from easel.store import runs
from easel.store.engine import Tx
from easel.store.lake import artifacts, blob_index, file_sets, lineage
from easel.store.lake.grants import rights_of

CONTEXT = "mlflow.data.context"
MAX_DATASETS = 1000
_LIMITS = {"name": 500, "digest": 36, "source": 65_535, "schema": 1_048_575, "profile": 16_777_215}


def read_dataset(number: int, given: Any) -> DatasetUse:
    """What a client says of a data set, checked."""
    if not isinstance(given, dict) or not isinstance(given.get("dataset"), dict):
        raise invalid(f"Invalid value for parameter 'datasets[{number}]' supplied: it has no dataset")
    dataset = given["dataset"]
    for field, most in _LIMITS.items():
        value = dataset.get(field)
        if value is not None and (not isinstance(value, str) or len(value) > most or "\0" in value):
            raise invalid(f"'datasets[{number}].dataset.{field}' is no text of at most {most} characters")
    for field in ("name", "digest", "source_type", "source"):
        if not isinstance(dataset.get(field), str):
            raise invalid(f"Missing value for required parameter 'datasets[{number}].dataset.{field}'.")
    tags = [
        {"key": str(tag.get("key", ""))[:255], "value": str(tag.get("value", ""))[:500]}
        for tag in given.get("tags") or []
        if isinstance(tag, dict)
    ]
    context = next((tag["value"] for tag in tags if tag["key"] == CONTEXT), None)
    kept = ("source_type", "source", "schema", "profile")
    body = {**{name: dataset[name] for name in kept if dataset.get(name) is not None}, "tags": tags}
    return DatasetUse(dataset["name"], dataset["digest"], context, body)


def log_inputs(
    lake: Lake, caller: Caller, run_id: str, datasets: Sequence[DatasetUse], models: Sequence[ModelUse]
) -> None:
    """Keep them with the run, and in the graph."""
    if len(datasets) > MAX_DATASETS:
        raise invalid(f"A request can contain at most {MAX_DATASETS} datasets. Got {len(datasets)}.")
    described = {(each.name, each.digest): _description(each) for each in datasets}
    with lake.store.read() as tx:
        flow_runs.check_active(flow_runs.find_own(tx, caller, run_id))
    stored = [Incoming(digest_of(data), len(data)) for data in described.values()]
    with lake.store.write() as tx:
        stage = tx.mint("dataset")
        known = blob_index.keep_known(tx, [each.digest for each in stored])
        for each in stored:
            if each.digest not in known:
                blob_index.claim(tx, each)
    for number, data in enumerate(described.values()):
        if digest_of(data) not in known:
            put(lake.blobs, f"{stage}-{number}", data)
    with lake.store.write() as tx:
        runs.hold(tx, run_id)
        record = flow_runs.find_own(tx, caller, run_id)
        flow_runs.check_active(record)
        record_objects(tx, [each for each in stored if each.digest not in known])
        sets = {
            (each.name, each.digest): _file_set(tx, caller, each, described[each.name, each.digest])
            for each in datasets
        }
        runs.add_datasets(tx, record, datasets, sets)
        lineage.add_reads(tx, record.artifact_id, sets.values())
        runs.add_models(tx, record.id, models)


def _description(dataset: DatasetUse) -> bytes:
    said = {name: value for name, value in dataset.body.items() if name != "tags"}
    return json.dumps({"name": dataset.name, "digest": dataset.digest, **said}, sort_keys=True).encode()


def _file_set(tx: Tx, caller: Caller, dataset: DatasetUse, data: bytes) -> int:
    """The number in the catalogue of the set that stands for a data set; made where there is none."""
    named = _named_set(str(dataset.body.get("source", "")))
    if named is not None:
        try:
            return find_set(tx, caller, rights_of(tx, caller), named)[0].artifact.id
        except EaselError:
            pass  # not here, or not for them: what they said of it is still worth keeping
    name = f"dataset-{_slug(dataset.name)}-{_slug(dataset.digest)}"
    found = file_sets.find(tx, caller.project_id, name, None)
    if found is not None:
        return found[0].artifact.id
    path = f"/datasets/{name}.json"
    version = artifacts.next_version(tx, caller.project_id, path)
    digest = digest_of(data)
    new = Artifact(
        0, caller.project_id, Kind.FILE, path, version, caller.user.id, tx.now, len(data), digest, None, None
    )
    entry = Entry(path, version, artifacts.add_version(tx, new), len(data), digest)
    return create_of(tx, caller, name, iter([entry]), made_by=None).artifact.id


def _named_set(source: str) -> SetRef | None:
    """`easel:///@name:3`, alone or as the `uri` or `url` of a source."""
    match = re.search(r"easel:/{1,3}[^@\"]*@([A-Za-z0-9._-]+(?::\d+)?)", source)
    return parse_set(match[1]) if match else None


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-")[:50] or "x"


def dataset_summaries(
    tx: Tx, caller: Caller, experiment_ids: Sequence[int]
) -> list[tuple[int, str, str, str | None]]:
    known = [number for number in experiment_ids if 0 <= number < 2**31]
    return runs.dataset_summaries(tx, caller.project_id, known, 1000)
