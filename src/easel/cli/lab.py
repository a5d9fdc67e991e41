"""`easel lab`: an interactive session on a device of the pool, reached through Easel's own address."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.connect import connect
from easel.cli.output import InProject, say
from easel.errors import TryLater
from easel.sdk.code import NoCode
from easel.sdk.jobs import JobFailed, JobHandle

if TYPE_CHECKING:
    from easel.sdk.client import Client

lab_app = typer.Typer()
PORT = 8888
_CONFLICT = 409
"""What Easel itself answers for a session that does not run (any more)."""
_KEPT = (
    "find . -mindepth 1 -maxdepth 1 ! -name output ! -name input ! -name '.easel-*' -exec cp -rn {} output/ ';'; "
    "ln -sfn ../input output/input; cd output && "
)
"""What is seen is what is kept: the folder of the session is the job's output."""
PROGRAMS = {
    "lab": _KEPT + "exec python -m jupyterlab --no-browser --allow-root --ip=127.0.0.1 --port=$EASEL_PORT "
    "--ServerApp.base_url=$EASEL_BASE_URL --IdentityProvider.token= --ServerApp.password= "
    "--ServerApp.allow_remote_access=True --ServerApp.root_dir=.",
    "code-server": _KEPT
    + "exec code-server --auth none --disable-telemetry --bind-addr 127.0.0.1:$EASEL_PORT .",
    "bash": _KEPT + "exec sleep infinity",
}


@lab_app.command()
def lab(
    program: Annotated[
        str, typer.Option("--command", help="lab (JupyterLab), code-server, bash, or a command of your own")
    ] = "lab",
    name: Annotated[str | None, typer.Option(help="The session's name")] = None,
    code: Annotated[
        str | None, typer.Option(help="Folder, file set or git+URL@REV; else this folder")
    ] = None,
    no_code: Annotated[bool, typer.Option("--no-code", help="Send nothing of this folder along")] = False,
    input_set: Annotated[str | None, typer.Option("--input", help="File set to read, in input/")] = None,
    output_set: Annotated[
        str | None, typer.Option("--output", help="File set that its folder becomes")
    ] = None,
    vcpu: Annotated[float, typer.Option(help="vCPU, in halves")] = 1.0,
    memory_mb: Annotated[int, typer.Option("--memory", help="Memory in MB")] = 2048,
    gpus: Annotated[float, typer.Option(help="GPUs, or a share of one")] = 0.0,
    network: Annotated[bool, typer.Option(help="Let it use the network")] = False,
    requirements: Annotated[
        str | None, typer.Option(help="File of the code that names packages; none: the device's own")
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not wait until it is open")] = False,
    project: InProject = None,
) -> None:
    """Start an interactive session and say where it is. It is saved and ends when nobody uses it, or when killed."""
    with connect(project) as client:
        job = _submit(
            client,
            PROGRAMS.get(program, f"{_KEPT}{program}"),
            None if no_code else (code or "."),
            name=name or f"session {Path(program.split()[0]).name}",
            input=input_set,
            output_set=output_set,
            environment={"network": network, "requirements": requirements},
            resources={"vcpu": vcpu, "memory_mb": memory_mb, "gpus": gpus},
            port=PORT,
            tags={"session": program.split()[0][:100]},
        )
        say(f"Session {job.id} is queued.")
        if program == "bash":
            _until_running(job)
            say(f"A terminal in it: easel shell {job.id}")
            print(job.id)
            return
        address = f"{client.connection.server.rstrip('/')}/sessions/{job.id}/"
        if not detach:
            _until_open(client, job)
        print(address)


def _submit(client: Client, command: str, code: str | None, **fields: object) -> JobHandle:
    try:
        return client.jobs.submit(command, code=code, **fields)  # type: ignore[arg-type]
    except NoCode:  # an empty folder: nothing was asked to go along
        return client.jobs.submit(command, **fields)  # type: ignore[arg-type]


def _until_running(job: JobHandle) -> None:
    while job.refresh().state != "running":
        if job.about.over:
            raise JobFailed(f"the session {job.state}: {job.about.reason}", job.tail())
        time.sleep(0.1)


def _until_open(client: Client, job: JobHandle, patience_s: float = 120.0) -> None:
    """Waits until its program answers: then the browser will find it."""
    _until_running(job)
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        answer = client.connection.http.get(f"/sessions/{job.id}/", follow_redirects=False)
        if answer.status_code < 500 and answer.status_code != _CONFLICT:
            return
        if job.refresh().about.over:
            raise JobFailed(f"the session {job.state}: {job.about.reason}", job.tail())
        time.sleep(0.2)
    raise TryLater(f"the session's program does not listen on $EASEL_PORT ({PORT}): easel logs {job.id}")
