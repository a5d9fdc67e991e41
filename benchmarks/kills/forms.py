"""The forms of an installation that are killed: one machine, or servers, controllers and workers apart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from benchmarks.kills.parts import Installation, Part, free_port
from easel.sdk.client import Client
from easel.testing import postgres, s3
from easel.testing import ray as ray_testing
from easel.testing import slurm as slurm_testing
from easel.testing.ending import end_orderly_when_told

FORMS = ("sqlite", "postgres", "s3", "ray", "slurm")
COMMON = {
    "EASEL_CONTROLLER_LEASE_S": "2",
    "EASEL_WORKER_VCPU": "8",
    "EASEL_WORKER_MEMORY_MB": "4096",
    "EASEL_WORKER_LOST_AFTER_S": "15",
    "EASEL_MAX_ACTIVE_JOBS": "24",
    "EASEL_KEEP_WARM_S": "10",
}


@contextmanager
def installed(form: str, folder: Path, *, trials: bool) -> Iterator[Installation]:
    """Everything of the form, up and answering; ended with the context."""
    end_orderly_when_told()
    folder.mkdir(parents=True, exist_ok=True)
    home = folder / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    common = {**COMMON, "EASEL_HOME": str(home), "EASEL_WARM_TRIALS": "true" if trials else "false"}
    with ExitStack() as stack:
        url = f"sqlite:///{home}/easel.sqlite"
        if form == "postgres":
            url = stack.enter_context(postgres.running()).create("easel")
            common |= {"EASEL_DATABASE_URL": url, "EASEL_EXECUTOR": "remote"}
        if form == "s3":
            common |= _bucket(stack)
        if form == "ray":
            cluster = stack.enter_context(ray_testing.running())
            common |= {"EASEL_EXECUTOR": "ray", "EASEL_RAY_ADDRESS": cluster.address, **cluster.variables}
        if form == "slurm":
            cluster_ = stack.enter_context(slurm_testing.running())
            common |= {"EASEL_EXECUTOR": "slurm", **cluster_.variables}
        made = Installation(folder, url, [], folder / "admin-token")
        made.engine_starts_workers = form in ("ray", "slurm")
        _servers(made, common, 2 if form == "postgres" else 1)
        common["EASEL_PUBLIC_URL"] = made.addresses[0]
        own = ["--own-worker"] if form in ("sqlite", "s3") else []
        for number in range(2):
            log = folder / f"controller-{number}.log"
            made.parts.append(Part(f"controller-{number}", "controller", ["controller", *own], common, log))
        if own:
            made.homes.append(home)
        began = time.monotonic()
        stack.callback(made.stop)
        made.start()
        for address in made.addresses:
            _until_ready(address)
        made.grown_up_s = max(5.0, 2.0 * (time.monotonic() - began))
        if form == "postgres":
            _workers(made, common)
        yield made


def _bucket(stack: ExitStack) -> dict[str, str]:
    server = s3.S3Server()
    server.start()
    stack.callback(server.stop)
    bucket = s3.new_bucket(server.endpoint)
    return {
        "EASEL_BLOBS_URL": bucket.url,
        "EASEL_S3_ENDPOINT": bucket.endpoint,
        "EASEL_S3_ACCESS_KEY": s3.KEY,
        "EASEL_S3_SECRET_KEY": s3.KEY,
    }


def _servers(made: Installation, common: dict[str, str], count: int) -> None:
    for number in range(count):
        port = free_port()
        made.addresses.append(f"http://127.0.0.1:{port}")
        words = ["serve", "--port", str(port), "--token-file", str(made.token_file)]
        log = made.folder / f"server-{number}.log"
        public = {"EASEL_PUBLIC_URL": made.addresses[0]}  # one address for all, also for workers of an engine
        made.parts.append(Part(f"server-{number}", "server", words, {**common, **public}, log))


def _workers(made: Installation, common: dict[str, str]) -> None:
    """Two machines, each joined at another server."""
    with client_of(made) as client:
        secret = client.worker_tokens.create("kills").secret
    assert secret is not None
    for number, address in enumerate(made.addresses):
        name, own = f"box-{number}", made.folder / f"box-{number}"
        words = ["worker", "--server", address, "--name", name, "--home", str(own)]
        words += ["--vcpu", "8", "--memory-mb", "4096"]
        variables = {"EASEL_TOKEN": secret, "EASEL_WARM_TRIALS": common["EASEL_WARM_TRIALS"]}
        made.homes.append(own)
        made.add(Part(name, "worker", words, variables, made.folder / f"{name}.log"))


def client_of(made: Installation, server: int = 0, attempts: int = 20) -> Client:
    token = made.token_file.read_text().strip()
    return Client(made.addresses[server % len(made.addresses)], token, attempts=attempts)


def _until_ready(address: str) -> None:
    limit = time.monotonic() + 180
    while time.monotonic() < limit:
        try:
            if httpx.get(f"{address}/readyz", timeout=2).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise RuntimeError(f"the server at {address} was not ready within three minutes")
