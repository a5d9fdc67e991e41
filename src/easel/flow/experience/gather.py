"""Run what the experience lacks, in as many processes as there are, and keep the file up to date meanwhile."""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

from easel.flow.experience.file import read_experience, write_experience
from easel.flow.experience.measure import prepare, run_one, wanted
from easel.flow.experience.sources import Source
from easel.match.candidate import Candidate
from easel.schedule.experience import Experience, KnownSet, Outcome

log = logging.getLogger("easel.experience")
SAVE_EVERY_S = 20.0
AHEAD = 3
"""So many trials for each process wait in its queue: the sets are read as they come up."""


def gather(
    path: Path, found: list[Source], jobs: int, seconds: float, most_s: float, skip: tuple[str, ...] = ()
) -> None:
    """Run what is missing, and keep the file up to date, until everything is done or the time is over."""
    known = {one.name: one for one in (read_experience(path).sets if path.exists() else ())}
    ends, saved = time.monotonic() + seconds, time.monotonic()
    open_ = _tasks(known, found, most_s, skip)
    context = multiprocessing.get_context("spawn")
    running: dict[Future[Outcome | None], tuple[str, str]] = {}
    with ProcessPoolExecutor(jobs, context, initializer=_warm_up) as pool:
        more = True
        while more or running:
            while more and len(running) < AHEAD * jobs and time.monotonic() < ends:
                task = next(open_, None)
                if task is None:
                    more = False
                    break
                source, candidate = task
                running[pool.submit(run_one, source, candidate, most_s)] = (source.name, candidate.name)
            if time.monotonic() >= ends:
                more = False
                for one in list(running):
                    if one.cancel():
                        del running[one]
            if not running:
                break
            for one in wait(running, timeout=SAVE_EVERY_S, return_when=FIRST_COMPLETED).done:
                name, candidate_name = running.pop(one)
                _note(known, name, candidate_name, one)
            if time.monotonic() - saved > SAVE_EVERY_S:
                write_experience(Experience(tuple(known.values())), path)
                saved = time.monotonic()
    write_experience(Experience(tuple(known.values())), path)


def _tasks(
    known: dict[str, KnownSet], found: list[Source], most_s: float, skip: tuple[str, ...]
) -> Iterator[tuple[Source, Candidate]]:
    """Set by set; what is `known` gains an empty entry for each set that is begun."""
    for source in found:
        prepared = prepare(source)
        if prepared is None:
            log.warning("%s: cannot be learned, left out", source.name)
            continue
        begun = KnownSet(source.name, source.group, prepared.template, source.package, prepared.properties)
        known[source.name] = (
            replace(begun, outcomes=known[source.name].outcomes) if source.name in known else begun
        )
        open_ = wanted(prepared, known[source.name].outcomes, most_s, skip)
        log.info("%s: %s, %d to run", source.name, prepared.template, len(open_))
        for candidate in open_:
            yield source, candidate


def _note(known: dict[str, KnownSet], name: str, candidate: str, one: Future[Outcome | None]) -> None:
    try:
        outcome = one.result()
    except ImportError as error:
        log.warning("%s: %s", candidate, error)
        return
    if outcome is not None:
        known[name] = replace(known[name], outcomes={**known[name].outcomes, candidate: outcome})


def _warm_up() -> None:
    """One thread, no warnings, and everything imported before a clock runs."""
    import warnings
    from importlib import import_module

    warnings.simplefilter("ignore")
    for name in ("easel.match.train_estimator", "easel.match.train_network", "lightgbm", "torch"):
        try:
            module = import_module(name)
        except ImportError:
            continue
        if name == "torch":
            module.set_num_threads(1)
