"""What commands tell about a job and an app: sentences and units, no fields of the API, in 80 columns."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
import typer

from easel.cli import output
from easel.cli.app_words import about_template, notes_of, sentence_of, who_answered
from easel.cli.app_words import facts_of as app_facts
from easel.cli.apps import rm
from easel.cli.events import called, what_told
from easel.cli.infer import _beside, _names_of
from easel.cli.job_words import facts_of as job_facts
from easel.cli.jobs import order_told, output_of, packages_hint, told_output
from easel.cli.output import show_one, show_table
from easel.cli.plain import Ago, Lasting, Size
from easel.cli.studies import EXAMPLE, _recommend, measured, studies_in
from easel.declare.parse import parse_program
from easel.errors import NotFound
from easel.match.templates import match_program
from easel.sdk.jobs import JobHandle
from easel.wire.app import Answers, App, BestModel, Fed, Refused
from easel.wire.event import Event
from easel.wire.job import Job, Usage
from easel.wire.lake import FileSet
from easel.wire.study import BudgetUse, Recommendation, Study, study_fields
from easel.wire.terms import Terms

INDENT = len("examples") + 2
NOON = datetime(2026, 11, 18, 12, 0, tzinfo=UTC)
JOB = Job(
    id="job_01m7nhwf00vb9zh4c8prg6pzhm",
    name="train",
    state="failed",
    user_id="usr_1",
    kind="command",
    spec={
        "run": {"kind": "command", "argv": ["python", "train.py", "--name", "two words"]},
        "resources": {"vcpu": 1.0, "memory_mb": 1024, "gpus": 0.5},
        "environment": {"variables": {}, "network": False},
        "origin": {"commit": "0123456789abcdef", "branch": "main", "changed": True},
    },
    attempt=1,
    kill_requested=False,
    exit_code=2,
    reason="exit code 2",
    result=None,
    usage=Usage(cpu_seconds=0.09, peak_memory_mb=14.8, wall_seconds=0.75),
    progress=None,
    input_set=None,
    output_set=None,
    parent_id=None,
    pipeline_id=None,
    device="local",
    user="ana",
    last_line="ValueError: no such rate",
    submitted_at=NOON,
    started_at=NOON,
    ended_at=NOON,
)
APP = App(
    id="app_1",
    name="cells",
    program="{input: {[image :: Tensor[?, ?, 3]], []}, output: {[label :: Category[round, square, star]], []}}",
    template="image classification",
    metric="accuracy",
    created_at=NOON,
    examples=120,
    switched_off=3,
    trials=7,
    running=[],
    best=BestModel(
        candidate="svm(C=3)",
        model="cells-model:1",
        quality=0.95,
        shown=0.93,
        baseline=0.3,
        low=0.9,
        high=0.96,
    ),
    last_improvement_at=NOON,
    why=None,
    status="exhausted",
    waiting="is done: nothing that could be tried is expected to be better",
    terms=Terms(weight=2, deadline=None, budget=None, until=0.99, paused=True),
)


def test_a_job_is_told_as_one_would_say_it() -> None:
    told = dict(job_facts(JOB))
    assert told["state"] == "failed: exit code 2"
    assert told["last line"] == "ValueError: no such rate"
    assert told["command"] == "python train.py --name 'two words'"
    assert told["asks for"] == "1 vCPU, 1 GB, 0.5 of a GPU"
    assert told["used"] == "0.8 s, 0.1 s of processor, at most 15 MB"
    assert told["commit"] == "0123456789ab on main with changes"
    assert not {"output", "waits", "rerun of", "attempt"} & set(told), "what is not there is not told"


def test_an_app_is_told_in_sentences_and_words_are_never_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    show_one(APP, False, app_facts)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 60
    assert "0.930 (0.900 to 0.960) by svm(C=3)" in " ".join(lines)
    given = {word for _, value in app_facts(APP) for word in str(value).split()}
    shown = {word for line in lines for word in line[INDENT:].split()}
    assert shown <= given, "a line ends between two words"
    assert "weight 2, enough at 0.99, paused" in dict(app_facts(APP))["terms"]
    assert sentence_of(APP).startswith(
        "cells (image classification; always giving the same answer scores 0.300)"
    )


def test_whoever_asks_hears_the_score_that_is_shown_and_that_a_model_is_no_good() -> None:
    """Chosen by the same examples it scored 0.95; everything shows 0.93."""
    assert APP.best is not None
    found = Answers(answers=[], candidate="svm(C=3)", model="cells-model:1", quality=0.95, notes=[])
    told = "svm(C=3) (cells-model:1), validation score 0.930 (0.900 to 0.960)"
    assert who_answered(found, APP.best) == told
    useless = APP.best.model_copy(update={"baseline": 0.92, "error": 0.02})
    assert who_answered(found, useless) == (
        f"{told}: no better than always giving the same answer, which scores 0.920"
    )
    better = APP.best.model_copy(update={"model": "cells-model:2"})
    assert who_answered(found, better) == (
        "svm(C=3) (cells-model:1); by now cells-model:2 answers, validation score 0.930 (0.900 to 0.960)"
    )


def test_a_job_that_lacked_a_package_is_told_how_to_name_it() -> None:
    told = packages_hint("ModuleNotFoundError: No module named 'sklearn.svm'")
    assert "requirements.txt" in told
    assert "has sklearn there" in told
    assert packages_hint("ValueError: 3") == packages_hint("") == ""


def test_an_event_is_told_once_by_name_and_without_ids_of_others() -> None:
    known = {"seq": 3, "at": NOON, "actor": None, "project_id": None}
    body = {"name": "ana", "role": "admin", "user": "usr_01m7v6tgapa535wmgp2c4x8y9z"}
    event = Event.model_validate({**known, "kind": "user.created", "subject": "usr_1", "body": body})
    assert (called(event), what_told(event)) == ("ana", "role=admin")


def test_a_sorted_list_says_which_end_comes_first() -> None:
    assert order_told("accuracy") == "The least accuracy first; the largest first: --sort -accuracy"
    assert order_told("-loss").startswith("The largest loss first")


def test_what_is_remarked_on_at_a_feed_is_told_by_every_command_that_feeds() -> None:
    refused = [Refused(pair=3, why="size: expected a number"), Refused(pair=0, why="is torn", file="a.png")]
    fed = Fed(new=2, known=0, total=2, refused=refused, notes=["a column is always the same"])
    assert notes_of(fed) == [
        "left out: pair 3: size: expected a number",
        "left out: is torn",
        "note: a column is always the same",
    ]
    many = Fed(new=0, known=0, total=0, refused=[Refused(pair=k, why="is torn") for k in range(12)], notes=[])
    assert notes_of(many)[9:] == ["left out: pair 9: is torn", "and 2 more like these"]


def test_a_program_that_fits_no_template_is_warned_of() -> None:
    text = parse_program("{input: {[question :: Text], []}, output: {[answer :: Text], []}}")
    table = parse_program("{input: {[a :: Number], []}, output: {[Category[no, yes]], []}}")
    assert "bit by bit" in (about_template(match_program(text).name) or "")
    assert about_template(match_program(table).name) is None


def test_deleting_an_app_asks_where_somebody_is_there_to_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    with pytest.raises(typer.Abort):
        rm("cells")
    assert "Delete the app cells" in capsys.readouterr().out


def test_people_read_units_and_spreadsheets_read_numbers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = [Size(3 * 10**9), Lasting(7200.0), Lasting(None), Ago(NOON)]
    show_table(["size", "takes", "took", "made"], [row])
    told = capsys.readouterr().out
    assert "3.0 GB" in told
    assert "2.0 h" in told
    assert "ago" in told
    monkeypatch.setattr(output.chosen, "as_csv", True)
    show_table(["size", "takes", "took", "made"], [row])
    assert capsys.readouterr().out.splitlines()[1].startswith(f"{3 * 10**9},7200.0,,20")


def test_a_point_that_will_not_meet_the_constraints_is_not_called_better(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for probability in (2e-28, 0.97):
        point = Recommendation(point={"width": 8}, predicted={}, probability=probability, observed=None)
        _recommend(point, "USD")
    hopeless, hopeful = capsys.readouterr().err.split("predicted to be better")
    assert "predicted to come nearest: width=8" in hopeless
    assert "not expected to meet the constraints: less than 0.1 % probable" in hopeless
    assert "meets the constraints with 97 % probability" in hopeful


@pytest.mark.parametrize(("kind", "unit"), [("cost", "CHF"), ("time", "seconds"), ("count", "points")])
def test_what_a_study_has_spent_is_told_with_its_unit(kind: str, unit: str) -> None:
    spent = dict(studies_in("CHF"))["spent"]
    assert (
        spent(Study.model_construct(budget=BudgetUse(kind=kind, amount=5, spent=1.25))) == f"1.25 of 5 {unit}"
    )


def test_what_a_point_measured_has_its_units_and_no_powers_of_ten() -> None:
    values = {"accuracy": 0.94519, "time": 1.182, "cost": 4.45e-06, "f1": None}
    assert measured(values, "USD") == "accuracy 0.9452, time 1.2 s, cost 0.000004 USD"


def test_who_wrote_their_results_elsewhere_is_told_where_they_are_kept() -> None:
    kept = FileSet.model_construct(name="job_1-output", version=1, files=0, bytes=0)
    assert "only what lies in the folder output/" in told_output("job_1-output:1", kept)
    assert told_output("model:2", kept.model_copy(update={"files": 1, "bytes": 1500})) == (
        "Output: model:2, 1 file, 1.5 kB"
    )


def test_a_job_whose_output_a_grant_hides_has_finished_all_the_same() -> None:
    class Hidden:
        def output(self) -> FileSet:
            raise NotFound("there is no file set job_1-output:1")

    assert output_of(cast(JobHandle, Hidden())) is None


def test_an_event_names_what_it_happened_to() -> None:
    made = {"seq": 1, "at": NOON, "kind": "user.created", "project_id": None, "actor": None, "body": {}}
    assert called(Event.model_validate({**made, "subject": "usr_1", "body": {"name": "ana"}})) == "ana"
    assert called(Event.model_validate({**made, "subject": "job_1", "subject_name": "train"})) == "train"
    assert called(Event.model_validate({**made, "subject": "tok_1"})) == "tok_1"


def test_the_study_to_begin_with_is_one() -> None:
    asked = study_fields(EXAMPLE)
    assert asked.name == "tune"
    assert asked.job.code == "."


def test_answers_about_several_files_are_named(tmp_path: Path) -> None:
    for name in ("one.png", "two.png", "rows.csv"):
        (tmp_path / name).write_text("a\n1\n2\n")
    one, two, rows = (str(tmp_path / name) for name in ("one.png", "two.png", "rows.csv"))
    assert _names_of(one, 1, always=False) == []
    assert _names_of(str(tmp_path), 2, always=False) == ["one.png", "two.png"]
    assert _names_of(one, 1, always=True) == ["one.png"]
    assert _names_of(rows, 2, always=True) == ["rows-0001", "rows-0002"]
    assert _beside([one, two], ["one.png", "two.png"], [], 2) == [{"file": "one.png"}, {"file": "two.png"}]
    assert _beside([rows], ["x", "y"], [{"a": "1"}, {"a": "2"}], 2) == [{"a": "1"}, {"a": "2"}]
    assert _beside(['{"a": 1}'], ['{"a": 1}'], [], 1) == []
