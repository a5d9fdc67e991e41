"""Names for the shell's completion: jobs, apps, studies, projects and file sets of the remembered server."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from easel.cli.plain import short_id
from easel.errors import EaselError

MOST = 50
Completer = Callable[[str], list[tuple[str, str]]]


def _quietly(found: Callable[[], Iterable[tuple[str, str]]]) -> Completer:
    """Completion never prints an error: without a server there is nothing to propose."""

    def complete(incomplete: str) -> list[tuple[str, str]]:
        try:
            return [(name, about) for name, about in found() if name.startswith(incomplete)]
        except (EaselError, OSError):
            return []

    return complete


def _jobs() -> Iterable[tuple[str, str]]:
    from easel.cli.connect import connect

    with connect() as client:
        return [(short_id(job.id), f"{job.about.name} ({job.state})") for job in client.jobs.list(MOST)]


def _apps() -> Iterable[tuple[str, str]]:
    from easel.cli.connect import connect

    with connect() as client:
        return [(app.name, "app") for app in client.apps.list()]


def _studies() -> Iterable[tuple[str, str]]:
    from easel.cli.connect import connect

    with connect() as client:
        return [(study.name, study.state) for study in client.studies.list()]


def _projects() -> Iterable[tuple[str, str]]:
    from easel.cli.connect import connect

    with connect() as client:
        return [(project.name, project.description) for project in client.projects.list()]


def _file_sets() -> Iterable[tuple[str, str]]:
    from easel.cli.connect import connect

    with connect() as client:
        found = islice(client.lake.file_sets(automatic=False), MOST)
        return [(one.name, f"{one.files:,} files") for one in found]


def _anything() -> Iterable[tuple[str, str]]:
    return [*_apps(), *_studies(), *_jobs()]


COMPLETERS: dict[str, Completer] = {
    "job": _quietly(_jobs),
    "app": _quietly(_apps),
    "study": _quietly(_studies),
    "project": _quietly(_projects),
    "what": _quietly(_anything),
    "ref": _quietly(_file_sets),
    "input_set": _quietly(_file_sets),
}
"""By the name of a command's parameter."""
