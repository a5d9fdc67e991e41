"""A command line that is read without Typer means what Typer takes it for; help fits 80 columns and has examples."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from easel.cli import direct, forms, help_page
from easel.cli.declared import NotPlain, Parameter, parameters, read_words
from easel.cli.examples import EXAMPLES
from easel.cli.main import CHECKING, COMMANDS
from easel.cli.main import app as easel

Command = tuple[tuple[str, ...], Any, Any]
SAMPLES = {"TEXT": "-some", "INTEGER": "3", "NUMBER": "0.75", "PATH": "pyproject.toml"}


def part_of(name: str) -> typer.Typer:
    entry = COMMANDS[name]
    part: typer.Typer = getattr(import_module(entry.module), entry.attribute)
    return part


def commands() -> Iterator[Command]:
    """Every command: how it is called, its function, and what Typer makes of it."""
    for name in COMMANDS:
        part = part_of(name)
        forms.offer_forms(part)
        yield from _within((name,), part, get_command(part))


def _within(path: tuple[str, ...], part: typer.Typer, built: Any) -> Iterator[Command]:
    inner = getattr(built, "commands", None)
    if inner is None:
        yield path, part.registered_commands[0].callback, built
        return
    for each in part.registered_commands:
        called = direct._name(each)
        yield (*path, called), each.callback, inner[called]
    for group in part.registered_groups:
        assert group.typer_instance is not None
        yield from _within((*path, str(group.name)), group.typer_instance, inner[str(group.name)])


ALL = list(commands())
PLAIN = [each for each in ALL if each[0][0] not in ("import", "export")]


def sample(parameter: Parameter) -> str:
    if parameter.kind.startswith("["):
        return parameter.kind.strip("[]").split("|")[0]
    return SAMPLES[parameter.kind]


def ways(known: list[Parameter]) -> Iterator[list[str]]:
    """Command lines: nothing that may be left out, each option by itself in each spelling, and all of them."""
    places = [sample(each).lstrip("-") for each in known if not each.is_option]
    needed = [w for each in known if each.is_option and each.required for w in (each.names[0], sample(each))]
    yield [*needed, *places]
    whole = []
    for each in known:
        for flag in (*each.names, *each.off):
            given = [flag] if each.is_flag else [flag, sample(each)]
            yield [*needed, *given, *places]
            whole += given if flag == (*each.names, *each.off)[0] else []
            if not each.is_flag and flag.startswith("--"):
                yield [*places, *needed, f"{flag}={sample(each)}"]
            if each.several:
                yield [*needed, *given, *given, *places]
    yield [*whole, "--", *places]


@pytest.mark.parametrize("command", PLAIN, ids=lambda each: " ".join(each[0]))
def test_words_mean_what_typer_takes_them_for(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in os.environ if each.startswith("EASEL_")]:
        monkeypatch.delenv(name)
    path, callback, built = command
    known = parameters(callback)
    for words in ways(known):
        try:
            ours = read_words(known, words, {})
        except NotPlain:  # a sample out of a parameter's limits: it is Typer that says so
            continue
        theirs = built.make_context(path[-1], list(words)).params
        # Of an option that takes several, none given: Typer hands the function None in place of this.
        assert ours == {name: None if value == () else value for name, value in theirs.items()}, words


@pytest.mark.parametrize("command", PLAIN, ids=lambda each: " ".join(each[0]))
def test_every_command_is_found_and_its_help_fits_80_columns(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    path, callback, _ = command
    found = direct.find(part_of(path[0]), path[0], path[1:])
    assert found is not None
    assert found.path == path
    assert found.run is callback
    shown = help_page.of_command(path, callback).splitlines()
    assert max(map(len, shown)) <= 80
    assert shown[0].startswith(f"easel {' '.join(path)}")


@pytest.mark.parametrize("command", ALL, ids=lambda each: " ".join(each[0]))
def test_every_list_has_json_csv_and_watch(command: Command) -> None:
    path, _, built = command
    options = {flag for each in built.params for flag in each.opts}
    if "--json" in options:
        assert "--csv" in options
    if path[-1] in forms.LISTS:
        assert {"--json", "--csv", "--watch"} <= options


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["rm"], "rm [OPTIONS] REF"),
        (["jobs", "show"], "jobs show [OPTIONS] JOB"),
        (["infer"], "infer [OPTIONS] APP OBJECTS…"),
        (["trace", "a", "b"], "trace [OPTIONS] [REF]"),
    ],
)
def test_a_mistake_is_told_with_the_names_of_our_help(words: list[str], told: str) -> None:
    done = CliRunner().invoke(easel, words, env={"COLUMNS": "100"})
    assert done.exit_code == 2
    assert told in done.output
    assert "{" not in done.output


@pytest.mark.parametrize(
    "words",
    [["--nothing"], ["-x"], ["a", "b"], ["--limit"], ["--limit", "x"], ["--limit=x"], ["--json=1"]],
)
def test_mistakes_are_left_to_typer(words: list[str]) -> None:
    found = direct.find(part_of("jobs"), "jobs", ["ls", *words])
    assert found is not None
    with pytest.raises(NotPlain):
        read_words(parameters(found.run), found.words, {})


def test_a_variable_stands_in_for_an_option_that_is_left_out() -> None:
    found = direct.find(part_of("jobs"), "jobs", ["ls"])
    assert found is not None
    known = parameters(found.run)
    assert read_words(known, [], {"EASEL_PROJECT": "astro"})["project"] == "astro"
    assert read_words(known, ["-p", "bio"], {"EASEL_PROJECT": "astro"})["project"] == "bio"


def test_examples_are_command_lines_that_are_understood() -> None:
    groups = {path[:-1] for path, _, _ in ALL if len(path) > 1}
    called = {path for path, _, _ in ALL} | groups
    assert {tuple(path.split()) for path in EXAMPLES} <= called
    for path, lines in EXAMPLES.items():
        for line in lines:
            easel, name, *words = takewhile(lambda word: word not in ("<", ">"), shlex.split(line))
            assert easel == "easel"
            assert line.startswith(f"easel {path}"), line
            found = direct.find(part_of(name), name, words)
            assert found is not None, line
            read_words(parameters(found.run), found.words, {})
            assert len(line) < 79


def test_every_command_stands_under_one_heading() -> None:
    listed = [name for names in help_page.SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(COMMANDS)


def test_the_first_screen_is_a_dozen_commands_or_so_and_says_how_to_see_all() -> None:
    listed = {name: entry.help for name, entry in COMMANDS.items()}
    names = [name for some in help_page.FIRST.values() for name in some]
    assert set(names) <= set(listed)
    assert len(names) == len(set(names)) <= 18
    screen = help_page.first_screen(listed, "Easel.").splitlines()
    assert len(screen) <= 34
    assert max(map(len, screen)) <= 80
    assert f"the other {len(listed) - len(names)} commands" in screen[-1]


def easel_says(*words: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "easel.cli.main", *words], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_a_mistyped_command_is_answered_with_those_like_it() -> None:
    code, told = easel_says("lern")
    assert (code, "did you mean learn" in told) == (2, True)
    assert "did you mean" not in easel_says("xyzzy")[1]


def test_help_is_a_command_too() -> None:
    assert easel_says("help", "all") == easel_says("--help")
    assert easel_says("help", "jobs", "ls") == easel_says("jobs", "ls", "--help")


@pytest.mark.parametrize(
    "words", [["--help"], [], ["jobs", "--help"], ["jobs"], ["jobs", "ls", "--help"], ["jobs", "bogus"]]
)
def test_help_and_mistakes_end_with_the_usual_codes(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "easel.cli.main", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == (0 if "--help" in words else 2)
    assert "easel" in done.stdout + done.stderr


def test_only_commands_that_start_server_parts_use_checking_models() -> None:
    for name, entry in COMMANDS.items():
        source = Path(str(import_module(entry.module).__file__)).read_text()
        if any(f"from easel.{part}" in source for part in ("serve", "flow", "store")):
            assert name in CHECKING, f"{name} uses the server's own parts: name it in CHECKING"


def test_a_list_is_printed_without_pydantic_typer_commands_or_httpx() -> None:
    code = (
        "import sys; sys.argv = ['easel', 'jobs', 'ls']; from easel.cli.main import main; code = main();"
        "print(code, [m for m in ('pydantic', 'httpx', 'rich') if m in sys.modules])"
    )
    environment = {
        "EASEL_SERVER": "http://127.0.0.1:1",
        "EASEL_TOKEN": "x",
        "EASEL_PROJECT": "p",
        "PYTHONPATH": "src",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout.strip() == "6 []", done.stderr
