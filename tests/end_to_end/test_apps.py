"""An app that has a model, as people use it: a real server whose loop learns by itself, the SDK, the command line."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.end_to_end.app_people import TABLE, make_people, write_csv

from easel.errors import NotFound, Unauthenticated
from easel.sdk.client import Client
from easel.testing.commands import environment_of, run_as
from easel.testing.engine import until
from easel.testing.server import ServerProcess, running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="module")
def people(server: ServerProcess) -> dict[str, Client]:
    return make_people(server)


@pytest.fixture(scope="module")
def shop(people: dict[str, Client], tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table app that was fed a CSV file and has a model."""
    ana = people["ana"].apps
    ana.declare("shop", TABLE)
    path = tmp_path_factory.mktemp("data") / "shop.csv"
    write_csv(path, 120)
    assert ana.feed_path("shop", path).new == 120
    until(lambda: ana.get("shop").serving is not None, 240)
    return str(path)


def run_python(client: Client, arguments: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment_of(client),
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )


def test_the_best_model_answers_and_says_who_it_is(people: dict[str, Client], shop: str) -> None:
    ana = people["ana"].apps
    found = ana.infer(
        "shop", [{"size": 1.0, "weight": 2.0, "town": "Bern"}, {"size": -1.0, "weight": -2, "town": "Basel"}]
    )
    assert [answer["label"] for answer in found.answers] == ["yes", "no"]
    assert found.model.startswith("shop-model:")
    assert found.quality > 0.8
    assert sum(found.answers[0]["probabilities"].values()) == pytest.approx(1.0, abs=1e-4)


