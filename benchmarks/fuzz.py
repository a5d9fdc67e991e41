"""Odd input of every kind, made from grammars and a seed, against a server of its own.

    python -m benchmarks.fuzz --minutes 60 --seed 1

Calls are made from the server's own OpenAPI document (paths, queries, bodies), with hostile values and, from the answers, with ids
that exist; texts from the grammars of programs, queries, YAML and CSV; archives, result files, files of examples, requirements and what notebooks leave are
broken on purpose. Beside it a server with a worker of its own runs hostile jobs (`--no-agents` leaves them out). Nothing may
answer 5xx, raise, or take more than two seconds of processor, and no agent may die. What grows faster than its input is found by doubling it.
Says every finding with the call that shows it as it comes, prints a table at the end, and exits 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from fastapi.testclient import TestClient

from benchmarks.fuzzing.agents import HostileJobs
from benchmarks.fuzzing.calls import requests, undocumented
from benchmarks.fuzzing.files import code_and_results, fed_files, good_examples
from benchmarks.fuzzing.texts import grammars, growing
from benchmarks.fuzzing.values import Fuzz
from easel.flow.first_start import create_platform_admin
from easel.serve.app import api_routes, create_app
from easel.serve.settings import Settings
from easel.store.engine import Store
from easel.store.migrate import migrate


def run(minutes: float, seed: int, *, agents: bool = True) -> Fuzz:
    fuzz = Fuzz(random.Random(seed))
    until = time.monotonic() + minutes * 60
    with tempfile.TemporaryDirectory() as name:
        home = Path(name) / "home"
        home.mkdir(mode=0o700)
        (Path(name) / "files").mkdir()
        (Path(name) / "fed").mkdir()
        store = Store(f"sqlite:///{home}/easel.sqlite")
        migrate(store, backup=lambda _revision: None)
        token = create_platform_admin(store)
        assert token is not None
        good = good_examples()
        values = Fuzz(random.Random(seed + 1))
        hostile = HostileJobs(seed, values.value, fuzz.find)
        if agents:
            hostile.start()
        app = create_app(Settings(home=home, failed_logins_per_minute=10**6), store)
        with TestClient(app, raise_server_exceptions=False) as http:
            http.post(
                "/api/v1/projects", json={"name": "astro"}, headers={"Authorization": f"Bearer {token}"}
            )
            document = http.get("/api/openapi.json").json()
            others = [route for route in api_routes(app) if route.path not in document["paths"]]
            growing(fuzz)
            while time.monotonic() < until:
                for _ in range(5):
                    requests(fuzz, http, document, token)
                    undocumented(fuzz, http, others, token)
                grammars(fuzz)
                code_and_results(fuzz, Path(name) / "files")
                fed_files(fuzz, Path(name) / "fed", good)
        store.close()
        if agents:
            hostile.stop()
            fuzz.calls.update(hostile.calls)
    return fuzz


def main() -> int:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--minutes", type=float, default=1.0)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--no-agents", action="store_true", help="without hostile jobs")
    given = asked.parse_args()
    fuzz = run(given.minutes, given.seed, agents=not given.no_agents)
    print(f"| what | calls (seed {given.seed}, {given.minutes:g} minutes) |\n|---|---|")
    for kind, count in sorted(fuzz.calls.items()):
        print(f"| {kind} | {count} |")
    print(f"| processor time of all | {time.process_time():.0f} s |")
    print(f"| most processor time of one call | {fuzz.slowest:.2f} s |\n| findings | {len(fuzz.found)} |")
    return 1 if fuzz.found else 0


if __name__ == "__main__":
    sys.exit(main())
