"""Every known way out of the sandbox, tried on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from easel.run import sandbox, seccomp
from easel.run.sandbox import UserProgram, Walls, probe, start
from easel.testing import sandbox_escapes
from easel.testing.escape_scripts import WAYS
from easel.testing.sandbox_escapes import Way, try_all


@pytest.fixture(scope="module")
def tried() -> dict[str, Way]:
    bwrap = probe()
    if bwrap is None:
        pytest.skip("bubblewrap does not work here: apt install bubblewrap")
    return {way.name: way for way in try_all(bwrap)}


def test_at_least_forty_ways_are_tried_and_all_are_closed(tried: dict[str, Way]) -> None:
    assert len(tried) >= 100
    assert {name: way.said for name, way in tried.items() if not way.closed} == {}


def test_the_programs_do_find_a_way_out_where_there_are_no_walls(tmp_path: Path) -> None:
    """A suite that could not fail would prove nothing."""
    with sandbox_escapes.lay_bait(tmp_path) as bait:
        script = sandbox_escapes.script_of(
            ["the platform's home by its name", "a port on the host's loopback"]
        )
        said = subprocess.run(
            [sys.executable, "-c", script.replace("/job/bait.json", "bait.json")],
            cwd=sandbox_escapes.laid_out(tmp_path, bait),
            capture_output=True,
            text=True,
            check=False,
        ).stdout
    assert said.count('"code": 2') == 2, said


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_filter_is_a_whole_number_of_instructions_that_a_kernel_takes(machine: str) -> None:
    program = seccomp.program(machine)
    assert program is not None
    assert len(program) % 8 == 0
    assert len(program) // 8 < 4096
    assert seccomp.program("a-new-machine") is None


def test_ordinary_programs_notice_nothing_of_the_filter(tmp_path: Path) -> None:
    bwrap = probe()
    if bwrap is None:
        pytest.skip("bubblewrap does not work here: apt install bubblewrap")
    for name in ("work", "tmp"):
        (tmp_path / name).mkdir()
    script = (
        "import threading, subprocess, socket, multiprocessing as m, tempfile, os\n"
        "t = threading.Thread(target=print, args=('thread',)); t.start(); t.join()\n"
        "print(subprocess.run(['echo', 'child'], capture_output=True, text=True).stdout.strip())\n"
        "with m.get_context('fork').Pool(2) as p: print(p.map(abs, [-1, -2]))\n"
        "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); socket.create_connection(s.getsockname())\n"
        "open(tempfile.mktemp(), 'w').write('x'); os.chmod('.', 0o755); print(os.getlogin and 'end')\n"
    )
    walls = Walls(tmp_path / "work", tmp_path / "tmp", None)
    program = UserProgram("plain", ["/usr/bin/python3", "-c", script], {"PATH": "/usr/bin:/bin"}, walls)
    process = start(bwrap, program)
    said, complaint = process.communicate(timeout=60)
    assert said.decode().split("\n")[:4] == ["thread", "child", "[1, 2]", "end"], complaint


def test_an_environment_that_is_a_link_in_a_folder_shown_already_is_shown_where_the_link_leads(
    tmp_path: Path,
) -> None:
    """Nothing can be mounted on a link: as long as it was tried, no job ran."""
    bwrap = probe()
    if bwrap is None:
        pytest.skip("bubblewrap does not work here: apt install bubblewrap")
    for name in ("work", "tmp", "checkout", "environment"):
        (tmp_path / name).mkdir()
    (tmp_path / "environment" / "word").write_text("found")
    link = tmp_path / "checkout" / ".venv"
    link.symlink_to(tmp_path / "environment")
    walls = Walls(tmp_path / "work", tmp_path / "tmp", None, interpreters=(link, tmp_path / "checkout"))
    program = UserProgram("link", ["/bin/cat", str(link / "word")], {"PATH": "/usr/bin:/bin"}, walls)
    assert start(bwrap, program).communicate(timeout=60) == (b"found", b"")


def test_a_device_of_the_machine_is_there_for_a_job_that_was_given_it(tmp_path: Path) -> None:
    """Nothing can be put into a folder that is read-only already: so no job with a GPU started."""
    bwrap = probe()
    if bwrap is None:
        pytest.skip("bubblewrap does not work here: apt install bubblewrap")
    for name in ("work", "tmp"):
        (tmp_path / name).mkdir()
    given, missing = Path("/dev/kmsg"), Path("/dev/nvidia99")
    walls = Walls(tmp_path / "work", tmp_path / "tmp", None, devices=(given, missing))
    script = "test -c /dev/kmsg && echo there; touch /dev/new 2>&1 || echo no other"
    program = UserProgram("device", ["/bin/sh", "-c", script], {"PATH": "/usr/bin:/bin"}, walls)
    said, complaint = start(bwrap, program).communicate(timeout=60)
    assert (said.split(b"\n")[0], said.split(b"\n")[-2]) == (b"there", b"no other"), complaint


@pytest.mark.parametrize("told", [b'{"child-pid": 1}', b'{"child-p', b""])
def test_a_sandbox_that_died_before_its_network_was_led_to_is_left_to_say_why_itself(
    tmp_path: Path, told: bytes
) -> None:
    """An agent that failed of it called it a broken pipe, and hid what bubblewrap had said."""
    walls = Walls(tmp_path, tmp_path, None)
    for ended in (True, False):
        gate = sandbox._Gate()
        os.write(gate.info_write, told)
        os.close(gate.info_write)
        os.close(gate.block_read)
        with subprocess.Popen(["true" if ended else "cat"], stdin=subprocess.PIPE) as process:
            if ended or not told:
                gate.open(process, walls, lambda _: False)
            else:
                with pytest.raises((BrokenPipeError, ValueError)):
                    gate.open(process, walls, lambda _: False)


def test_what_a_first_process_left_running_has_ended_when_it_has(tmp_path: Path) -> None:
    """Whoever goes on with the files of such a program need not fear that somebody changes them meanwhile."""
    bwrap = probe()
    if bwrap is None:
        pytest.skip("bubblewrap does not work here: apt install bubblewrap")
    for name in ("work", "tmp"):
        (tmp_path / name).mkdir()
    walls = Walls(tmp_path / "work", tmp_path / "tmp", None, is_first=True)
    argv = ["/bin/sh", "-c", "for i in $(seq 100); do (while :; do :; done) & done; exit 3"]
    program = UserProgram("leaves", argv, {"PATH": "/usr/bin:/bin"}, walls)
    with start(bwrap, program, stderr=subprocess.DEVNULL) as process:
        assert process.wait(60) == 3
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        assert process.stdout.read() == b"", "somebody still holds the other end"


def test_each_way_has_its_own_name() -> None:
    assert len({name.lower() for name in WAYS}) == len(WAYS)
