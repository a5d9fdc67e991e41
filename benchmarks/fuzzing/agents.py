"""Hostile jobs for a whole installation, while `benchmarks.fuzz` asks its own server: no agent may die of what a job leaves or says.

Each job runs once in the sandbox of a real worker: code that is a broken archive, result files, output names, links, pipes and
log lines that no honest job would write. Every job has to end, after one attempt, with a reason that is not its agent's death,
and the server has to show it, its logs and its project's list without a 5xx.
"""

from __future__ import annotations

import base64
import io
import json
import random
import shlex
import tempfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.kills.forms import client_of
from benchmarks.kills.parts import Installation, Part, free_port
from easel.errors import EaselError
from easel.run.result import NAME
from easel.sdk.client import Client

PROJECT = "hostile"
RESOURCES = {"vcpu": 0.5, "memory_mb": 256}
EVERY_S = 2.0
WAITING = 8
"""More jobs than this are not left waiting."""
DEATHS = ("agent-died", "worker-died", "unknown-there", "not-understood")


class HostileJobs:
    """A server with its own worker, and a thread that keeps giving it jobs. `find` is told what must not happen."""

    def __init__(self, seed: int, value: Callable[[], Any], find: Callable[[str], None]) -> None:
        self._rng, self._value, self._find = random.Random(seed), value, find
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hostile-jobs")
        self._open: dict[str, str] = {}
        self.calls: Counter[str] = Counter()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Waits for what is still running."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with tempfile.TemporaryDirectory() as name:
                self._serve(Path(name))
        except Exception as error:
            self._find(f"hostile jobs: {type(error).__name__}: {str(error)[:300]}")

    def _serve(self, folder: Path) -> None:
        made = Installation(folder, "", [f"http://127.0.0.1:{free_port()}"], folder / "admin-token")
        (folder / "home").mkdir(mode=0o700)
        made.homes.append(folder / "home")
        words = ["up", "--port", made.addresses[0].rpartition(":")[2], "--token-file", str(made.token_file)]
        variables = {"EASEL_HOME": str(folder / "home"), "EASEL_WARM_TRIALS": "false"}
        made.parts.append(Part("server", "server", words, variables, folder / "server.log"))
        made.start()
        try:
            with _ready(made) as root:
                root.projects.create(PROJECT)
                client = root.in_project(PROJECT)
                while not self._stopping.wait(EVERY_S):
                    self._look(client)
                    if len(self._open) < WAITING:
                        self._submit(client, folder)
                limit = time.monotonic() + 300
                while self._open and time.monotonic() < limit:
                    self._look(client)
                    time.sleep(1.0)
                for job, what in self._open.items():
                    self._find(f"job {job} did not end: {what}")
                if "Traceback" in made.parts[0].log.read_text(errors="replace"):
                    self._find(
                        f"the server of the hostile jobs raised:\n{made.parts[0].log.read_text(errors='replace')[-3000:]}"
                    )
        finally:
            made.stop()

    def _submit(self, client: Client, folder: Path) -> None:
        kind, script = self._script()
        code = None
        if self._rng.random() < 0.3:
            kind, code = f"{kind}, broken code", f"/code{sum(self.calls.values())}.zip"
            (folder / code[1:]).write_bytes(_broken_zip(self._rng))
            client.lake.upload(folder / code[1:], "/")
        try:
            job = client.jobs.submit(script, code=code, resources=RESOURCES, time_limit_s=60)
        except EaselError:
            self.calls["hostile jobs refused"] += 1
        else:
            self._open[job.id] = f"{kind}: {script[:300]}"
            self.calls[f"hostile job: {kind}"] += 1

    def _script(self) -> tuple[str, str]:
        rng = self._rng
        text = json.dumps(self._value())
        match rng.randrange(6):
            case 0:
                return "result file", f"{_told(rng.choice([text, text[: len(text) // 2]]).encode())} > {NAME}"
            case 1:
                deep = "[" * rng.choice([100, 10_000, 500_000])
                return "deep or huge result file", rng.choice(
                    [
                        f"truncate -s {rng.choice(['2M', '20M', '1G'])} {NAME}",
                        f"head -c {len(deep)} /dev/zero | tr '\\0' '[' > {NAME}",
                        f"ln -s /etc/passwd {NAME}",
                        f"mkfifo {NAME}",
                        f"mkdir {NAME}",
                    ]
                )
            case 2:
                name = "".join(
                    chr(rng.choice([rng.randrange(1, 128), rng.randrange(0x2FFF)])) for _ in range(9)
                )
                raw = rng.choice([name.encode("utf-8", "replace"), rng.randbytes(12)])
                safe = bytes(byte for byte in raw if byte not in (0, 0x2F)) or b"x"
                return "output name", f'n=$({_told(safe)}); echo 1 > "$EASEL_OUTPUT/$n"'
            case 3:
                return "outputs that are no files", rng.choice(
                    [
                        "ln -s / $EASEL_OUTPUT/root; ln -s loop $EASEL_OUTPUT/loop",
                        "mkfifo $EASEL_OUTPUT/pipe",
                        "d=$EASEL_OUTPUT; for i in $(seq 60); do d=$d/a; done; mkdir -p $d; echo 1 > $d/f",
                        "mkdir -m 0 $EASEL_OUTPUT/closed; echo 1 > $EASEL_OUTPUT/f; chmod 0 $EASEL_OUTPUT/f",
                        "for i in $(seq 500); do : > $EASEL_OUTPUT/$i; done",
                        "truncate -s 3G $EASEL_OUTPUT/sparse",
                        "rm -rf $EASEL_OUTPUT; echo 1 > $EASEL_OUTPUT",
                    ]
                )
            case 4:
                lines = [
                    f"[EASEL_{rng.choice(['METRIC', 'TAG', 'PROGRESS', 'X'])}] {self._value()}".encode(
                        "utf-8", "replace"
                    )
                    for _ in range(8)
                ]
                return "log lines", _told(b"\n".join([*lines, rng.randbytes(300)]))
            case _:
                return "endings", rng.choice(
                    [
                        "kill -9 $$",
                        "kill -9 -1",
                        "exec >&- 2>&-; exit 3",
                        "(setsid sleep 600 &) ; exit 0",
                        "head -c 3000000 /dev/urandom",
                        "head -c 5000000 /dev/zero | tr '\\0' 'x'",
                        "yes | head -n 200000",
                        "exit 255",
                        "rm -rf ./* ./.* /tmp/* 2>/dev/null; cd /; exit 0",
                    ]
                )

    def _look(self, client: Client) -> None:
        for job in list(self._open):
            found = client.jobs.get(job)
            if not found.about.over:
                continue
            what = self._open.pop(job)
            self.calls[f"hostile jobs {found.state}"] += 1
            attempts = found.attempts()
            said = " ".join(each.model_dump_json() for each in [found.about, *attempts])
            if len(attempts) > 1 or any(f'"{death}"' in said for death in DEATHS) or "agent died" in said:
                self._find(f"hostile job {job} ({what}): {said[:600]}")
            found.tail()
            list(client.jobs.list(limit=50))


def _told(data: bytes) -> str:
    """A piece of shell that writes these bytes."""
    return f"echo {shlex.quote(base64.b64encode(data).decode())} | base64 -d"


def _broken_zip(rng: random.Random) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(
        memory, "w", rng.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
    ) as made:
        for name in ("train.py", rng.choice(["../out", "/abs", "a/b", "x" * 200, "a\x01"])):
            made.writestr(name, rng.randbytes(rng.randrange(1, 5000)))
    data = bytearray(memory.getvalue())
    for _ in range(rng.randrange(8)):
        data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data[: rng.choice([len(data), rng.randrange(1, len(data))])])


def _ready(made: Installation) -> Client:
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        if made.token_file.exists() and made.token_file.read_text().strip():
            client = client_of(made)
            try:
                client.projects.list()
            except EaselError:
                client.close()
            else:
                return client
        time.sleep(0.2)
    raise RuntimeError("the server of the hostile jobs was not ready within two minutes")
