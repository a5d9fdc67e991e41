"""Code goes along: the current folder is sent, run, pinned, traced and reproduced, through the command line."""

from __future__ import annotations

import hashlib
import importlib
import json
import linecache
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.run.test_environments import wheel

from easel.errors import EaselError, InvalidInput, NotFound
from easel.sdk.client import Client
from easel.sdk.code import CARRIED_BYTES, DIFF, set_name
from easel.sdk.connection import ask
from easel.testing.commands import run_as
from easel.testing.server import ServerProcess, running
from easel.wire.job import JobFields
from easel.wire.lake import FileSet, Upload
from easel.wire.model import Page

SMALL = ("--vcpu", "0.5", "--memory", "256")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    wheels = tmp_path_factory.mktemp("wheels")
    wheels.chmod(0o755)
    wheel(wheels, "greeting", "1.0", "def main():\n    print('hello')\n")
    with running(tmp_path_factory.mktemp("server"), package_wheels=str(wheels)) as started:
        yield started


@pytest.fixture(scope="module")
def client(server: ServerProcess) -> Client:
    root = server.client()
    root.projects.create("astro")
    return root.in_project("astro")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path: Path, request: pytest.FixtureRequest, cache: Path) -> Path:
    """A small project, with what people have lying about."""
    made = tmp_path / str(request.node.name)[-40:].replace("_", "-")
    made.mkdir()
    (made / "train.py").write_text("from parts.model import name\nprint('trained', name)\n")
    (made / "parts").mkdir()
    (made / "parts" / "model.py").write_text("name = 'mlp'\n")
    (made / ".env").write_text("TOKEN=secret\n")
    (made / ".gitignore").write_text("*.log\n/data/\n")
    (made / "old.log").write_text("noise")
    (made / "data").mkdir()
    (made / "data" / "big.bin").write_bytes(b"x" * 1000)
    return made


