"""`easel run -- python train.py --epochs 5`: a command becomes a job."""

from __future__ import annotations

import itertools
import json
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from easel.cli.connect import connect
from easel.cli.jobs import by_tags, finish
from easel.cli.notebooks import check_notebook, give_parameters, is_notebook
from easel.cli.output import AsJson, InProject, say, show_list
from easel.declare.counted import counted
from easel.errors import InvalidInput
from easel.sdk.code import NoCode, is_folder

if TYPE_CHECKING:
    from easel.sdk.client import Client
    from easel.sdk.jobs import JobHandle

run_app = typer.Typer()
SYSTEM = "system/"
"""How the series begin that Easel measures itself."""
LOOKED_AT = 5
"""So many jobs of an array are asked for the names of what they measured."""


@run_app.command(context_settings={"ignore_unknown_options": True})
def run(
    command: Annotated[list[str] | None, typer.Argument(help="The command, after --")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="A YAML job file")] = None,
    name: Annotated[str | None, typer.Option(help="The job's name")] = None,
    code: Annotated[
        str | None, typer.Option(help="Folder, file set, file of the lake or git+URL@REV; else this folder")
    ] = None,
    no_code: Annotated[bool, typer.Option("--no-code", help="Send nothing of this folder along")] = False,
    input_set: Annotated[str | None, typer.Option("--input", help="File set to read")] = None,
    output_set: Annotated[
        str | None, typer.Option("--output", help="File set that the output becomes")
    ] = None,
    output_folder: Annotated[str | None, typer.Option(help="Folder in which the output is left")] = None,
    vcpu: Annotated[float | None, typer.Option(help="vCPU, in halves")] = None,
    memory_mb: Annotated[int | None, typer.Option("--memory", help="Memory in MB")] = None,
    gpus: Annotated[float | None, typer.Option(help="GPUs, or a share of one")] = None,
    gpu_memory: Annotated[
        float | None, typer.Option(help="A share of a GPU with so many GB of memory, in place of --gpus")
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Devices that run it side by side")] = None,
    on: Annotated[
        list[str] | None,
        typer.Option("--on", help="NAME=VALUE: a label that its device must have, repeatable"),
    ] = None,
    preemptible: Annotated[
        bool | None,
        typer.Option(
            "--preemptible",
            help="May be stopped for somebody with a better claim, and goes on from EASEL_CHECKPOINT",
        ),
    ] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds after which it is stopped")] = None,
    retries: Annotated[int | None, typer.Option(help="Repeats after a failure of the job")] = None,
    env: Annotated[list[str] | None, typer.Option("--env", "-e", help="NAME=VALUE, repeatable")] = None,
    secret: Annotated[list[str] | None, typer.Option(help="NAME=SECRET of the project, repeatable")] = None,
    network: Annotated[bool, typer.Option(help="Let the command use the network")] = False,
    python: Annotated[
        str | None, typer.Option(help="Version (3.12), or interpreter or environment there")
    ] = None,
    image: Annotated[str | None, typer.Option(help="Container image to run in")] = None,
    requirements: Annotated[
        str | None,
        typer.Option(help="File of the code that names packages; none: the device's own, whatever is there"),
    ] = None,
    tag: Annotated[list[str] | None, typer.Option(help="KEY=VALUE, repeatable")] = None,
    notify: Annotated[
        bool, typer.Option("--notify", help="Tell me by all my channels (`easel messages`) when it ends")
    ] = False,
    after: Annotated[list[str] | None, typer.Option(help="A job that must finish first, repeatable")] = None,
    array: Annotated[
        list[str] | None,
        typer.Option(help="lr=0.1,0.01: one job for each value, {lr} in the command; several combine"),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("-P", help="NAME=VALUE for a notebook; a file set NAME:VERSION becomes its input"),
    ] = None,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Do not follow the log")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """Run a command as a job and follow its log; exits as the job does."""
    if command and command[0].startswith("-"):
        raise InvalidInput(f"easel run has no option {command[0]}: see easel run --help")
    fields = job_file(file) if file else {}
    if command and is_notebook(command):
        fields["run"] = {"kind": "notebook", "path": command[0], "parameters": {}}
    elif command:
        fields["run"] = {"kind": "command", "argv": command}
    if "run" not in fields:
        raise InvalidInput("what shall run? easel run -- python train.py, or --file job.yaml")
    given = {
        "name": name,
        "code": code,
        "input": input_set,
        "output_set": output_set,
        "output_folder": output_folder,
        "time_limit_s": time_limit,
        "workers": workers,
        "preemptible": preemptible,
    }
    fields |= {key: value for key, value in given.items() if value is not None}
    _merge(fields, "resources", {"vcpu": vcpu, "memory_mb": memory_mb, "gpus": gpus})
    _merge(fields, "wants", _pairs(on))
    _merge(fields, "retry", {"failed": retries})
    _merge(
        fields,
        "environment",
        {"python": python, "image": image, "network": network or None, "requirements": requirements},
    )
    _merge(fields, "tags", {key: _number(value) for key, value in _pairs(tag).items()})
    if notify:
        _merge(fields, "tags", {"notify": "yes"})
    environment = fields.setdefault("environment", {})
    _merge(environment, "variables", _pairs(env))
    _merge(environment, "secrets", _pairs(secret))
    fields.setdefault("name", _name(fields["run"]))
    what = fields.pop("run")
    if parameter:
        if what["kind"] != "notebook":
            raise InvalidInput("-P sets parameters of a notebook: easel run train.ipynb -P lr=0.1")
        give_parameters(what, fields, _pairs(parameter))
    if no_code and code is not None:
        raise InvalidInput("--code and --no-code exclude each other: give one of them")
    if no_code:
        fields["code"] = None
    elif code is not None and Path(code).is_dir() and not is_folder(code):
        say(f"--code {code} is the file set of that name; for the folder here write --code ./{code}")
    if after:
        fields["after"] = after
    if what["kind"] == "notebook" and "code" not in fields and Path(what["path"]).is_file():
        check_notebook(Path(what["path"]))
    with connect(project) as client:
        if gpu_memory is not None:
            if gpus is not None:
                raise InvalidInput("give --gpus or --gpu-memory, not both: memory becomes a share of a GPU")
            _merge(fields, "resources", {"gpus": client.queues.gpu_share(gpu_memory)})
        if notify and not client.messages.channels():
            raise InvalidInput(
                "you have no channel by which to be told: `easel messages add mail you@example.org`"
            )
        if array:
            raise typer.Exit(_run_array(client, what, fields, array, detach))
        job = _submit(client, what, fields)
        _tell_left_out(job.left_out)
        if detach:
            print(json.dumps(job.about.model_dump(mode="json"), indent=2) if as_json else job.id)
            return
        say(f"Job {job.id} is queued. Ctrl-C stops following, not the job.")
        raise typer.Exit(finish(job, as_json))


def _submit(client: Client, run: dict[str, Any], fields: dict[str, Any]) -> JobHandle:
    command = run.get("argv")
    if run["kind"] == "notebook":
        fields = {**fields, "notebook": run["path"], "parameters": run.get("parameters")}
    if run["kind"] == "entry":
        fields = {**fields, "entry": run["target"], "arguments": run.get("arguments")}
    if "code" in fields:
        return client.jobs.submit(command, **fields)
    try:
        return client.jobs.submit(command, code=".", **fields)
    except NoCode:  # an empty folder: nothing was asked to go along
        return client.jobs.submit(command, **fields)


def _run_array(
    client: Client, run: dict[str, Any], fields: dict[str, Any], array: list[str], detach: bool
) -> int:
    """One job for each combination of values, all tagged with them and with one group; 1 where any fails."""
    if run["kind"] != "command":
        raise InvalidInput("--array fills the {names} of a command: give one after --")
    choices = {name: values.split(",") for name, values in _pairs(array).items()}
    text = " ".join(run["argv"])
    unused = next((name for name in choices if f"{{{name}}}" not in text), None)
    if unused is not None:
        raise InvalidInput(
            f"the command does not use --array {unused}: write {{{unused}}} where it takes the value"
        )
    group = f"array-{secrets.token_hex(4)}"
    started = []
    for values in itertools.product(*choices.values()):
        point = dict(zip(choices, values, strict=True))
        argv = [_filled(part, point) for part in run["argv"]]
        tags = {**fields.get("tags", {}), **{k: _number(v) for k, v in point.items()}, "group": group}
        named = f"{fields['name'][:60]} {' '.join(f'{k}={v}' for k, v in point.items())}"[:100]
        each = {**fields, "tags": tags, "name": named.replace("/", "-")}
        job = _submit(client, {"kind": "command", "argv": argv}, each)
        fields.setdefault("code", job.about.code_set)  # all run the very same code
        fields.setdefault("origin", job.origin)
        started.append(job)
        print(job.id) if detach else say(f"Job {job.id}: {named}")
    say(
        f'{counted(len(started), "job")}: easel jobs ls --where "group = {group}" --columns {",".join(choices)}'
    )
    if detach:
        return 0
    ended = [job.wait(check=False) for job in started]
    for job in ended:
        if job.state != "finished":
            say(f"{job.about.name}: {job.state}{f', {job.about.reason}' if job.about.reason else ''}")
    _show_measured(client, group, list(choices), ended)
    return 0 if all(job.state == "finished" for job in ended) else 1


def _show_measured(client: Client, group: str, varied: list[str], ended: Sequence[JobHandle]) -> None:
    """Prints a table of what the jobs of a group were given and what they measured last, as they were submitted."""
    measured = dict.fromkeys(
        name for job in ended[:LOOKED_AT] for name in job.metrics() if not name.startswith(SYSTEM)
    )
    found = list(client.lake.find("job", f"group = {group}"))
    show_list(found[::-1], by_tags([*varied, *measured]), False, "No jobs.")


def _filled(text: str, point: dict[str, str]) -> str:
    for name, value in point.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _tell_left_out(left_out: Sequence[str]) -> None:
    for each in left_out[:5]:
        say(f"Left out of the code: {each}")
    if len(left_out) > 5:
        say(f"Left out of the code: {len(left_out) - 5} more")


def job_file(path: Path) -> dict[str, Any]:
    """The fields of a YAML job file: those of the API, with `command` as text or list for short."""
    from easel.wire.job import job_fields

    return job_fields(read_yaml(path))


def read_yaml(path: Path) -> dict[str, Any]:
    import yaml

    try:
        fields = yaml.safe_load(path.read_text())
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error
    except yaml.YAMLError as error:
        raise InvalidInput(f"{path} is not YAML: {error}") from error
    if not isinstance(fields, dict):
        raise InvalidInput(f"{path} must hold fields such as `command: python train.py`")
    return fields


def _merge(fields: dict[str, Any], name: str, given: dict[str, Any]) -> None:
    """What was given on the command line wins over the file."""
    found = {key: value for key, value in given.items() if value is not None}
    if found:
        fields[name] = {**fields.get(name, {}), **found}


def _pairs(given: list[str] | None) -> dict[str, str]:
    pairs = [text.partition("=") for text in given or []]
    wrong = next((name for name, equals, _ in pairs if not equals), None)
    if wrong is not None:
        raise InvalidInput(f"{wrong!r} is not of the form NAME=VALUE")
    return {name: value for name, _, value in pairs}


def _number(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _name(run: dict[str, Any]) -> str:
    text = run.get("target") or run.get("path") or " ".join(map(_last_part, run.get("argv", ())))
    return "".join(c for c in text if c.isprintable() and c not in "/\\")[:60].strip() or "job"


def _last_part(word: str) -> str:
    """Returns a path's last part, for a name has no slashes; words with blanks, such as programs, stay as they are."""
    return word if any(c.isspace() for c in word) else word.rstrip("/").rpartition("/")[2] or word
