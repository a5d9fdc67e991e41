"""Declaring apps and feeding them: tables, pictures, arrays, texts, by the SDK and the command line."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from tests.end_to_end.app_people import TABLE, make_people, write_csv

from easel.cli.learn import feed_new
from easel.declare.styles import ColumnStyle
from easel.errors import Conflict, InvalidInput, NotFound
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


def test_examples_are_checked_and_what_is_odd_can_be_switched_off(
    people: dict[str, Client], tmp_path: Path
) -> None:
    ana = people["ana"]
    write_csv(tmp_path / "odd.csv", 90)
    with (tmp_path / "odd.csv").open("a") as file:
        file.write("1000000,,Bern,yes\n")
    ana.apps.declare("odd", TABLE)
    ana.apps.set("odd", paused=True)
    fed = run_as(ana, "feed", "odd", str(tmp_path / "odd.csv"))
    assert "note: town is Bern in every example" in fed.stderr
    done = run_as(ana, "checks", "odd", "--json")
    assert done.returncode == 0, done.stderr
    found = {one.kind: one for one in ana.apps.checks("odd").checks}
    assert {"outliers", "constant", "leak"} <= set(found)
    off = run_as(ana, "refine", "odd", "--check", "outliers", "--off")
    assert "1 example switched off" in off.stderr
    assert ana.apps.checks("odd").job is None, "other examples, other findings"
    ana.apps.delete("odd")


def test_one_command_leads_from_a_table_to_a_first_model(people: dict[str, Client], tmp_path: Path) -> None:
    file = tmp_path / "Sales 2026.csv"
    write_csv(file, 90)
    with file.open("a") as rows:
        rows.write("0.5,1.0,Bern,\n")
    ana = people["ana"]
    done = run_as(ana, "learn", str(file), "--target", "sold")
    assert done.returncode == 0, done.stderr
    assert "90 examples fed" in done.stderr
    assert "left out: pair 91: output: the answer is missing" in done.stderr
    assert "First model: " in done.stderr
    assert ana.apps.get("sales-2026").serving is not None
    assert run_as(ana, "open", "sales-2026", "--print").stdout.strip().endswith("/p/astro/apps/sales-2026")
    assert run_as(ana, "learn", str(tmp_path / "nothing.csv")).returncode == 2
    with pytest.raises(NotFound, match=r"did you mean sales-2026\?"):
        ana.apps.get("sales-26")
    with pytest.raises(NotFound, match=r"did you mean sales-2026\?"):
        ana.why("sales-226")
    assert run_as(ana, "why", ana.apps.trials("sales-2026")[0].job[-8:]).returncode == 0
    ana.apps.delete("sales-2026")


def test_the_shell_completes_names_of_apps_file_sets_and_commands(
    people: dict[str, Client], tmp_path: Path
) -> None:
    ana = people["ana"]
    ana.apps.declare("daisies", TABLE)
    (tmp_path / "daisies.csv").write_text("x")
    ana.lake.upload(tmp_path / "daisies.csv", "/")
    ana.lake.create_file_set("daisy-table", ["/daisies.csv"])

    def proposed(line: str) -> list[str]:
        asks = {"_EASEL_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        command = str(Path(sys.executable).with_name("easel"))  # the shell asks the program by its name
        told = subprocess.run(
            [command], env=environment_of(ana, **asks), capture_output=True, text=True, check=False
        )
        return told.stdout.split()

    assert proposed("easel infer dai") == proposed("easel why dai") == ["daisies"]
    assert proposed("easel get dai") == ["daisy-table"]
    assert "learn" in proposed("easel le")
    assert proposed("easel infer zzz") == []
    ana.apps.delete("daisies")


def test_an_app_that_learn_cannot_feed_is_not_left_behind(people: dict[str, Client], tmp_path: Path) -> None:
    ana = people["ana"]
    (tmp_path / "other.csv").write_text("colour,weight\nred,3\n")
    ana.apps.declare("torn", TABLE)
    with pytest.raises(InvalidInput):
        feed_new(ana, "torn", tmp_path / "other.csv")
    with pytest.raises(NotFound):
        ana.apps.get("torn")


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


def test_arrays_parquet_and_a_pipe_are_fed(people: dict[str, Client], tmp_path: Path) -> None:
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
    piped = run_as(ana, "feed", "arrays", "-", stdin=lines)
    assert "3 new, 0 known already, 43 in all" in piped.stderr
    fed = ana.apps.feed_labelled("arrays", list(x + 2.0), lambda row: "up" if row[0] > 2 else None)
    assert fed.new == int((x[:, 0] + 2.0 > 2).sum())
    ana.apps.delete("arrays")
    with pytest.raises(NotFound):
        ana.apps.get("arrays")


def test_a_later_file_is_read_as_the_first_one_was_and_its_rows_keep_their_numbers(
    people: dict[str, Client], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = people["ana"].apps
    ana.declare("weights", "input: {size: number, town: category}\noutput: {sold: [no, yes]}")
    (tmp_path / "first.csv").write_text("size;town;sold\n1,5;Bern;yes\n2,250;Bern;no\n")
    assert ana.feed_path("weights", tmp_path / "first.csv").new == 2
    assert ana.get("weights").styles == {"input.size": ColumnStyle(",")}
    (tmp_path / "later.csv").write_text("size;town;sold\n2,250;Bern;no\n")
    assert ana.feed_path("weights", tmp_path / "later.csv").known == 1
    assert ana.feed("weights", [({"size": "2,250", "town": "Bern"}, "no")]).known == 1
    rows = "".join(f"{'tall' if k in (30, 55) else k};Bern;no\n" for k in range(1, 61))
    (tmp_path / "long.csv").write_text(f"size;town;sold\n{rows}")
    monkeypatch.setattr("easel.sdk.apps.BATCH_BYTES", 500)
    assert [one.pair for one in ana.feed_path("weights", tmp_path / "long.csv", skip_bad=True).refused] == [
        30,
        55,
    ]
    with pytest.raises(InvalidInput, match="pair 30: "):
        ana.feed_path("weights", tmp_path / "long.csv")
    ana.delete("weights")


def test_a_series_has_a_curve_and_a_table_has_none(people: dict[str, Client]) -> None:
    ana = people["ana"]
    for name, source in (("waves", "series of number"), ("rows", "{x: number, y: number}")):
        ana.apps.declare(name, f"input: {source}\noutput: [calm, wild]")
        ana.apps.set(name, paused=True)
    ana.apps.feed("waves", [([0.5, 2.0, -1.0] * 100, "wild")])
    ana.apps.feed("rows", [({"x": 1.0, "y": 2.0}, "calm")])
    assert (ana.apps.get("waves").series, ana.apps.get("rows").series) == (True, False)
    (wave,), (row,) = (list(ana.apps.examples(name)) for name in ("waves", "rows"))
    found = ana.apps.curve("waves", wave.digest)
    (line,) = found.lines
    assert (found.steps, len(line.values), -1.0 in line.values) == (300, 120, True)
    with pytest.raises(InvalidInput, match="not series"):
        ana.apps.curve("rows", row.digest)
    for name in ("waves", "rows"):
        ana.apps.delete(name)


def test_a_program_is_proposed_and_matched_over_http(people: dict[str, Client]) -> None:
    ana = people["ana"].apps
    proposed = ana.propose(["size", "town", "sold"], [["1", "Bern", "yes"], ["2", "Bern", "no"]] * 6)
    frame = pd.DataFrame({"size": [1, 2] * 6, "town": "Bern", "sold": ["yes", "no"] * 6})
    assert ana.propose(frame, target="sold").program == proposed.program
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


def test_a_text_app_is_given_word_vectors_and_may_try_its_rates_inside_trials(
    people: dict[str, Client], tmp_path: Path
) -> None:
    eve = people["eve"].apps
    assert eve.declare("reviews", "input: text\noutput: [bad, good]", rates="trial").rates == "trial"
    (tmp_path / "glove.txt").write_text("good 1.0 0.5\nbad -1.0 0.5\n")
    done = run_as(people["eve"], "apps", "vectors", "reviews", str(tmp_path / "glove.txt"))
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