def easel(client: Client, cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run_as(client, *arguments, cwd=cwd)


def paths(client: Client, reference: str) -> set[str]:
    return {item.path.split("/", 3)[3] for item in client.lake.ls(f"/@{reference}", recursive=True)}


def git(folder: Path, *arguments: str) -> str:
    named = ["-c", "user.name=Ana", "-c", "user.email=ana@example.org"]
    return subprocess.run(
        ["git", *named, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_the_folder_goes_along_and_what_is_ignored_stays(client: Client, folder: Path) -> None:
    done = easel(client, folder, "run", *SMALL, "--json", "--", "python", "train.py")
    assert done.returncode == 0, done.stderr
    assert "trained mlp" in done.stdout
    about = json.loads(done.stdout[done.stdout.index("{") :])
    assert about["code_set"].endswith(":1")
    assert paths(client, about["code_set"]) == {"train.py", "parts/model.py", ".gitignore"}


def test_an_unchanged_folder_makes_no_version_and_one_change_makes_one(client: Client, folder: Path) -> None:
    first = client.jobs.send_code(folder)
    again = client.jobs.send_code(folder)
    assert (again.reference, again.sent) == (first.reference, 0)
    (folder / "train.py").write_text("print('better')\n")
    (folder / "parts" / "model.py").unlink()
    (folder / "parts" / "net.py").write_text("name = 'cnn'\n")
    second = client.jobs.send_code(folder)
    assert second.sent == len("print('better')\n") + len("name = 'cnn'\n")
    changed = {each.path.split("/", 3)[3] for each in client.lake.diff(first.reference, second.reference)}
    assert changed == {"train.py", "parts/model.py", "parts/net.py"}
    assert paths(client, second.reference) == {"train.py", "parts/net.py", ".gitignore"}


@pytest.fixture
def asked(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The requests that the client makes, as METHOD and the end of their path."""
    seen: list[str] = []
    send = client.connection.request

    def noted(method: str, path: str, **more: Any) -> Any:
        seen.append(f"{method} {path.removeprefix(client.root)}")
        return send(method, path, **more)

    monkeypatch.setattr(client.connection, "request", noted)
    return seen


def test_a_small_change_goes_along_with_the_request_that_saves_it(
    client: Client, folder: Path, asked: list[str]
) -> None:
    job = client.jobs.submit(["python", "train.py"], code=folder)
    asked.clear()
    client.jobs.submit(["python", "train.py"], code=folder)
    assert asked == ["POST /jobs"]
    asked.clear()
    (folder / "train.py").write_text("print('better')\n")
    (folder / "empty.py").write_text("")
    changed = client.jobs.submit(["python", "train.py"], code=folder)
    assert asked == ["POST /filesets/code", "POST /jobs"]
    assert changed.about.code_set != job.about.code_set
    assert "better" in [line.text for line in changed.wait().logs()]


def test_a_large_change_is_uploaded(client: Client, folder: Path, asked: list[str]) -> None:
    (folder / "weights.bin").write_bytes(os.urandom(CARRIED_BYTES + 1))
    client.jobs.send_code(folder)
    assert "POST /uploads" in asked
    asked.clear()
    (folder / "weights.bin").write_bytes(os.urandom(100))
    client.jobs.send_code(folder)
    assert asked == ["POST /filesets/code"]


def test_an_older_server_gets_small_changes_as_an_upload(
    client: Client, folder: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    send = client.connection.request

    def older(method: str, path: str, **more: Any) -> Any:
        if (more.get("json") or {}).get("files") and path.endswith("/filesets/code"):
            raise InvalidInput("files: Extra inputs are not permitted")
        return send(method, path, **more)

    monkeypatch.setattr(client.connection, "request", older)
    sent = client.jobs.send_code(folder)
    assert "POST /uploads" in asked
    assert paths(client, sent.reference) == {"train.py", "parts/model.py", ".gitignore"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"files": [{"path": "/code/code-odd/a.py", "content": "no base64!"}]}, "is not base64"),
        ({"files": [{"path": "/elsewhere/a.py", "content": "YQ=="}]}, "lies in /code/code-odd/"),
        ({"files": [{"path": "/code/code-odd/a.py", "content": "YQ=="}] * 2}, "named twice"),
        ({"files": [{"path": "/code/code-odd/a.py", "content": "YQ=="}], "upload": "upl_1"}, "not both"),
        ({"files": [{"path": f"/code/code-odd/{n}.py", "content": "A" * 300_000} for n in range(5)]}, "1 MB"),
    ],
)
def test_small_files_that_cannot_be_code_are_refused_and_leave_nothing(
    client: Client, given: dict[str, Any], said: str
) -> None:
    with pytest.raises(EaselError, match=said):
        client.connection.post(f"{client.root}/filesets/code", {"name": "code-odd", **given}, FileSet)
    assert not client.connection.get(f"{client.root}/uploads", Page[Upload]).items


def test_the_same_request_again_gets_the_same_version_and_leaves_no_upload(client: Client) -> None:
    body = {"name": "code-twice", "files": [{"path": "/code/code-twice/a.py", "content": "YQ=="}]}
    first, again = (
        client.connection.post(f"{client.root}/filesets/code", body, FileSet, "one-key") for _ in range(2)
    )
    assert (first.version, again.version) == (1, 1)
    assert client.lake.cat("/code/code-twice/a.py@code-twice:1") == b"a"
    assert not client.connection.get(f"{client.root}/uploads", Page[Upload]).items


def test_what_was_sent_before_is_found_again(client: Client, folder: Path) -> None:
    first = client.jobs.send_code(folder)
    (folder / "train.py").write_text("print('other')\n")
    second = client.jobs.send_code(folder)
    (folder / "train.py").write_text("from parts.model import name\nprint('trained', name)\n")
    assert client.jobs.send_code(folder).reference == first.reference != second.reference


def test_a_cache_that_is_lost_or_damaged_costs_time_only(client: Client, folder: Path, cache: Path) -> None:
    first = client.jobs.send_code(folder)
    for file in cache.rglob("*.json"):
        file.write_text("{")
    assert client.jobs.send_code(folder).reference == first.reference


def restored(client: Client, server: ServerProcess, folder: Path, cache: Path, versions: int) -> Client:
    """Returns a server that was set back after code of the folder was sent: it has so many versions of other code."""
    for text in ("print('older')\n", "print('old')\n"):
        (folder / "train.py").write_text(text)
        client.jobs.send_code(folder)
    (ours,) = cache.rglob("sent-*.json")
    name = f"restored-{secrets.token_hex(4)}"
    server.client().projects.create(name)
    elsewhere = server.client().in_project(name)
    stand_in = folder.parent / "elsewhere" / folder.name
    stand_in.mkdir(parents=True)
    for n in range(max(versions, 1)):
        (stand_in / "train.py").write_text(f"print('not what was sent: {n}')\n")
        (stand_in / f"more{n}.py").write_text("")
        if versions:
            elsewhere.jobs.send_code(stand_in)
    where = hashlib.sha256(f"{client.server} {name} {set_name(folder, None)}".encode()).hexdigest()[:16]
    ours.rename(ours.with_name(f"sent-{where}.json"))
    return elsewhere


@pytest.mark.parametrize(
    ("versions", "text"), [(0, "old"), (3, "old"), (0, "older"), (1, "older"), (3, "older"), (3, "new")]
)
def test_versions_that_hold_something_else_by_now_are_never_run_or_built_on(
    client: Client, server: ServerProcess, folder: Path, cache: Path, versions: int, text: str
) -> None:
    back = restored(client, server, folder, cache, versions)
    written = f"print({text!r})\n"
    (folder / "train.py").write_text(written)
    job = back.jobs.submit(["python", "train.py"], code=folder)
    assert job.about.code_set is not None
    assert paths(back, job.about.code_set) == {"train.py", "parts/model.py", ".gitignore"}
    ran = back.lake.cat(f"/code/{set_name(folder, None)}/train.py@{job.about.code_set}")
    assert ran.decode() == written
    again = back.jobs.submit(["python", "train.py"], code=folder)
    assert again.about.code_set == job.about.code_set


@pytest.mark.parametrize(("runs", "versions"), [("function", 0), ("function", 3), ("step", 3)])
def test_functions_pipelines_and_studies_notice_it_too(
    client: Client,
    server: ServerProcess,
    folder: Path,
    cache: Path,
    runs: str,
    versions: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder / f"answers{versions}.py").write_text("def answer():\n    return {'value': 42}\n")
    back = restored(client, server, folder, cache, versions)
    if runs == "function":
        monkeypatch.syspath_prepend(str(folder))
        made = back.jobs.submit(importlib.import_module(f"answers{versions}").answer).about.code_set
    else:
        run = {"kind": "command", "argv": ["python", "train.py"]}
        made = back.jobs.with_code(ask(JobFields, run=run, code=str(folder))).code
    assert made is not None
    assert paths(back, made) == {"train.py", "parts/model.py", ".gitignore", f"answers{versions}.py"}


def test_a_function_of_a_notebook_leaves_nothing_in_the_cache(
    client: Client, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)  # as in a notebook
    scope: dict[str, Any] = {"__name__": "__main__"}
    lines = "def nothing():\n    return {}\n"
    linecache.cache["<cell>"] = (len(lines), None, lines.splitlines(keepends=True), "<cell>")
    exec(compile(lines, "<cell>", "exec"), scope)
    client.jobs.submit(scope["nothing"])
    assert not list(cache.rglob("*.json"))


def test_the_commit_and_what_was_not_committed_are_on_record(client: Client, folder: Path) -> None:
    git(folder, "init", "--quiet", "--initial-branch", "topic")
    git(folder, "remote", "add", "origin", "https://ana:hush@example.org/lab/mnist.git")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    (folder / "train.py").write_text("print('not committed')\n")
    done = easel(client, folder, "run", *SMALL, "--detach", "--", "python", "train.py")
    job = client.jobs.get(done.stdout.strip()).wait()
    origin = job.about.spec["origin"]
    assert origin["commit"] == git(folder, "rev-parse", "HEAD")
    assert (origin["branch"], origin["changed"]) == ("topic", True)
    assert origin["remote"] == "https://example.org/lab/mnist.git"
    assert job.about.code_set is not None
    assert job.about.code_set.startswith("code-mnist:")
    diff = client.lake.cat(f"/code/code-mnist/{DIFF}@{job.about.code_set}").decode()
    assert "+print('not committed')" in diff


def test_code_is_traced_both_ways(client: Client, folder: Path) -> None:
    (folder / "train.py").write_text("open('output/model.txt', 'w').write('m')\n")
    job = client.jobs.submit(["python", "train.py"], code=folder, output_set="traced-model").wait()
    assert job.about.code_set is not None
    name = job.about.code_set.partition(":")[0]
    assert name in {node.name for node in client.lake.trace("traced-model").nodes}
    forward = {node.name for node in client.lake.trace(job.about.code_set, forward=True).nodes}
    assert "traced-model" in forward


def test_reproduce_lays_out_code_input_and_command(client: Client, folder: Path, tmp_path: Path) -> None:
    (folder / "words.txt").write_text("to be\n")
    client.lake.upload(folder / "words.txt", "/texts/")
    client.lake.create_file_set("reproduced-words", ["/texts/words.txt"])
    (folder / "train.py").write_text("print(open('input/texts/words.txt').read())\n")
    job = client.jobs.submit(["python", "train.py"], code=folder, input="reproduced-words").wait()
    done = easel(client, tmp_path, "reproduce", job.id, "again")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again" / "parts" / "model.py").is_file()
    ran = subprocess.run(
        ["sh", "reproduce.sh"], cwd=tmp_path / "again", capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "to be"), ran.stderr


def test_a_program_of_the_folder_stays_one(client: Client, folder: Path) -> None:
    (folder / "bin").mkdir()
    (folder / "bin" / "go.sh").write_text("#!/bin/sh\necho gone\n")
    (folder / "bin" / "go.sh").chmod(0o755)
    job = client.jobs.submit(["./bin/go.sh"], code=folder).wait()
    assert [line.text for line in job.logs()] == ["gone"]


def test_sockets_pipes_and_links_that_lead_out_stay_here_and_are_named(
    client: Client, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret.txt").write_text("mine")
    (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "nowhere").symlink_to("missing")
    (folder / "same.py").symlink_to("train.py")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        old = Path.cwd()
        os.chdir(folder)  # a socket's path may not be long
        listening.bind("s")
        os.chdir(old)
        done = easel(client, folder, "run", *SMALL, "--", "sh", "-c", "ls; cat same.py | wc -l")
    assert done.returncode == 0, done.stderr
    for name in ("out.txt", "nowhere", "pipe", "s ("):
        assert f"Left out of the code: {name}" in done.stderr
    assert "same.py" in done.stdout
    assert "out.txt" not in done.stdout


def test_a_folder_that_is_too_large_is_refused_with_a_way_out(client: Client, folder: Path) -> None:
    (folder / "pictures").mkdir()
    with (folder / "pictures" / "all.bin").open("wb") as file:
        file.truncate(30 << 30)  # takes no place on disk
    done = easel(client, folder, "run", "--", "python", "train.py")
    assert done.returncode != 0
    assert "pictures/ 30.0 GB" in done.stderr
    assert ".easelignore" in done.stderr
    (folder / ".easelignore").write_text("pictures/\n")
    done = easel(client, folder, "run", *SMALL, "--", "python", "train.py")
    assert done.returncode == 0, done.stderr


def test_no_code_sends_nothing(client: Client, folder: Path) -> None:
    done = easel(client, folder, "run", *SMALL, "--no-code", "--", "ls", "train.py")
    assert done.returncode == 2
    assert not any(each.name.startswith(f"code-{folder.name}") for each in client.lake.file_sets("code-"))


def test_code_from_git_at_a_revision(client: Client, folder: Path) -> None:
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", "train.py", "parts")
    git(folder, "commit", "--quiet", "-m", "first")
    git(folder, "tag", "v1")
    (folder / "train.py").write_text("print('later')\n")
    git(folder, "commit", "--quiet", "-am", "second")
    done = easel(
        client,
        folder.parent,
        "run",
        *SMALL,
        "--code",
        f"git+file://{folder}@v1",
        "--",
        "python",
        "train.py",
    )
    assert "trained mlp" in done.stdout, done.stderr


def test_a_function_runs_as_a_job_by_its_source(
    client: Client, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "lab" / "sums"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("def add(numbers):\n    return sum(numbers)\n")
    (package / "total.py").write_text(
        "import easel\n"
        "from sums.parts import add\n"
        "def total(numbers):\n    return {'total': add(numbers)}\n"
        "@easel.job(resources={'vcpu': 0.5, 'memory_mb': 256})\n"
        "def doubled(number):\n    return {'value': 2 * number}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "lab"))
    module = importlib.import_module("sums.total")
    job = client.jobs.submit(module.total, arguments={"numbers": [1, 2, 3]}).wait()
    assert job.about.result == {"total": 6}
    assert module.doubled(4) == {"value": 8}
    assert module.doubled.submit_to(client, 4).wait().about.result == {"value": 8}


def test_the_folders_requirements_are_there_and_what_cannot_be_had_is_told(
    client: Client, folder: Path
) -> None:
    (folder / "requirements.txt").write_text("greeting==1.0\n")
    (folder / "train.py").write_text("import easel, greeting\ngreeting.main()\neasel.log_metric('loss', 2)\n")
    job = client.jobs.submit(["python", "train.py"], code=folder).wait()
    text = [line.text for line in job.logs()]
    assert "hello" in text
    assert any("greeting==1.0" in line for line in text)
    assert next(client.lake.find("job", f"name = '{job.id}'")).tags["loss"] == 2.0
    (folder / "requirements.txt").write_text("no-such-package==1\n")
    broken = client.jobs.submit(["python", "train.py"], code=folder).wait(check=False)
    assert (broken.state, broken.about.attempt) == ("failed", 1)
    assert "no-such-package" in (broken.about.reason or "")


def test_requirements_are_locked_once_and_the_lock_is_on_record(
    server: ServerProcess, client: Client, folder: Path, tmp_path: Path
) -> None:
    wheels = Path(server.environment["EASEL_PACKAGE_WHEELS"])
    wheel(wheels, "changing", "1.0", "version = '1.0'\n")
    (folder / "requirements.txt").write_text("changing\n")
    (folder / "train.py").write_text("import changing\nprint('runs', changing.version)\n")
    first = client.jobs.submit(["python", "train.py"], code=folder).wait()
    wheel(wheels, "changing", "2.0", "version = '2.0'\n")
    (folder / "train.py").write_text("import changing\nprint('again', changing.version)\n")
    for kept in (
        server.folder / "home" / "run" / "environments"
    ).iterdir():  # as on a machine that never built it
        shutil.rmtree(kept) if kept.is_dir() else kept.unlink()
    second = client.jobs.submit(["python", "train.py"], code=folder).wait()
    assert [job.environment().packages for job in (first, second)] == [["changing==1.0"]] * 2
    assert first.environment() == second.environment()
    assert "again 1.0" in [line.text for line in second.logs()]
    shown = easel(client, tmp_path, "jobs", "environment", second.id)
    assert shown.stdout == "changing==1.0\n"
    assert easel(client, tmp_path, "reproduce", second.id, "again").returncode == 0
    variables = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    ran = subprocess.run(
        ["sh", "reproduce.sh"],
        cwd=tmp_path / "again",
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "again 1.0"), ran.stderr
    (folder / "requirements.txt").write_text("changing  # the newest\n")
    third = client.jobs.submit(["python", "train.py"], code=folder).wait()
    assert third.environment().packages == ["changing==2.0"]
    with pytest.raises(NotFound, match="no environment of its own"):
        client.jobs.submit("true", code=None).wait().environment()


def test_text_is_run_by_a_shell(client: Client) -> None:
    job = client.jobs.submit("echo one && echo two").wait()
    assert [line.text for line in job.logs()] == ["one", "two"]


def test_pipelines_and_studies_take_the_folder_along_too(
    server: ServerProcess, client: Client, folder: Path
) -> None:
    job = "command: python train.py, code: ., resources: {vcpu: 0.5, memory_mb: 256}"
    (folder / "pipeline.yaml").write_text(f"name: one\nsteps:\n  train: {{{job}}}\n")
    done = easel(client, folder, "pipelines", "run", "pipeline.yaml")
    assert done.returncode == 0, done.stderr
    made = next(iter(client.pipelines.list()))
    (step,) = made.steps
    ran = client.jobs.get(step.job_id)
    assert [line.text for line in ran.logs()] == ["trained mlp"]
    assert ran.about.spec["origin"]["folder"] == str(folder)
    (folder / "train.py").write_text("raise SystemExit(3)")
    assert easel(client, folder, "pipelines", "rerun", made.id).returncode == 0, "the versions are pinned"
    fresh = easel(client, folder, "pipelines", "rerun", made.id, "--no-reuse")
    assert "finished" in fresh.stdout + fresh.stderr, "it waits for the end, as `run` does"
    (folder / "train.py").write_text("print(1)")
    (folder / "study.yaml").write_text(
        "name: rates\njob: {command: \"sh -c 'python train.py; echo [EASEL_METRIC] loss={rate}'\", code: .}\n"
        "space: [{name: rate, type: float, low: 0.1, high: 1}]\n"
        "goal: {minimise: loss, budget: {count: 1}}\nstrategy: random\n"
    )
    found = easel(client, folder, "studies", "run", "study.yaml")
    assert found.returncode == 0, found.stderr
    assert client.studies.get("rates").points["completed"] == 1
