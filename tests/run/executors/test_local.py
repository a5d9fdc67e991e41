"""This machine as an executor: the suite, with and without sandbox."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from easel.clock import SystemClock
from easel.declare.job import Trial
from easel.declare.resources import Resources, Room
from easel.records.attempt import EndReason
from easel.run import landlock
from easel.run.entries import ResultTold
from easel.run.executors.base import Executor
from easel.run.executors.local import LocalExecutor
from easel.run.order import Order
from easel.run.sandbox import probe
from easel.run.worker_config import WorkerConfig
from easel.testing.executor import ExecutorSuite, Listener, Make, clean, order, sh


def local(home: Path, *, sandbox: bool, unsandboxed: bool = False, gpus: int = 0) -> Iterator[Make]:
    """One worker for many tests."""
    made: list[LocalExecutor] = []

    def make(name: str) -> Executor:
        config = WorkerConfig(
            home,
            name,
            Room(2.0, 2048, (1.0,) * gpus),
            str(home / "blobs"),
            ("easel.testing.trials",),
            sandbox=sandbox,
            unsandboxed=unsandboxed,
        )
        executor = LocalExecutor(config, SystemClock(), lambda: None)
        made.append(executor)
        return executor

    yield make
    for executor in reversed(made):
        executor.close(stop=executor is made[0])


@pytest.fixture(scope="module")
def sandboxed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    if probe() is None:
        pytest.skip("bubblewrap does not work here: apt install bubblewrap")
    yield from local(tmp_path_factory.mktemp("home"), sandbox=True)


@pytest.fixture(scope="module")
def unguarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Make]:
    yield from local(tmp_path_factory.mktemp("home"), sandbox=False, unsandboxed=True)


class TestSandboxed(ExecutorSuite):
    @pytest.fixture
    def make(self, sandboxed: Make) -> Iterator[Make]:
        yield sandboxed
        clean(sandboxed("a"))

    def test_a_command_sees_neither_the_platform_nor_other_jobs_nor_the_network(
        self, make: Make, tmp_path: Path
    ) -> None:
        (tmp_path / "secret.txt").write_text("of another project")
        executor = make("a")
        assert isinstance(executor, LocalExecutor)
        heard = Listener(executor)
        script = (
            f"cat {tmp_path}/secret.txt; ls {executor.config.home}/run; cat /etc/shadow; touch /usr/x; "
            "ls /proc | grep -c '^[0-9]'; cat /proc/net/dev | grep -c eth; echo end"
        )
        heard.executor.start(sh("j", script))
        heard.ended("j.1")
        log = heard.log("j.1").decode()
        assert "of another project" not in log
        assert log.count("No such file") == 3
        assert "Read-only file system" in log
        processes = int(next(line for line in log.splitlines() if line.isdigit()))
        assert processes < 10

    def test_the_input_cannot_be_written(self, make: Make) -> None:
        heard = Listener(make("a"))
        heard.executor.start(sh("j", "echo x > input/new && echo wrote"))
        heard.failed("j.1")
        assert b"wrote" not in heard.log("j.1")


class TestOpen(ExecutorSuite):
    @pytest.fixture
    def make(self, unguarded: Make) -> Iterator[Make]:
        yield unguarded
        clean(unguarded("a"))

    def test_an_admin_is_warned(self, make: Make) -> None:
        executor = make("a")
        assert isinstance(executor, LocalExecutor)
        assert Listener(executor).connected().notes["sandbox"] == "False"
        log = executor.config.home / "run" / "worker.log"
        assert "WITHOUT a sandbox" in log.read_text()


def test_a_device_without_a_sandbox_runs_no_code_of_users(tmp_path: Path) -> None:
    for make in local(tmp_path / "home", sandbox=False):
        heard = Listener(make("a"))
        heard.executor.start(sh("j", "echo ran"))
        end = heard.failed("j.1")
        assert end.final
        assert "has no sandbox" in end.reason
        assert heard.log("j.1") == b""


def pried(home: Path, *, sandbox: bool) -> list[str]:
    """What a trial got at that is not its own: the platform's key, another's files, a port of this machine."""
    other = home / "run" / "checkpoints" / "other"
    for folder in (other, home / "blobs" / "objects" / "ab"):
        folder.mkdir(parents=True)
    files = [home / "signing.key", other / "secret", home / "blobs" / "objects" / "ab" / "abcd"]
    for file in files:
        file.write_text("secret")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        arguments = {
            "files": [*map(str, files), "/etc/shadow"],
            "folders": [str(home), str(other), str(home / "blobs")],
            "port": listener.getsockname()[1],
        }
        for make in local(home, sandbox=sandbox):
            heard = Listener(make("a"))
            run = Trial("easel.testing.trials:pry", arguments)
            heard.executor.start(Order("j", 1, "prj", run, resources=Resources(0.5, 512)))
            heard.done("j.1")
            (told,) = [body for body in heard.bodies("j.1") if isinstance(body, ResultTold)]
    return list(told.value["got"])


def test_a_trial_sees_nothing_but_its_own_and_reaches_nobody(tmp_path: Path) -> None:
    if not landlock.available():
        pytest.skip("this kernel has no Landlock (5.19 or newer, lsm=landlock)")
    assert pried(tmp_path / "home", sandbox=True) == []


WITHOUT_LANDLOCK = """
import ctypes, struct, sys
libc = ctypes.CDLL(None)
# a kernel without it: landlock_create_ruleset (444) answers ENOSYS to this process and all its children
program = b"".join(struct.pack("HBBI", *each) for each in [
    (0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50000 | 38), (0x06, 0, 0, 0x7FFF0000)])
