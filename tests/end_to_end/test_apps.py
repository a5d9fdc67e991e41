"""Apps as people use them: a real server whose loop learns by itself, the SDK and the command line."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest
from PIL import Image

from easel.declare.roles import Role
from easel.errors import Conflict, InvalidInput, NotFound, Unauthenticated
from easel.sdk.client import Client
from easel.testing.engine import until
from easel.testing.server import ServerProcess, running

TABLE = "input: {size: number, weight: optional number, town: category}\noutput: {sold: [no, yes]}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="module")
def people(server: ServerProcess) -> dict[str, Client]:
    root = server.client()
    made = {}
    for name, project in (("ana", "astro"), ("eve", "bio")):
        root.projects.create(project)
        secret = root.in_project(project).users.create(name, Role.MEMBER).token.secret
        assert secret is not None
        made[name] = server.client(secret).in_project(project)
    return made


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


def write_csv(path: Path, count: int) -> None:
    rng = np.random.default_rng(0)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["size", "weight", "town", "sold"])
        for size in rng.normal(size=count):
            weight = "" if size > 1.5 else f"{size * 2:.3f}"
            writer.writerow([f"{size:.6f}", weight, "Bern", "yes" if size > 0 else "no"])


def easel(
    server: ServerProcess, client: Client, *arguments: str, stdin: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return run_python(server, client, ["-m", "easel.cli.main", *arguments], stdin, cwd)


def run_python(
    server: ServerProcess, client: Client, arguments: list[str], stdin: str = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    token = client.connection.http.headers["Authorization"].removeprefix("Bearer ")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EASEL_")}
    environment |= {"EASEL_SERVER": server.address, "EASEL_TOKEN": token, "EASEL_PROJECT": client.project}
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        input=stdin,
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
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
    server: ServerProcess, people: dict[str, Client], shop: str, tmp_path: Path
) -> None:
    ana = people["ana"]
    done = easel(server, ana, "score", "shop", shop, "-o", str(tmp_path / "predictions.csv"))
    assert done.returncode == 0, done.stderr
    with (tmp_path / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 120
    assert sum(row["sold"] == row["sold (answer)"] for row in rows) > 100
    model = next(word for word in done.stderr.split() if word.startswith("shop-model:"))
    graph = ana.lake.trace("shop-scores:1")
    assert model in {f"{node.name}:{node.version}" for node in graph.nodes}
    with pytest.raises(NotFound):
        people["eve"].apps.score("shop", shop)
    assert easel(server, ana, "score", "shop", "nowhere.csv").returncode == 2


def test_a_report_says_what_matters_where_it_fails_and_what_would_help(
    server: ServerProcess, people: dict[str, Client], shop: str, tmp_path: Path
) -> None:
    ana = people["ana"]
    ana.apps.set("shop", paused=True)
    done = easel(server, ana, "apps", "report", "shop")
    assert done.returncode == 0, done.stderr
    for words in ("What matters: ", "Where it fails: ", "What would help: ", "How sure: "):
        assert words in done.stdout
    found = ana.apps.report("shop").findings
    assert found is not None
    assert {one.column for one in found.importance} == {"size", "weight", "town"}
    assert ana.apps.ask_report("shop").id == ana.apps.report("shop").job, "one record for each model"
    page = easel(server, ana, "card", "shop", "-o", str(tmp_path / "card.html"))
    assert page.returncode == 0, page.stderr
    assert "What matters: " in (tmp_path / "card.html").read_text()
    assert "# Model card: shop" in easel(server, ana, "card", "shop").stdout
    assert easel(server, ana, "card", "shop", "-o", "card.docx").returncode == 2
    ana.apps.set("shop", paused=False)


def test_examples_are_checked_and_what_is_odd_can_be_switched_off(
    server: ServerProcess, people: dict[str, Client], tmp_path: Path
) -> None:
    ana = people["ana"]
    write_csv(tmp_path / "odd.csv", 90)
    with (tmp_path / "odd.csv").open("a") as file:
        file.write("1000000,,Bern,yes\n")
    ana.apps.declare("odd", TABLE)
    ana.apps.set("odd", paused=True)
    fed = easel(server, ana, "feed", "odd", str(tmp_path / "odd.csv"))
    assert "note: town is Bern in every example" in fed.stderr
    done = easel(server, ana, "checks", "odd", "--json")
    assert done.returncode == 0, done.stderr
    found = {one.kind: one for one in ana.apps.checks("odd").checks}
    assert {"outliers", "constant", "leak"} <= set(found)
    off = easel(server, ana, "refine", "odd", "--check", "outliers", "--off")
    assert "1 example switched off" in off.stderr
    assert ana.apps.checks("odd").job is None, "other examples, other findings"
    ana.apps.delete("odd")


def test_one_command_leads_from_a_table_to_a_first_model(
    server: ServerProcess, people: dict[str, Client], tmp_path: Path
) -> None:
    file = tmp_path / "Sales 2026.csv"
    write_csv(file, 90)
    ana = people["ana"]
    done = easel(server, ana, "learn", str(file), "--target", "sold")
    assert done.returncode == 0, done.stderr
    assert "90 examples fed" in done.stderr
    assert "First model: " in done.stderr
    assert ana.apps.get("sales-2026").serving is not None
    assert (
        easel(server, ana, "open", "sales-2026", "--print")
        .stdout.strip()
        .endswith("/p/astro/apps/sales-2026")
    )
    assert easel(server, ana, "learn", str(tmp_path / "nothing.csv")).returncode == 2
    ana.apps.delete("sales-2026")


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
        [sys.executable, "run.py"], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[0])["label"] in ("no", "yes")


def test_generated_programs_feed_refine_and_infer(
    server: ServerProcess, people: dict[str, Client], shop: str, tmp_path: Path
) -> None:
    ana = people["ana"]
    assert easel(server, ana, "generate", "shop", "-o", str(tmp_path)).returncode == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["feed.py", "infer.py", "refine.py", "shop_app.py"]
    token = ana.connection.http.headers["Authorization"].removeprefix("Bearer ")
    assert not any(token in path.read_text() for path in tmp_path.iterdir())
    fed = run_python(server, ana, ["feed.py", shop], cwd=tmp_path)
    assert fed.stdout == "0 new, 120 known already, 120 in all\n", fed.stderr
    listed = run_python(server, ana, ["refine.py", "list", "class:eq:no"], cwd=tmp_path)
    digest = listed.stdout.split("\t")[0]
    assert (
        run_python(server, ana, ["refine.py", "off", digest], cwd=tmp_path).stdout
        == "1 examples switched off\n"
    )
    assert run_python(server, ana, ["refine.py", "undo"], cwd=tmp_path).stdout == "1 examples switched back\n"
    asked = run_python(server, ana, ["infer.py", '{"size": 1, "weight": 2, "town": "Bern"}'], cwd=tmp_path)
    assert json.loads(asked.stdout)["label"] == "yes", asked.stderr
    typed = "import shop_app as a; print(a.infer([a.Input(size=-1.0, weight=-2.0, town='Bern')])[0]['label'])"
    assert run_python(server, ana, ["-c", typed], cwd=tmp_path).stdout == "no\n"


def test_a_folder_of_pictures_becomes_an_app(people: dict[str, Client], tmp_path: Path) -> None:
    ana = people["ana"].apps
    rng = np.random.default_rng(0)
    for label, level in (("dark", 40), ("light", 210)):
        (tmp_path / label).mkdir()
        for number in range(12):
            pixels = rng.integers(level - 30, level + 30, size=(9 + number % 3, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / label / f"{number}.png")
    ana.declare("photos", "input: image 8 x 8 x 3\noutput: [dark, light]")
    (tmp_path / "dark" / "broken.jpg").write_bytes(b"not a picture")
    with pytest.raises(InvalidInput, match=r"broken\.jpg: this is not a picture"):
        ana.feed_path("photos", tmp_path)
    fed = ana.feed_path("photos", tmp_path, skip_bad=True)
    assert (fed.new, len(fed.refused)) == (24, 1)
    assert fed.refused[0].file is not None
    assert ana.feed_path("photos", tmp_path, skip_bad=True).known == 24
    first = next(ana.examples("photos"))
    assert Image.open(io.BytesIO(ana.thumbnail("photos", first.digest))).format == "PNG"
    until(lambda: ana.get("photos").serving is not None, 240)
    assert ana.infer_path("photos", tmp_path / "light" / "3.png").answers[0]["label"] == "light"


def test_another_picture_of_the_same_name_takes_nobodys_place(
    people: dict[str, Client], tmp_path: Path
) -> None:
    eve = people["eve"].apps
    eve.declare("twins", "input: image 4 x 4\noutput: [dark, light]")
    for folder, levels in (("monday", (40, 220)), ("tuesday", (60, 160))):
        for label, level in zip(("dark", "light"), levels, strict=True):
            place = tmp_path / folder / label
            place.mkdir(parents=True)
            Image.fromarray(np.full((4, 4), level, dtype=np.uint8)).save(place / "IMG_1.png")
        assert eve.feed_path("twins", tmp_path / folder).new == 2
    examples = list(eve.examples("twins"))
    assert [example.preview for example in examples] == ["IMG_1.png"] * 4
    seen = [np.asarray(Image.open(io.BytesIO(eve.thumbnail("twins", one.digest)))) for one in examples]
    assert sorted(int(pixels.max()) for pixels in seen) == [40, 60, 160, 220]
    assert eve.feed_path("twins", tmp_path / "monday").known == 2
    eve.delete("twins")


def test_arrays_parquet_and_a_pipe_are_fed(
    server: ServerProcess, people: dict[str, Client], tmp_path: Path
) -> None:
    import pyarrow
    import pyarrow.parquet

    ana = people["ana"]
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20, 6)).astype(np.float32)
    y = np.where(x[:, 0] > 0, "up", "down")
    ana.apps.declare("arrays", "{input: {[Tensor[6]], []}, output: {[Category], []}}")
    np.savez(tmp_path / "data.npz", x=x, y=y)
    assert ana.apps.feed_path("arrays", tmp_path / "data.npz").new == 20
    columns = {f"c{k}": x[:, k].astype(float) + 1.0 for k in range(6)} | {"label": y}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "data.parquet")
    assert ana.apps.feed_path("arrays", tmp_path / "data.parquet").new == 20
    lines = "".join(json.dumps({"input": [float(k)] * 6, "output": "up"}) + "\n" for k in range(3))
    piped = easel(server, ana, "feed", "arrays", "-", stdin=lines)
    assert "3 new, 0 known already, 43 in all" in piped.stderr
    fed = ana.apps.feed_labelled("arrays", list(x + 2.0), lambda row: "up" if row[0] > 2 else None)
    assert fed.new == int((x[:, 0] + 2.0 > 2).sum())
    ana.apps.delete("arrays")
    with pytest.raises(NotFound):
        ana.apps.get("arrays")


def test_a_program_is_proposed_and_matched_over_http(people: dict[str, Client]) -> None:
    ana = people["ana"].apps
    proposed = ana.propose(["size", "town", "sold"], [["1", "Bern", "yes"], ["2", "Bern", "no"]] * 6)
    matched = ana.match(proposed.program)
    assert matched.template == "table classification"
    assert matched.metrics[0] == "accuracy"
    assert all(candidate.cost_s > 0 for candidate in matched.candidates)
    with pytest.raises(InvalidInput, match="character"):
        ana.match("{input: {[Tenser[3]], []}, output: {[Number], []}}")


def test_asking_too_early_says_what_to_do(people: dict[str, Client]) -> None:
    ana = people["ana"].apps
    ana.declare("early", TABLE)
    with pytest.raises(Conflict, match="no model yet: feed examples"):
        ana.infer("early", [{"size": 1, "town": "Bern"}])
    ana.delete("early")


def test_the_command_line_tells_how_every_app_stands(
    server: ServerProcess, people: dict[str, Client], shop: str
) -> None:
    listed = easel(server, people["ana"], "apps", "ls", "--json")
    shown = next(app for app in json.loads(listed.stdout) if app["name"] == "shop")
    assert shown["best"]["quality"] > 0.8
    assert shown["last_improvement_at"] is not None
    asked = easel(server, people["ana"], "infer", "shop", shop)
    assert len(asked.stdout.splitlines()) == 120
    off = easel(server, people["ana"], "refine", "shop", "--where", "class:eq:no", "--limit", "2", "--off")
    assert off.stderr == "2 examples switched off\n"
    assert easel(server, people["ana"], "refine", "shop", "--undo").stderr == "2 examples switched back\n"
    wrong = easel(server, people["ana"], "infer", "shop", '{"siez": 1}')
    assert wrong.returncode == 2
    assert 'did you mean "size"?' in wrong.stderr


def test_a_text_app_is_given_word_vectors_and_may_try_its_rates_inside_trials(
    server: ServerProcess, people: dict[str, Client], tmp_path: Path
) -> None:
    eve = people["eve"].apps
    assert eve.declare("reviews", "input: text\noutput: [bad, good]", rates="trial").rates == "trial"
    (tmp_path / "glove.txt").write_text("good 1.0 0.5\nbad -1.0 0.5\n")
    done = easel(server, people["eve"], "apps", "vectors", "reviews", str(tmp_path / "glove.txt"))
    assert done.returncode == 0, done.stderr
    assert "word vectors of 2 numbers" in done.stdout + done.stderr
    assert eve.get("reviews").vector_size == 2
    (tmp_path / "essay.txt").write_text("no numbers here\n")
    with pytest.raises(InvalidInput, match="expected a word and its numbers"):
        eve.give_vectors("reviews", tmp_path / "essay.txt")
    with pytest.raises(NotFound):
        people["ana"].apps.give_vectors("reviews", "/nowhere.txt")
    eve.delete("reviews")


def test_many_pictures_go_part_by_part_and_one_that_is_torn_is_named(
    people: dict[str, Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("easel.sdk.apps.PART", 6)
    rng = np.random.default_rng(3)
    for number in range(20):
        place = tmp_path / ("dark" if number < 10 else "light")
        place.mkdir(exist_ok=True)
        Image.fromarray(rng.integers(0, 255, (6, 6), dtype=np.uint8)).save(place / f"{number:02d}.png")
    (tmp_path / "light" / "notes.txt").write_text("not a picture")
    torn = tmp_path / "light" / "15.png"
    torn.write_bytes(torn.read_bytes()[:50])
    eve = people["eve"].apps
    eve.declare("parts", "input: image 6 x 6\noutput: [dark, light]")
    with pytest.raises(InvalidInput, match=r"15\.png"):
        eve.feed_path("parts", tmp_path)
    fed = eve.feed_path("parts", tmp_path, skip_bad=True)
    assert (fed.new + fed.known, fed.total, len(fed.refused)) == (19, 19, 1)
    again = eve.feed_path("parts", tmp_path, skip_bad=True)
    assert (again.new, again.known) == (0, 19)
    eve.delete("parts")


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
