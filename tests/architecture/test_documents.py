"""Documents cannot lie: every module, command, option, setting, file and link that they name exists."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import typer

from easel.cli.main import ALIASES, COMMANDS, app
from easel.serve.settings import Settings

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")]
    if path.name != "CHANGELOG.md" and "reference" not in path.parts
)
OTHER_VARIABLES = {
    # of tests, benchmarks and jobs, which are not settings of a server
    *("EASEL_DATA", "EASEL_TEST_WORKERS", "EASEL_HOME", "EASEL_SERVER", "EASEL_TOKEN", "EASEL_PROJECT"),
    *("EASEL_IMAGE", "EASEL_HOST"),
}
SOURCE = "\n".join(
    path.read_text()
    for path in (*(ROOT / "src").rglob("*.py"), *(ROOT / "scripts").iterdir())
    if path.is_file()
)
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


def _known_modules(dotted: str) -> bool:
    """Returns whether `dotted` is a module, or a name inside one."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            spec = importlib.util.find_spec(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        if spec is None:
            continue
        if length == len(parts):
            return True
        module: Any = importlib.import_module(".".join(parts[:length]))
        for name in parts[length:]:
            if not hasattr(module, name):
                return False
            module = getattr(module, name)
        return True
    return False


@each_page
def test_every_module_that_is_named_exists(page: Path) -> None:
    text = page.read_text()
    named = set(re.findall(r"`(?:python -m )?(easel(?:\.[a-zA-Z_]+)+)(?=[`(:\s])", text))
    named |= {f"{module}.{name}" for module, name in re.findall(r'"(easel(?:\.\w+)+):(\w+)"', text)}
    for module, names in re.findall(r"^from (easel(?:\.\w+)*) import ([\w, ]+)", text, re.MULTILINE):
        named |= {f"{module}.{name.strip().split(' as ')[0]}" for name in names.split(",")}
    assert [name for name in sorted(named) if not _known_modules(name)] == []


def _command(words: list[str]) -> tuple[Any, list[str]]:
    """Returns the command that the words lead to, and the words that are left."""
    found: Any = typer.main.get_command(app)
    context = found.make_context("easel", [], resilient_parsing=True)
    while words and hasattr(found, "get_command"):
        inner = found.get_command(context, words[0])
        if inner is None:
            return None, words
        found, words = inner, words[1:]
    return found, words


def _options(command: Any) -> set[str]:
    return {name for one in command.params for name in (*one.opts, *one.secondary_opts)} | {"--help"}


CALLS = re.compile(r"(?:^|[`(\s$])easel ((?:[a-z][a-z-]*)(?: [^\n`|;&]*)?)", re.MULTILINE)


@each_page
def test_every_command_and_option_that_is_named_exists(page: Path) -> None:
    wrong = []
    code = [
        *re.findall(r"`([^`\n]+)`", page.read_text()),
        *re.findall(r"```[\w ]*\n(.*?)```", page.read_text(), re.S),
    ]
    for text in code:
        for call in CALLS.findall(text):
            words = re.split(r"\s+", call.split(" -- ")[0].split("#")[0].strip())
            if words[0] == "help":  # `easel help all`, or of a command
                words = words[1:]
                if words in ([], ["all"], ["COMMAND"]):
                    continue
            if words[0] not in COMMANDS:
                if words[0] in ALIASES or re.match(r"^[a-z-]+$", words[0]):
                    wrong.append(call)
                continue
            command, left = _command(words)
            if command is None:
                if re.match(r"^[a-z-]+$", left[0]):
                    wrong.append(call)
                continue
            known = _options(command)
            wrong += [
                f"{call}: {word}"
                for word in left
                for name in re.findall(r"^\[?(--[a-z-]+)", word)
                if name not in known
            ]
    assert wrong == []


@each_page
def test_every_setting_that_is_named_exists(page: Path) -> None:
    known = {f"EASEL_{name.upper()}" for name in Settings.model_fields}
    named = set(re.findall(r"\bEASEL_[A-Z0-9_]+", page.read_text()))
    unknown = {name for name in named - known - OTHER_VARIABLES if name not in SOURCE}
    assert unknown == set()


@each_page
def test_every_file_that_is_named_or_linked_exists(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    folders = "benchmarks|docs|scripts|tests|deploy|web|src/easel|requirements"
    packages = "|".join(sorted(path.name for path in (ROOT / "src" / "easel").iterdir() if path.is_dir()))
    linked = [page.parent / to for to in re.findall(r"\]\(([^)\s#]+)", text) if "://" not in to]
    named = [ROOT / to for to in re.findall(rf"`((?:{folders})/[\w./-]*\w)", text)]
    named += [ROOT / "src" / "easel" / to for to in re.findall(rf"`((?:{packages})/[\w/]+\.py)", text)]
    assert [
        to for to in [*linked, *named] if not to.exists() and not list(to.parent.glob(f"{to.name}*"))
    ] == []


@each_page
def test_every_block_of_code_is_one_that_the_site_shows_as_code(page: Path) -> None:
    """The site takes one word after the fence, and draws no diagrams: those are pictures."""
    told = re.findall(r"^ *```(?=[^`\n]*$)(.*)$", page.read_text(), re.MULTILINE)
    assert [each for each in told if each and (not re.fullmatch(r"[\w-]+", each) or each == "mermaid")] == []


TESTS = re.compile(r"`(?:(tests/[\w/]+\.py)|…)::(\w+)`")


WEB_TESTS = re.compile(r"`(web/src/[\w/]+\.test\.ts)::([^`]+)`")


@each_page
def test_every_test_that_is_named_exists(page: Path) -> None:
    """`…::` stands for the file that was named last."""
    missing, file = [], ""
    for named, test in TESTS.findall(page.read_text()):
        file = named or file
        if not re.search(rf"^ *def {test}\(", (ROOT / file).read_text(), re.MULTILINE):
            missing.append(f"{file}::{test}")
    for named, told in WEB_TESTS.findall(page.read_text()):
        if f'("{told}"' not in (ROOT / named).read_text():
            missing.append(f"{named}::{told}")
    assert missing == []
