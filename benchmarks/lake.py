"""The lake against its peers: uploads, a million-file set, search over a million objects, a deep trace.

    python -m benchmarks.lake [--quick] [--peers PYTHON] [--only upload,sets,search,trace]

`--peers` names a Python that has dvc and mlflow (their dependencies are best kept in an environment of
their own); without it those rows are skipped, loudly. Search runs on PostgreSQL, the rest on SQLite and a
folder, as `easel up` does.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from sqlalchemy import insert, text

from easel.declare.roles import Role
from easel.flow.lake.file_set import create_file_set
from easel.flow.lake.find import find
from easel.flow.lake.trace import trace
from easel.ids import TokenId
from easel.lake.digest import digest_file
from easel.records.identity import Caller
from easel.records.lake import Kind
from easel.store import identity
from easel.store.engine import Store
from easel.store.lake.lineage import TraceDirection
from easel.store.migrate import migrate
from easel.store.schema.lake import artifacts, file_set_versions, file_sets, files, lineage
from easel.testing import postgres
from easel.testing.server import running

PEER_MLFLOW = """
import json, random, statistics, sys, time
from mlflow.store.tracking.dbmodels.models import SqlLatestMetric, SqlMetric, SqlRun, SqlTag
from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
folder, runs = sys.argv[1], int(sys.argv[2])
store = SqlAlchemyStore(f"sqlite:///{folder}/mlflow.db", folder)
experiment = store.create_experiment("bench")
rng, models, rows = random.Random(1), ["BERT", "GPT", "T5", "CNN"], []
for i in range(runs):
    of = {"run_uuid": f"{i:032x}"}
    run = {"name": f"r{i}", "source_type": "LOCAL", "user_id": "u", "status": "FINISHED", "start_time": i}
    more = {"lifecycle_stage": "active", "experiment_id": int(experiment), "artifact_uri": f"{folder}/{i}"}
    metric = {"key": "precision", "value": rng.random(), "timestamp": 0, "step": 0, "is_nan": False}
    rows.append((of | run | more, of | {"key": "model", "value": rng.choice(models)}, of | metric))
with store.ManagedSessionMaker() as session:  # as its own calls would have left them, in bulk
    for table, column in ((SqlRun, 0), (SqlTag, 1), (SqlMetric, 2), (SqlLatestMetric, 2)):
        session.bulk_insert_mappings(table, [row[column] for row in rows])
times = []
for _ in range(20):
    low = rng.random()
    began = time.perf_counter()
    found = store.search_runs([experiment], f"tags.model = 'BERT' and metrics.precision > {low}", 1, 50)
    times.append(time.perf_counter() - began)
    assert len(found) > 0
