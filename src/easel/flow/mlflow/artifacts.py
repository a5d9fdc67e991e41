"""Files of runs and models: paths of MLflow's artifact store, and where in the lake each of them lies.

A run's files lie in the folder named after it and become versions of its output set; a logged model's in a folder named
after it. Every other path of the artifact store is a path below `/mlflow-artifacts/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from easel.declare.roles import Role
from easel.errors import Denied, NotFound
from easel.flow.lake import browse, upload
from easel.flow.lake.file_set import create_of
from easel.flow.lake.ingest import send
from easel.flow.lake.upload import Lake
from easel.flow.mlflow import runs as flow_runs
from easel.flow.mlflow.errors import absent, invalid
from easel.lake.folder import LocalFile
from easel.lake.manifest.node import Entry
from easel.lake.paths import escape, file_path
from easel.records.identity import Caller
from easel.records.job import TERMINAL
from easel.records.lake import Folder
from easel.records.run import LoggedModel, RunRecord
from easel.store import logged_models, runs
from easel.store.engine import Tx
from easel.store.lake import artifacts, file_sets
from easel.store.lake.grants import rights_of

SCHEME = "mlflow-artifacts:/"
_OF_RUN = re.compile(r"(?:.+/)?(?P<id>job_[0-9a-z]{26})/artifacts(?:/(?P<rest>.*))?")
_OF_MODEL = re.compile(r"(?:.+/)?models/(?P<id>m-[0-9a-f]{32})/artifacts(?:/(?P<rest>.*))?")
_OF_SET = re.compile(r"filesets/(?P<name>[A-Za-z0-9_.-]+)/(?P<number>\d{1,9})(?:/(?P<rest>.*))?")
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class ArtifactPlace:
    """`folder` of the lake (ends in `/`), and the path below it; the run or model to which it belongs."""

    folder: str
    path: str
    run: RunRecord | None = None
    model: LoggedModel | None = None
    file_set: str | None = None
    """The version of a set that is read, as `name:number`: it never changes."""

    @property
    def full(self) -> str:
        return self.folder + self.path


@dataclass(frozen=True, slots=True)
class ListedFile:
    """`path` counts from the root of the run or model."""

    path: str
    size: int | None
    """None for a folder."""


def check_path(path: str) -> str:
    """A relative path without tricks, however often encoded; slashes at its ends do not count."""
    plain = path
    while True:
        decoded = unquote(plain)
        if decoded == plain:
            break
        plain = decoded
    segments = plain.split("/")
    tricky = any(part == ".." for part in segments) or "\\" in plain or plain.startswith("/")
    if tricky or re.match(r"[A-Za-z]:", plain) or any(ord(c) < 32 or ord(c) == 127 for c in plain):
        raise invalid("Invalid path")
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def run_folder(record: RunRecord) -> str:
    """What a job that Easel runs leaves is its output; what it logs meanwhile has a folder of its own."""
    return f"/{record.id}-output/" if record.free else f"/{record.id}-artifacts/"


def model_folder(model_id: str) -> str:
    return f"/{model_id}-model/"


def locate(tx: Tx, caller: Caller, path: str) -> ArtifactPlace:
    """Where a path of the artifact store lies."""
    plain = check_path(path)
    if match := _OF_MODEL.fullmatch(plain):
        model = logged_models.find(tx, caller.project_id, match["id"])
        if model is None:
            raise absent(f"Logged model with ID '{match['id']}' not found.")
        return ArtifactPlace(model_folder(model.id), match["rest"] or "", model=model)
    if match := _OF_RUN.fullmatch(plain):
        record = flow_runs.find(tx, caller, match["id"])
        return ArtifactPlace(run_folder(record), match["rest"] or "", run=record)
    if match := _OF_SET.fullmatch(plain):
        name, number = match["name"], match["number"]
        return ArtifactPlace(f"/{name}/", match["rest"] or "", file_set=f"{name}:{number}")
    return ArtifactPlace("/mlflow-artifacts/", plain)


def of_run(tx: Tx, caller: Caller, run_id: str, path: str) -> ArtifactPlace:
    plain = check_path(path)
    record = flow_runs.find(tx, caller, run_id)
    return ArtifactPlace(run_folder(record), plain, run=record)


def run_uri(record: RunRecord, location: str | None) -> str:
    base = location.rstrip("/") if location else f"{SCHEME}{record.experiment}"
    return f"{base}/{record.id}/artifacts"


def model_uri(model: LoggedModel, location: str | None) -> str:
    base = location.rstrip("/") if location else f"{SCHEME}{model.experiment}"
    return f"{base}/models/{model.id}/artifacts"


def check_writable(caller: Caller, place: ArtifactPlace) -> None:
    if place.file_set is not None:
        raise Denied(f"{place.file_set} is a version of a file set, which never changes")
    owner = place.run.user_id if place.run else place.model.creator if place.model else caller.user.id
    if owner != caller.user.id and caller.role is not Role.ADMIN:
        raise Denied(
            "these files are somebody else's: their owner or an admin of the project may change them"
        )
    if place.run is not None:
        flow_runs.check_active(place.run)


def write(lake: Lake, caller: Caller, place: ArtifactPlace, local: Path) -> None:
    """A new version of a file, from bytes that are here already."""
    if not place.path:
        raise invalid("Invalid path")
    check_writable(caller, place)
    with lake.store.write() as tx:
        session = upload.start(tx, caller, place.run.artifact_id if place.run else None)
    send(lake, caller, session.id, [LocalFile(file_path(place.full), local, local.stat().st_size)])
    with lake.store.write() as tx:
        upload.commit(tx, caller, session.id)
        if place.run is not None and place.run.state in TERMINAL:
            keep_output(tx, caller, place.run)


def keep_output(tx: Tx, caller: Caller, record: RunRecord) -> None:
    """What a free run logged becomes the next version of its output set, if anything changed."""
    if not record.free:
        return
    folder = run_folder(record)
    entries = list(artifacts.stream_entries(tx, caller.project_id, folder, rights_of(tx, caller)))
    if not entries:
        return
    name = folder.strip("/")
    standing = file_sets.find(tx, caller.project_id, name, None)
    if standing is not None and standing[0].files == len(entries):
        newest = max(entry.id for entry in entries)
        if newest < standing[0].artifact.id:
            return
    made = create_of(tx, caller, name, iter(entries), made_by=record.artifact_id)
    runs.change(tx, record.id, {"output_set": str(made), "output_id": made.artifact.id})


def listing(tx: Tx, caller: Caller, place: ArtifactPlace) -> list[ListedFile]:
    """What stands directly in a folder, by path."""
    below = place.full.rstrip("/") + "/"
    found: dict[str, ListedFile] = {}
    for reference, root in _readable(place, below):
        for item in _items(tx, caller, reference):
            path = item.path.rstrip("/")[len(root) :]
            found.setdefault(path, ListedFile(path, item.size if isinstance(item, Entry) else None))
    return [found[path] for path in sorted(found)]


def _readable(place: ArtifactPlace, path: str) -> list[tuple[str, str]]:
    """Returns where a path may be read: (reference, root that is cut off), also in a job's output set."""
    if place.file_set is not None:
        return [(f"{escape(path)}@{place.file_set}", place.folder)]
    found = [(escape(path), place.folder)]
    if place.run is not None and not place.run.free and place.run.output_set:
        name = place.run.output_set.partition(":")[0]
        inside = f"/{name}/{path[len(place.folder) :]}"
        found.append((f"{escape(inside)}@{place.run.output_set}", f"/{name}/"))
    return found


def _items(tx: Tx, caller: Caller, reference: str) -> Iterator[Entry | Folder]:
    after = ""
    while True:
        try:
            page = browse.list_files(tx, caller, reference, recursive=False, limit=_PAGE, after=after)
        except NotFound:
            return
        yield from page.items
        if page.next_cursor is None:
            return
        after = page.next_cursor


def open_file(tx: Tx, caller: Caller, place: ArtifactPlace) -> browse.Readable:
    """One file and where its bytes are."""
    if place.path:
        for reference, _ in _readable(place, place.full):
            try:
                return browse.open_file(tx, caller, reference)
            except NotFound:
                continue
    raise absent(f"No such artifact: '{place.path}'")


def delete(tx: Tx, caller: Caller, place: ArtifactPlace) -> None:
    """Hide a file or a folder with all below it; what is not there is deleted already."""
    check_writable(caller, place)
    for reference in ([escape(place.full)] if place.path else []) + [escape(place.full.rstrip("/") + "/")]:
        try:
            browse.delete(tx, caller, reference)
            return
        except NotFound:
            continue
