"""Tags on files, file sets and jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from easel.errors import Denied, InvalidInput, NotFound
from easel.flow.lake.file_set import find_set
from easel.flow.lake.visible import hidden_jobs
from easel.lake.access import Rights, no_file
from easel.lake.paths import FileRef, parse, parse_set
from easel.lake.query.ast import BUILT_IN
from easel.lake.query.language import tag_key
from easel.records.identity import Caller
from easel.records.lake import Artifact, Kind, TagValue
from easel.store.engine import Tx
from easel.store.lake import artifacts, tags
from easel.store.lake.grants import rights_of
from easel.store.lake.tags import NewTag

MAX_TAGS = 200
MAX_TEXT = 500


def find_artifact(tx: Tx, caller: Caller, rights: Rights, kind: Kind, reference: str) -> Artifact:
    """A file version (`/data/x:2`), a set version (`name:3`) or a job (its id) that the caller may see."""
    match kind:
        case Kind.FILE:
            ref = parse(reference)
            if not isinstance(ref, FileRef):
                raise InvalidInput(f"{reference[:80]!r} does not name one file")
            rights.need_read(ref.path)
            if ref.version is None:
                found = artifacts.find_latest_file(tx, caller.project_id, ref.path)
            else:
                found = artifacts.find_version(tx, caller.project_id, kind, ref.path, ref.version)
            if found is None:
                raise no_file(str(ref))
            return found
        case Kind.FILE_SET:
            return find_set(tx, caller, rights, parse_set(reference))[0].artifact
        case Kind.JOB:
            job = artifacts.find_version(tx, caller.project_id, kind, reference, 1)
            if job is None or hidden_jobs(tx, caller, [job.name]):
                raise NotFound(f"there is no job {reference[:80]!r}")
            return job


def set_tags(
    tx: Tx,
    caller: Caller,
    kind: Kind,
    reference: str,
    values: Mapping[str, TagValue],
    remove: Sequence[str] = (),
) -> tuple[Artifact, dict[str, TagValue]]:
    """Set and remove tags; returns the artifact and all tags that it has now."""
    rights = rights_of(tx, caller)
    found = find_artifact(tx, caller, rights, kind, reference)
    if not may_change(rights, found):
        raise Denied(f"you may read {found.name} but not change it: ask an admin of this project for a grant")
    fixed = next((key for key in (*values, *remove) if kind is Kind.JOB and key.startswith("param.")), None)
    if fixed is not None:
        raise InvalidInput(f"{fixed!r} is a parameter of the run, and those never change: choose another key")
    checked = {check_key(key): check_value(key, value) for key, value in values.items()}
    tags.remove_tags(tx, found.id, list(remove))
    tags.put_tags(tx, found, checked)
    now = tags.tags_of(tx, [found.id])[found.id]
    if len(now) > MAX_TAGS:
        raise InvalidInput(f"{len(now)} tags on one {kind.value}: at most {MAX_TAGS}")
    subject = found.name if kind is Kind.JOB else f"{found.name}:{found.version}"
    body = {"kind": kind.value, "set": sorted(checked), "removed": sorted(remove)}
    tx.emit("tags.changed", subject[:200], project_id=caller.project_id, actor=caller.user.id, body=body)
    return found, now


def give_tags(tx: Tx, new: Sequence[NewTag]) -> None:
    """Tags that jobs give by printing a line. What a person could not set either is left out, without a word:
    a log line cannot be answered.
    """
    allowed = [tag for tag in new if _acceptable(tag)]
    if not allowed:
        return
    there = {
        of: set(found) for of, found in tags.tags_of(tx, sorted({t.artifact_id for t in allowed})).items()
    }
    kept: list[NewTag] = []
    for tag in allowed:
        keys = there[tag.artifact_id]
        if tag.key in keys or len(keys) < MAX_TAGS:
            keys.add(tag.key)
            kept.append(tag)
    tags.put_all(tx, kept)


def _acceptable(tag: NewTag) -> bool:
    try:
        check_key(tag.key)
        check_value(tag.key, tag.value)
    except InvalidInput:
        return False
    return True


def may_change(rights: Rights, found: Artifact) -> bool:
    """Whether the caller may tag it or write notes on it; every member may do so with every job."""
    match found.kind:
        case Kind.FILE:
            return rights.writes_path(found.name)
        case Kind.FILE_SET:
            return rights.writes_set(found.name)
        case Kind.JOB:
            return True


def check_key(key: str) -> str:
    if tag_key(key) in BUILT_IN or key.startswith("job."):
        raise InvalidInput(f"{key!r} is a built-in key: choose another")
    return key


def check_value(key: str, value: TagValue) -> TagValue:
    if isinstance(value, str) and (len(value) > MAX_TEXT or "\0" in value):
        raise InvalidInput(f"the value of {key!r} must have at most {MAX_TEXT} characters and no NUL")
    if isinstance(value, float) and not -1e308 <= value <= 1e308:
        raise InvalidInput(f"the value of {key!r} must be a finite number")
    if isinstance(value, datetime) and value.tzinfo is None:
        raise InvalidInput(f"the time of {key!r} has no zone: add one, e.g. Z")
    return value
