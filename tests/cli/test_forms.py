"""`--csv` and `--watch`: every command that prints JSON prints CSV, every list can be watched."""

from __future__ import annotations

import csv
import io
from types import SimpleNamespace

import pytest
import typer
from pydantic import BaseModel
from typer.testing import CliRunner

from easel.cli import apps, output
from easel.cli.forms import offer_forms
from easel.cli.output import AsJson, show_list


class Row(BaseModel):
    name: str
    note: str | None = None
    value: float = 0.0


@pytest.fixture
def app() -> typer.Typer:
    made = typer.Typer()

    @made.command("ls")
    def ls(as_json: AsJson = False) -> None:
        rows = [Row(name="a,b", value=0.25), Row(name="=1+1", note="x", value=-2.0)]
        columns = [("name", lambda r: r.name), ("note", lambda r: r.note), ("value", lambda r: r.value)]
        show_list(rows, columns, as_json, "nothing")

    @made.command("other")
    def other() -> None:
        print("plain")

    offer_forms(made)
    offer_forms(made)  # loading a part twice gives its options once
    return made


def test_a_list_is_printed_as_csv_that_no_spreadsheet_runs(app: typer.Typer) -> None:
    done = CliRunner().invoke(app, ["ls", "--csv"], catch_exceptions=False)
    assert list(csv.reader(io.StringIO(done.stdout))) == [
        ["name", "note", "value"],
        ["a,b", "", "0.25"],
        ["'=1+1", "x", "-2.0"],
    ]


def test_csv_is_chosen_for_one_call_only(app: typer.Typer) -> None:
    CliRunner().invoke(app, ["ls", "--csv"])
    assert CliRunner().invoke(app, ["ls"]).stdout.startswith("name")
    assert not output.chosen.as_csv


def test_only_lists_are_watched_and_only_what_has_json_has_csv(app: typer.Typer) -> None:
    assert "--watch" in CliRunner().invoke(app, ["ls", "--help"], env={"COLUMNS": "200"}).output
    other = CliRunner().invoke(app, ["other", "--help"], env={"COLUMNS": "200"}).output
    assert "--csv" not in other
    assert "--watch" not in other


def test_watching_shows_the_list_again(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("easel.cli.forms.time.sleep", pause)
    done = CliRunner().invoke(app, ["ls", "--watch", "2"])
    assert pauses == [2.0, 2.0, 2.0]
    assert done.stdout.count("a,b") == 3


def test_deleting_an_app_at_a_terminal_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apps, "connect", lambda project: pytest.fail("nothing is deleted before the answer"))
    monkeypatch.setattr(apps, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    done = CliRunner().invoke(apps.app, ["rm", "flowers"], input="n\n")
    assert "Delete the app flowers and end its trials?" in done.output
    assert done.exit_code == 1
