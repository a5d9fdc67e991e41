"""A job laid out in a local folder: its code, its input, and a script that runs the same command."""

from __future__ import annotations

import json
import shlex
import zipfile
from collections.abc import Mapping
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from easel.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from easel.sdk.client import Client
    from easel.wire import job as wire

SCRIPT = "reproduce.sh"
RECORD = "job.json"
LOCKED, OWN = "requirements.locked.txt", ".environment"
"""What its packages were locked to, and the folder into which the script installs them."""
RUNNER, CALL, CELLS = ".easel-notebook.py", ".easel-call.json", ".easel-cells.jsonl"
"""What runs a notebook, as in a job, what it is called with, and what it says of each cell."""


def reproduce(client: Client, job: wire.Job, folder: Path) -> Path:
    """Fetch the very versions that the job ran on into an empty or new folder; returns the script to run."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} is not empty: name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    if job.code_set is not None:
        _fetch_code(client, job.code_set, folder)
    for name in (job.spec.get("origin") or {}).get("executable", ()):
        path = folder / name
        if path.is_file() and path.resolve().is_relative_to(folder.resolve()):
            path.chmod(0o755)
    if job.input_set is not None:
        client.lake.download(f"/@{job.input_set}", folder / "input")
    (folder / RECORD).write_text(json.dumps(job.model_dump(mode="json"), indent=2) + "\n")
    if job.spec["run"]["kind"] == "notebook":
        _lay_out_runner(folder, job.spec["run"])
    environment = _environment(client, job)
    if environment is not None:
        (folder / LOCKED).write_text("\n".join(environment.packages) + "\n")
    script = folder / SCRIPT
    script.write_text(script_of(job, environment))
    script.chmod(0o755)
    return script


def _environment(client: Client, job: wire.Job) -> wire.LockedEnvironment | None:
    """Returns what its requirements were locked to, where it named any."""
    if not (job.spec.get("environment") or {}).get("requirements"):
        return None
    try:
        return client.jobs.get(job.id).environment()
    except NotFound:
        return None


def _lay_out_runner(folder: Path, run: Mapping[str, Any]) -> None:
    """Lays out what runs a notebook in a job, and what it was called with."""
    runner = resources.files("easel").joinpath("run", "notebook_runner.py")
    (folder / RUNNER).write_text(runner.read_text(encoding="utf-8"), encoding="utf-8")
    call = {name: run[name] for name in ("path", "parameters", "first")}
    (folder / CALL).write_text(json.dumps(call, indent=2) + "\n")


def _fetch_code(client: Client, reference: str, folder: Path) -> None:
    """Fetches the code as the job sees it: packed folders as they were, other sets without shared folders."""
    if reference.startswith("/"):
        (file,) = client.lake.download(reference, folder)
        if file.suffix == ".zip":
            with zipfile.ZipFile(file) as archive:
                archive.extractall(folder)
        return
    paths = [PurePosixPath(item.path) for item in client.lake.ls(f"/@{reference}", recursive=True)]
    packed = PurePosixPath("/code") / reference.partition(":")[0]
    root = packed if all(path.is_relative_to(packed) for path in paths) else _common(paths)
    client.lake.download(f"{root}/@{reference}" if root.name else f"/@{reference}", folder)


def _common(paths: list[PurePosixPath]) -> PurePosixPath:
    root = paths[0].parent
    while not all(path.is_relative_to(root) for path in paths):
        root = root.parent
    return root


def script_of(job: wire.Job, locked: wire.LockedEnvironment | None = None) -> str:
    """A shell script with the job's variables and command; secrets are named, not known."""
    spec: Mapping[str, Any] = job.spec
    environment = spec.get("environment") or {}
    output = spec["output_folder"]
    lines = ["#!/bin/sh", f"# Runs what job {job.id} ran, on the same code and input.", "set -e"]
    lines += ['cd "$(dirname "$0")"', f"mkdir -p input {shlex.quote(output)}"]
    lines += [
        f"export {name}={shlex.quote(value)}"
        for name, value in sorted(environment.get("variables", {}).items())
    ]
    # In full, for what runs in another folder: a notebook does in its own.
    lines += ['export EASEL_INPUT="$PWD/input"', f'export EASEL_OUTPUT="$PWD/"{shlex.quote(output)}']
    lines += [
        f"# export {name}=…  (the secret {secret} of the project)"
        for name, secret in sorted(environment.get("secrets", {}).items())
    ]
    if locked is not None:
        lines += _environment_lines(locked)
    if environment.get("image"):
        lines.append(f"# It ran in the container image {environment['image']}.")
    return "\n".join([*lines, _command(spec["run"])]) + "\n"


def _environment_lines(locked: wire.LockedEnvironment) -> list[str]:
    """What makes the same environment here, once; what the Python here has besides stays in sight (`import easel`)."""
    minor = ".".join(locked.python.split(".")[:2])
    return [
        f"# It ran with Python {locked.python} and the packages of {LOCKED}.",
        f"if [ ! -e {OWN}/complete ]; then",
        f"  python=$(command -v python{minor} || command -v python3)",
        f'  "$python" -m venv --system-site-packages {OWN}',
        f"  {OWN}/bin/python -m pip install --quiet -r {LOCKED}",
        f"  touch {OWN}/complete",
        "fi",
        f'PATH="$PWD/{OWN}/bin:$PATH"; export PATH',
    ]


def _command(run: Mapping[str, Any]) -> str:
    if run["kind"] == "command":
        return f"exec {shlex.join(run['argv'])}"
    if run["kind"] == "notebook":
        needs = "# It needs nbclient and ipykernel: pip install nbclient ipykernel"
        return f"{needs}\nrm -f {CELLS}\nexec python {RUNNER} {CALL}"
    module, _, name = run["target"].partition(":")
    call = f"print({name}(**json.loads({json.dumps(run['arguments'])!r})))"
    text = f"import json, sys; sys.path.insert(0, '.'); from {module} import {name}; {call}"
    return f"exec python -c {shlex.quote(text)}"
