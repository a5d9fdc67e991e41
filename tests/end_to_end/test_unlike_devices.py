"""Machines of different speed in one pool, live: trials are chosen for a kind of machine and run on that kind."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tests.end_to_end.test_workers import join

from easel.testing.engine import until
from easel.testing.server import running

PROGRAM = "input: {size: number, weight: number, town: category}\noutput: [no, yes]"


def test_a_fast_and_a_slow_machine_are_both_given_trials_that_were_chosen_for_them(tmp_path: Path) -> None:
    """They differ only by what they say of themselves: what is predicted for the fast one is a quarter."""
    rng = np.random.default_rng(0)
    pairs = [
        ({"size": float(a), "weight": float(b), "town": "Bern"}, "yes" if a + b > 0 else "no")
        for a, b in rng.normal(size=(400, 2))
    ]
    with running(tmp_path, executor="remote") as server:
        root = server.client()
        root.projects.create("astro")
        ana, token = root.in_project("astro"), root.worker_tokens.create("lab").secret
        assert token is not None
        size = ("--vcpu", "1", "--memory-mb", "4096")
        workers = [join(server, "quick", token, *size, "--label", "speed=4")]
        workers.append(join(server, "slow", token, *size))
        try:
            until(lambda: sum(one.connected for one in root.queues.devices()) == 2)
            ana.apps.declare("flowers", PROGRAM)
            ana.apps.feed("flowers", pairs)

            def ran_on() -> set[str]:
                done = [trial.job for trial in ana.apps.trials("flowers") if trial.state == "done"]
                return {ana.jobs.get(job).device or "" for job in done}

            until(lambda: ran_on() == {"quick", "slow"}, 200)
            for trial in ana.apps.trials("flowers"):
                job = ana.jobs.get(trial.job)
                if trial.state == "done" and job.wants:
                    assert (job.wants, job.device) == ({"speed": "4"}, "quick")
            chosen = [ana.jobs.get(trial.job).wants for trial in ana.apps.trials("flowers")]
            assert {"speed": "4"} in chosen
            assert {} in chosen
        finally:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait(60)