def test_a_whole_file_is_scored_by_a_job_whose_provenance_names_the_model(
    people: dict[str, Client], shop: str, tmp_path: Path
) -> None:
    ana = people["ana"]
    done = run_as(ana, "score", "shop", shop, "-o", str(tmp_path / "predictions.csv"))
    assert done.returncode == 0, done.stderr
    with (tmp_path / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120
    assert sum(row["sold"] == row["sold (answer)"] for row in rows) > 100
    model = next(word for word in done.stderr.split() if word.startswith("shop-model:"))
    graph = ana.lake.trace("shop-scores:1")
    kinds = {node.id: (node.kind, node.app) for node in graph.nodes}
    assert kinds[model] == ("model", "shop")
    assert kinds["shop-scores:1"] == ("output", "shop")
    assert ("examples", "shop") in kinds.values()
    with pytest.raises(NotFound):
        people["eve"].apps.score("shop", shop)
    assert run_as(ana, "score", "shop", "nowhere.csv").returncode == 2


def test_a_report_says_what_matters_where_it_fails_and_what_would_help(
    people: dict[str, Client], shop: str, tmp_path: Path
) -> None:
    ana = people["ana"]
    ana.apps.set("shop", paused=True)
    done = run_as(ana, "apps", "report", "shop")
    assert done.returncode == 0, done.stderr
    for words in ("What matters: ", "Where it fails: ", "What would help: ", "How sure: "):
        assert words in done.stdout
    found = ana.apps.report("shop").findings
    assert found is not None
    assert {one.column for one in found.importance} == {"size", "weight", "town"}
    assert ana.apps.ask_report("shop").id == ana.apps.report("shop").job, "one record for each model"
    page = run_as(ana, "card", "shop", "-o", str(tmp_path / "card.html"))
    assert page.returncode == 0, page.stderr
    assert "What matters: " in (tmp_path / "card.html").read_text()
    assert "# Model card: shop" in run_as(ana, "card", "shop").stdout
    assert run_as(ana, "card", "shop", "-o", "card.docx").returncode == 2
    ana.apps.set("shop", paused=False)


def test_every_decision_is_kept_with_its_reasons_and_the_next_one_is_told(
    people: dict[str, Client], shop: str
) -> None:
    ana = people["ana"].apps
    trials = ana.trials("shop")
    assert all("about" in trial.why and "expects quality" in trial.details for trial in trials)
    done = [trial for trial in trials if trial.state == "done"]
    assert done
    steps = ana.progress("shop")
    assert steps.metric == "accuracy"
    qualities = [step.quality for step in steps.items]
    assert qualities == sorted(qualities)
    prospects = ana.next("shop")
    states = {one.candidate: one.state for one in prospects.items}
    assert states[done[0].candidate] == "done"
    if prospects.next is not None:
        assert states[prospects.next.candidate] == "open"
        assert "expects quality" in prospects.next.details
        assert 0.0 <= prospects.next.chance <= 1.0
    assert all(0.0 <= one.low <= one.mean <= one.high <= 1.0 for one in prospects.items)


def test_what_people_say_about_an_app_is_kept_and_told_in_a_sentence(
    people: dict[str, Client], shop: str
) -> None:
    ana = people["ana"]
    kept = ana.apps.set("shop", weight=2.5, until=0.5, paused=True)
    assert (kept.weight, kept.until, kept.paused) == (2.5, 0.5, True)
    assert ana.apps.get("shop").terms == kept
    told = ana.why("shop")
    assert told.kind == "app"
    assert ana.apps.get("shop").waiting
    if told.status != "running":
        assert (told.status, "by ana" in told.sentence) == ("paused", True)
    assert ana.apps.set("shop", until=None, weight=1, paused=False).until is None
    (trial, *_) = ana.apps.trials("shop")
    assert ana.why(trial.job).kind == "job"
    with pytest.raises(NotFound, match="no app, study or job"):
        ana.why("nothing")


def test_the_report_counts_every_validated_example_once(people: dict[str, Client], shop: str) -> None:
    report = people["ana"].apps.report("shop")
    assert report.classes == ["no", "yes"]
    assert sum(map(sum, report.confusion)) == 120


def test_a_model_is_pinned_and_unpinned(people: dict[str, Client], shop: str) -> None:
    ana = people["ana"].apps
    until(lambda: sum(trial.model is not None for trial in ana.trials("shop")) >= 2, 240)
    models = [trial.model for trial in ana.trials("shop") if trial.model is not None]
    best = ana.get("shop").best
    assert best is not None
    other = next(model for model in models if model != best.model)
    assert ana.pin("shop", other).pinned == other
    answered = ana.infer("shop", [{"size": 1.0, "town": "Bern"}])
    assert (answered.model, answered.pinned) == (other, True)
    assert ana.unpin("shop").pinned is None
    with pytest.raises(NotFound, match="no model"):
        ana.pin("shop", "shop-model:9999")


def test_what_is_most_likely_mislabelled_comes_first(people: dict[str, Client], shop: str) -> None:
    # Before anything is switched off: a trial that runs meanwhile would judge fewer examples.
    ana = people["ana"].apps
    until(lambda: ana.suspects("shop").judged == 120, 60)
    losses = [one.loss for one in ana.suspects("shop", 10).items]
    assert losses == sorted(losses, reverse=True)
    people["ana"].jobs.get(ana.judge("shop")).wait(timeout=240)
    judged = ana.suspects("shop", 5)
    assert (judged.judged, judged.state) == (120, "finished")


def test_examples_are_found_switched_by_query_and_switched_back(people: dict[str, Client], shop: str) -> None:
    ana = people["ana"].apps
    yes = list(ana.examples("shop", "class:eq:yes"))
    assert yes
    assert all(example.answer == "yes" for example in yes)
    assert len(ana.refine("shop", filters=["class:eq:yes", "fold:eq:0"], on=False)) == sum(
        example.fold == 0 for example in yes
    )
    assert len(list(ana.examples("shop", "on:eq:false"))) == sum(example.fold == 0 for example in yes)
    assert len(ana.undo("shop")) == sum(example.fold == 0 for example in yes)
    content = ana.example("shop", yes[0].digest)
    assert content.output == "yes"
    assert float(content.input["size"]) > 0


def test_another_project_sees_nothing_of_an_app(people: dict[str, Client], shop: str) -> None:
    eve = people["eve"].apps
    assert eve.list() == []
    for call in (
        eve.get,
        eve.trials,
        eve.progress,
        eve.next,
        eve.report,
        eve.suspects,
        eve.export,
        eve.sources,
    ):
        with pytest.raises(NotFound):
            call("shop")


def test_exports_run_outside(people: dict[str, Client], shop: str, tmp_path: Path) -> None:
    ana = people["ana"].apps
    with zipfile.ZipFile(io.BytesIO(ana.export("shop", "native"))) as archive:
        archive.extractall(tmp_path)
    ran = subprocess.run(
        [sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=280
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[0])["label"] in ("no", "yes")


def test_generated_programs_feed_refine_and_infer(
    people: dict[str, Client], shop: str, tmp_path: Path
) -> None:
    ana = people["ana"]
    assert run_as(ana, "generate", "shop", "-o", str(tmp_path)).returncode == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["feed.py", "infer.py", "refine.py", "shop_app.py"]
    token = ana.connection.http.headers["Authorization"].removeprefix("Bearer ")
    assert not any(token in path.read_text() for path in tmp_path.iterdir())
    fed = run_python(ana, ["feed.py", shop], cwd=tmp_path)
    assert fed.stdout == "0 new, 120 known already, 120 in all\n", fed.stderr
    listed = run_python(ana, ["refine.py", "list", "class:eq:no"], cwd=tmp_path)
    digest = listed.stdout.split("\t")[0]
    assert run_python(ana, ["refine.py", "off", digest], cwd=tmp_path).stdout == "1 example switched off\n"
    assert run_python(ana, ["refine.py", "undo"], cwd=tmp_path).stdout == "1 example switched back\n"
    asked = run_python(ana, ["infer.py", '{"size": 1, "weight": 2, "town": "Bern"}'], cwd=tmp_path)
    assert json.loads(asked.stdout)["label"] == "yes", asked.stderr
    typed = "import shop_app as a; print(a.infer([a.Input(size=-1.0, weight=-2.0, town='Bern')])[0]['label'])"
    assert run_python(ana, ["-c", typed], cwd=tmp_path).stdout == "no\n"


def test_the_command_line_tells_how_every_app_stands(people: dict[str, Client], shop: str) -> None:
    listed = run_as(people["ana"], "apps", "ls", "--json")
    shown = next(app for app in json.loads(listed.stdout) if app["name"] == "shop")
    assert shown["best"]["quality"] > 0.8
    assert shown["last_improvement_at"] is not None
    asked = run_as(people["ana"], "infer", "shop", shop)
    assert len(asked.stdout.splitlines()) == 120
    off = run_as(people["ana"], "refine", "shop", "--where", "class:eq:no", "--limit", "2", "--off")
    assert off.stderr == "2 examples switched off\n"
    assert run_as(people["ana"], "refine", "shop", "--undo").stderr == "2 examples switched back\n"
    wrong = run_as(people["ana"], "infer", "shop", '{"siez": 1}')
    assert wrong.returncode == 2
    assert 'did you mean "size"?' in wrong.stderr


def test_a_token_that_was_just_believed_is_refused_as_soon_as_it_is_revoked(
    people: dict[str, Client], shop: str, server: ServerProcess
) -> None:
    ana = people["ana"]
    made = ana.tokens.create("for answers")
    assert made.secret is not None
    asker = server.client(made.secret).in_project("astro")
    one = {"size": 3.0, "weight": 1.0, "town": "Bern"}
    assert all(asker.apps.infer("shop", [one]).answers for _ in range(3))
    ana.tokens.revoke(made.id)
    with pytest.raises(Unauthenticated):
        asker.apps.infer("shop", [one])


def test_the_open_inference_protocol_beside_our_own(
    people: dict[str, Client], shop: str, server: ServerProcess
) -> None:
    secret = people["ana"].tokens.create("open inference").secret
    base = f"{server.address}/api/v1/projects/astro/v2"
    with httpx.Client(headers={"Authorization": f"Bearer {secret}"}) as http:
        assert http.get(f"{server.address}/v2/health/live").json() == {"live": True}
        assert http.get(f"{base}/health/ready").json() == {"ready": True}
        about = http.get(f"{base}/models/shop").json()
        assert [one["name"] for one in about["inputs"]] == ["size", "weight", "town"]
        assert http.get(f"{base}/models/shop/ready").json() == {"name": "shop", "ready": True}
        asked = {
            "id": "7",
            "inputs": [
                {"name": "size", "datatype": "FP32", "shape": [2], "data": [3.0, -3.0]},
                {"name": "weight", "datatype": "FP32", "shape": [2], "data": [1.0, 1.0]},
                {"name": "town", "datatype": "BYTES", "shape": [2], "data": ["Bern", "Bern"]},
            ],
        }
        told = http.post(f"{base}/models/shop/infer", json=asked).json()
        rows = [{"size": size, "weight": 1.0, "town": "Bern"} for size in (3.0, -3.0)]
        own = people["ana"].apps.infer("shop", rows)
        assert told["outputs"][0]["data"] == [one["label"] for one in own.answers]
        assert (told["id"], told["model_name"]) == ("7", "shop")
        by_version = f"{base}/models/shop/versions/{told['model_version']}/infer"
        assert http.post(by_version, json=asked).json()["outputs"] == told["outputs"]
        wrong = http.post(f"{base}/models/shop/infer", json={"inputs": []})
        assert wrong.status_code == 422
        assert "one row for each object" in wrong.json()["error"]
        assert http.get(f"{base}/models/shop/versions/99/ready").status_code == 400
        assert http.get(f"{base}/models/nothing").status_code == 404
        elsewhere = f"{server.address}/api/v1/projects/bio/v2/models/shop/infer"
        assert http.post(elsewhere, json=asked).status_code == 404
    assert httpx.post(f"{base}/models/shop/infer", json=asked).status_code == 401