print(json.dumps(statistics.median(times)))
"""


def show(what: str, value: str, note: str = "") -> None:
    print(f"{what:58} {value:>16}  {note}", flush=True)


def timed(do: Callable[[], object]) -> float:
    began = time.perf_counter()
    do()
    return time.perf_counter() - began


@contextmanager
def workplace() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="easel-bench-", dir=os.environ.get("EASEL_BENCH_DIR")))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def upload(quick: bool, peers: str | None) -> None:
    count, size, big = (2_000, 10_000, 100 * 2**20) if quick else (20_000, 10_000, 2 * 10**9)
    with workplace() as folder:
        many, one = folder / "many", folder / "one"
        many.mkdir()
        one.mkdir()
        rng = random.Random(1)
        for i in range(count):
            place = many / f"{i // 100:04}"
            place.mkdir(exist_ok=True)
            (place / f"{i:06}").write_bytes(rng.randbytes(size))
        with (one / "big").open("wb") as out:
            for _ in range(big // 2**20):
                out.write(rng.randbytes(2**20))
        os.sync()
        (folder / "server").mkdir()
        with running(folder / "server") as server:
            root = server.client()
            root.projects.create("bench")
            lake = root.in_project("bench").lake
            for name, source, total in (
                ("one large file", one, big),
                (f"{count} small files", many, count * size),
            ):
                plain = timed(partial(_copy_and_hash, source, folder / "copy"))
                shutil.rmtree(folder / "copy")
                os.sync()
                ours = timed(partial(lake.upload, source, f"/{source.name}/"))
                show(f"upload {name}", f"{total / ours / 1e6:.0f} MB/s", f"{ours:.2f} s")
                show("  cp -r and a BLAKE3 pass", f"{total / plain / 1e6:.0f} MB/s", f"{plain:.2f} s")
                show("  ratio (target at least 0.5)", f"{plain / ours:.2f}")
            again = timed(lambda: lake.upload(many, "/again/"))
            show("  the same small files once more (nothing to send)", f"{again:.2f} s")
        if peers is None:
            show("  dvc add", "SKIPPED", "no --peers")
            return
        _run(["git", "init", "-q"], folder)
        _run([peers, "-m", "dvc", "init", "-q"], folder)
        theirs = timed(lambda: _run([peers, "-m", "dvc", "add", "-q", "many"], folder))
        show(f"  dvc add of the {count} small files", f"{theirs:.2f} s")


def _copy_and_hash(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-r", str(source), str(target)], check=True)
    for path in source.rglob("*"):
        if path.is_file():
            digest_file(path)


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def person(store: Store) -> Caller:
    with store.write() as tx:
        project = identity.add_project(tx, "bench", "")
        user = identity.add_user(tx, "ana", home=project.id)
        identity.put_member(tx, project.id, user.id, Role.MEMBER)
    return Caller(user, TokenId("tok_bench"), project, Role.MEMBER)


def add_artifacts(store: Store, who: Caller, kind: Kind, count: int, name: Callable[[int], str]) -> None:
    """Rows as commits would have left them, in bulk."""
    now = datetime(2026, 11, 1, tzinfo=UTC)
    for start in range(0, count, 20_000):
        numbers = range(start, min(count, start + 20_000))
        with store.write() as tx:
            rows = [
                {
                    "project_id": who.project_id,
                    "kind": kind.value,
                    "name": name(i),
                    "version": 1,
                    "creator": who.user.id,
                    "created_at": now.replace(microsecond=i % 10**6, second=i // 10**6 % 60),
                    "size": i % 5000,
                    "digest": i.to_bytes(32, "big") if kind is Kind.FILE else None,
                }
                for i in numbers
            ]
            tx.execute(insert(artifacts), rows)
            if kind is Kind.FILE:
                heads = [{"project_id": who.project_id, "path": r["name"], "latest": 1} for r in rows]
                tx.execute(insert(files), heads)


def sets(quick: bool, _peers: str | None) -> None:
    count = 100_000 if quick else 1_000_000
    with workplace() as folder:
        store = Store(f"sqlite:///{folder}/easel.sqlite")
        migrate(store, backup=lambda _revision: None)
        who = person(store)
        add_artifacts(store, who, Kind.FILE, count, lambda i: f"/data/{i // 1000:05}/image-{i:08}.jpg")
        with store.write() as tx:
            tx.execute(text("ANALYZE"))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = timed(lambda: create_file_set(store, who, "Images", ["/data/"]))
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        show(f"file set of {count} versions (target 15 s)", f"{seconds:.2f} s")
        show("  peak memory of the process (target 500 MB)", f"{peak:.0f} MB", f"grown by {grown:.0f} MB")
        one = ["/@Images", "/data/00000/image-00000000.jpg"]
        more = [timed(lambda: create_file_set(store, who, "Images", one)) for _ in range(20)]
        show("  a version with one file more, median", f"{statistics.median(more) * 1000:.1f} ms")
        size = (folder / "easel.sqlite").stat().st_size
        show("  the database", f"{size / 1e6:.0f} MB")
        store.close()


SAME_KIND = "model = BERT and precision > p, newest"
"""What MLflow is asked, too."""


def search(quick: bool, peers: str | None) -> None:
    count, runs = (50_000, 2_000) if quick else (1_000_000, 50_000)
    with postgres.running() as server:
        times = _search(server.create("bench"), count)
        everything = statistics.median([t for kind in times.values() for t in kind])
        show("  median of all (target 50 ms)", f"{everything * 1000:.1f} ms")
        equal = _search(server.create("equal"), runs)
    if peers is None:
        show(f"  mlflow search_runs over {runs} runs", "SKIPPED", "no --peers")
        return
    with workplace() as folder:
        command = [peers, "-c", PEER_MLFLOW, str(folder), str(runs)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        theirs = float(json.loads(done.stdout.strip().splitlines()[-1]))
    show(f"  mlflow search_runs over {runs} runs, median", f"{theirs * 1000:.1f} ms")
    for number, found in ((count, times), (runs, equal)):
        ours = statistics.median(found[SAME_KIND])
        show(f"  ours over {number}, the same kind of query (target 10)", f"{theirs / ours:.1f} x")


def _search(database: str, count: int) -> dict[str, list[float]]:
    """Seconds of twenty searches of each kind among `count` jobs with three tags each."""
    store = Store(database)
    migrate(store, backup=lambda _revision: None)
    who = person(store)
    add_artifacts(store, who, Kind.JOB, count, lambda i: f"job_{i:08}")
    rng = random.Random(1)
    models = ["BERT", "GPT", "T5", "CNN"]
    with store.read() as tx:
        first = tx.execute(text("SELECT min(id) FROM artifacts")).scalar_one()
    _copy_tags(
        store,
        (
            row
            for i in range(count)
            for row in (
                (first + i, "model", who.project_id, "job", rng.choice(models), None),
                (first + i, "precision", who.project_id, "job", None, rng.random()),
                (first + i, "run", who.project_id, "job", f"run-{i % 1000}", None),
            )
        ),
    )
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        conn.execute(text("VACUUM ANALYZE"))
    queries: dict[str, Callable[[], tuple[str, str]]] = {
        SAME_KIND: lambda: (f"model = BERT and precision > {rng.random():.4f}", ""),
        "model = BERT and precision > 0.999, newest": lambda: ("model = BERT and precision > 0.999", ""),
        "the best precision of a model": lambda: (f"model = {rng.choice(models)}", "-precision"),
        "one run of a thousand, and a range": lambda: (
            f"run = run-{rng.randrange(1000)} and precision < 0.5",
            "",
        ),
        "creator, time and tag": lambda: ("creator = ana and create_time > 2026-10-01 and model = T5", ""),
        "a narrow range or a run": lambda: (f"precision > 0.9999 or run = run-{rng.randrange(1000)}", ""),
    }
    times: dict[str, list[float]] = {}
    for name, make in queries.items():
        for _ in range(20):
            query, sort = make()
            with store.read() as tx:
                took = timed(partial(find, tx, who, Kind.JOB, query, sort=sort, limit=50))
            times.setdefault(name, []).append(took)
        median, worst = statistics.median(times[name]) * 1000, max(times[name]) * 1000
        show(f"search {count}: {name}", f"{median:.1f} ms", f"max {worst:.0f}")
    store.close()
    return times


def _copy_tags(store: Store, rows: Iterable[tuple[object, ...]]) -> None:
    connection = store.engine.raw_connection()
    try:
        with closing(connection.cursor()) as cursor:
            into = "COPY tags (artifact_id, key, project_id, kind, text, number) FROM STDIN"
            with cursor.copy(into) as copy:
                for row in rows:
                    copy.write_row(row)
        connection.commit()
    finally:
        connection.close()


def traces(quick: bool, _peers: str | None) -> None:
    count, deep = (10_000, 1_000) if quick else (100_000, 1_000)
    for engine in ("sqlite", "postgresql"):
        if engine == "postgresql" and postgres.find_binaries() is None:
            show("trace on PostgreSQL", "SKIPPED", "it is not installed")
            continue
        started = postgres.running() if engine == "postgresql" else nullcontext()
        with workplace() as folder, started as server:
            address = server.create("bench") if server else f"sqlite:///{folder}/easel.sqlite"
            store = Store(address)
            migrate(store, backup=lambda _revision: None)
            who = person(store)
            add_artifacts(store, who, Kind.FILE_SET, count, lambda i: f"set{i:06}")
            with store.write() as tx:
                first = tx.execute(text("SELECT min(id) FROM artifacts")).scalar_one()
                heads = [
                    {"project_id": who.project_id, "name": f"set{i:06}", "latest": 1} for i in range(count)
                ]
                tx.execute(insert(file_sets), heads)
                empty = {"root": bytes(32), "level": 0, "first": "", "files": 0, "sources": []}
                tx.execute(
                    insert(file_set_versions), [{**empty, "artifact_id": first + i} for i in range(count)]
                )
                # Chains of a thousand, each set made from the two before it: full of diamonds.
                edges = [
                    {
                        "project_id": who.project_id,
                        "source": first + i - back,
                        "target": first + i,
                        "job": None,
                    }
                    for i in range(count)
                    for back in (1, 2)
                    if i % deep >= back
                ]
                tx.execute(insert(lineage), edges)
            with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
                conn.execute(text("ANALYZE"))
            times = []
            for _ in range(10):
                with store.read() as tx:
                    name = f"set{deep - 1:06}"
                    times.append(timed(partial(trace, tx, who, name, TraceDirection.BACKWARD, limit=5000)))
            median = statistics.median(times) * 1000
            show(f"trace {deep} ancestors among {count} ({engine}, target 200 ms)", f"{median:.1f} ms")
            store.close()


PARTS = {"upload": upload, "sets": sets, "search": search, "trace": traces}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peers")
    parser.add_argument("--only", default=",".join(PARTS))
    asked = parser.parse_args()
    print(f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    for name in asked.only.split(","):
        PARTS[name](asked.quick, asked.peers)


if __name__ == "__main__":
    main()
