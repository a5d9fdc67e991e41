"""What a grant hides is hidden in the history and in jobs too: names, lines, results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from easel.declare.job import Command
from easel.declare.page import PageRequest
from easel.errors import NotFound
from easel.lake.access import EVERYTHING, Rights
from easel.records.event import Event
from easel.records.identity import Caller
from easel.records.job import Job
from easel.store import jobs
from easel.store.engine import Tx
from easel.store.lake.grants import rights_of

_SETS = frozenset({"set", "input", "output", "code", "input_set", "output_set", "code_set", "examples_set"})
"""Fields of events that name file sets."""
_NEVER_HIDDEN = frozenset({"", "seq", "id", "state", "user_id", "submitted_at", "cost"})
"""What is told of every job, and may therefore be sorted and filtered by."""
HIDDEN = "(hidden by a grant)"
HIDDEN_NAME = "hidden"


def visible_events(tx: Tx, caller: Caller, events: Sequence[Event]) -> list[Event]:
    """Returns the events that name nothing which the caller may not read."""
    rights = rights_of(tx, caller)
    if rights is EVERYTHING:
        return list(events)
    subjects = {each.subject for each in events if each.kind.startswith("job.")}
    hidden = {job_id for job_id in subjects if _hides_id(tx, rights, caller, job_id)}
    return [each for each in events if each.subject not in hidden and _shows(rights, each)]


def _hides_id(tx: Tx, rights: Rights, caller: Caller, job_id: str) -> bool:
    try:
        return _hides(rights, caller, jobs.find(tx, caller.project_id, job_id))
    except NotFound:
        return False


def visible_job(tx: Tx, caller: Caller, job: Job) -> Job:
    """The job as the caller may see it: without names and results where its files are hidden from them."""
    return visible_jobs(tx, caller, [job])[0]


def visible_jobs(tx: Tx, caller: Caller, found: Sequence[Job]) -> list[Job]:
    rights = rights_of(tx, caller)
    if rights is EVERYTHING:
        return list(found)
    return [_redacted(job) if _hides(rights, caller, job) else job for job in found]


def telling_rights(tx: Tx, caller: Caller, page: PageRequest) -> Rights:
    """Returns by which rights jobs are left out of a page: the caller's, where its order or its filters would tell
    what is hidden of them; else nothing is left out, and what is hidden is only not named."""
    asked = {each.field for each in page.filters} | {page.sort.removeprefix("-")}
    return EVERYTHING if asked <= _NEVER_HIDDEN else rights_of(tx, caller)


def hidden_jobs(tx: Tx, caller: Caller, job_ids: Iterable[str]) -> set[str]:
    """Returns which of these jobs a grant hides: neither their names nor their tags are told."""
    rights = rights_of(tx, caller)
    if rights is EVERYTHING:
        return set()
    rows = jobs.rows(tx, job_ids, lock=False)
    return {job_id for job_id, row in rows.items() if _hides(rights, caller, jobs.job_of(row))}


def need_job(tx: Tx, caller: Caller, job_id: str) -> Job:
    """The job, if the caller may read what it reads and writes: otherwise its lines and series do not exist."""
    job = jobs.find(tx, caller.project_id, job_id)
    if _hides(rights_of(tx, caller), caller, job):
        raise NotFound(
            f"job {job_id} works on files that you may not read: ask an admin of this project for a grant"
        )
    return job


def _hides(rights: Rights, caller: Caller, job: Job) -> bool:
    """Whether a grant hides the job; never from its owner, who gave it the names."""
    if rights is EVERYTHING or job.user_id == caller.user.id:
        return False
    named = (job.code_set, job.input_set, job.output_set, job.spec.output_set)
    return any(name is not None and not reads_name(rights, name) for name in named)


def reads_name(rights: Rights, name: str) -> bool:
    """`name:version` of a set, or a path."""
    if name.startswith("/") and not name.startswith("/@"):
        return rights.reads_path(name.partition(":")[0])
    return rights.reads_set(name.removeprefix("/@").partition(":")[0])


def _redacted(job: Job) -> Job:
    spec = replace(
        job.spec,
        run=Command((HIDDEN,)),
        code=None,
        input=None,
        output_set=None,
        tags={},
        description="",
        name=HIDDEN_NAME,
        origin=None,
    )
    return replace(job, spec=spec, code_set=None, input_set=None, output_set=None, result=None, reason="")


def _shows(rights: Rights, event: Event) -> bool:
    group = event.kind.partition(".")[0]
    if group == "files" and not _reads_folder(rights, event.subject):
        return False
    if group == "fileset" and not reads_name(rights, event.subject):
        return False
    if group == "tags" and event.body.get("kind") != "job" and not reads_name(rights, event.subject):
        return False
    if group == "grant":
        is_path = event.body.get("scope") == "path"
        readable = (
            _reads_folder(rights, event.subject) if is_path else reads_name(rights, event.subject.rstrip("*"))
        )
        return bool(readable)
    return all(_reads_folder(rights, text) for text in _paths(event.body)) and all(
        reads_name(rights, name) for name in _sets(event.body)
    )


def _reads_folder(rights: Rights, text: str) -> bool:
    """A path with or without its version, a folder, or `/@set`."""
    return reads_name(rights, text) if text.startswith("/@") else rights.reads_path(text.partition(":")[0])


def _paths(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        if value.startswith("/"):
            yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _paths(each)
    elif isinstance(value, list):
        for each in value:
            yield from _paths(each)


def _sets(body: Any) -> Iterator[str]:
    if isinstance(body, dict):
        yield from (value for key, value in body.items() if key in _SETS and isinstance(value, str) and value)