code = ctypes.create_string_buffer(program, len(program))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, struct.pack("@HxxxxxxQ", 4, ctypes.addressof(code)), 0, 0) == 0
from pathlib import Path
from tests.run.executors.test_local import trial_without_landlock
trial_without_landlock(Path(sys.argv[1]), unsandboxed=sys.argv[2] == "understood")
"""


def trial_without_landlock(home: Path, *, unsandboxed: bool) -> None:
    """Runs in a process of its own: prints what became of a trial where the kernel has no Landlock."""
    assert not landlock.available()
    for make in local(home, sandbox=True, unsandboxed=unsandboxed):
        heard = Listener(make("a"))
        heard.executor.start(
            Order("j", 1, "prj", Trial("easel.testing.trials:noop", {}), resources=Resources(0.5, 512))
        )
        if unsandboxed:
            heard.done("j.1")
            print("done")
        else:
            end = heard.failed("j.1")
            print(end.final, end.end.value, end.reason)


@pytest.mark.parametrize("said", ["nothing", "understood"])
def test_without_landlock_no_trial_runs_unless_an_admin_said_so(tmp_path: Path, said: str) -> None:
    argv = [sys.executable, "-c", WITHOUT_LANDLOCK, str(tmp_path / "home"), said]
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": f"{root / 'src'}:{root}"}
    ran = subprocess.run(argv, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    if said == "understood":
        assert ran.stdout == "done\n"
    else:
        assert ran.stdout.startswith("True refused this machine cannot wall in trials"), ran.stdout


def test_without_walls_the_same_trial_gets_at_all_of_it(tmp_path: Path) -> None:
    got = pried(tmp_path / "home", sandbox=False)
    assert "connected" in got
    assert sum(each.startswith(("read", "wrote")) for each in got) >= 6


# bubblewrap writes its complaint in pieces; this one makes sure that they are read one by one.
SLOW_SPEAKER = """#!/bin/sh
case "$*" in *no-such-program*)
    printf 'bwrap: execvp no-such-program' >&2
    sleep 0.3
    echo ': No such file or directory' >&2
    exit 1 ;;
esac
exec {bwrap} "$@"
"""


def test_what_the_sandbox_says_in_pieces_is_one_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bwrap = probe()
    if bwrap is None:
        pytest.skip("bubblewrap does not work here: apt install bubblewrap")
    with tempfile.TemporaryDirectory() as programs:  # not tmp_path: a job's user must be able to enter it
        Path(programs).chmod(0o755)
        slow = Path(programs) / "bwrap"
        slow.write_text(SLOW_SPEAKER.format(bwrap=bwrap))
        slow.chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        for make in local(tmp_path / "home", sandbox=True):
            heard = Listener(make("a"))
            heard.executor.start(order("j", "no-such-program"))
            end = heard.failed("j.1")
            said = "execvp no-such-program: No such file or directory"
            assert end.reason == f"the command cannot be started: {said}"
            assert end.final
            assert end.end is EndReason.CANNOT_START
