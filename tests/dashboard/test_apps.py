"""An app from its first example to its answers, in the browser."""

from __future__ import annotations

import random
import re
from pathlib import Path

from PIL import Image, ImageDraw
from playwright.sync_api import FilePayload, Page, expect

from easel.sdk.client import Client
from easel.testing.engine import until
from easel.testing.server import ServerProcess

MINUTES_MS = 300_000
"""For a model to be found: trials are real."""


def table() -> bytes:
    rng = random.Random(1)
    rows = [f"{rng.gauss(k, 0.3):.3f},{rng.gauss(-k, 0.3):.3f},{'ab'[k]}" for k in (0, 1) for _ in range(20)]
    return "\n".join(["length,width,kind", *rows]).encode()


def remove(server: ServerProcess, page: Page, name: str) -> None:
    """From its own page, which also ends the trials that are left."""
    page.goto(f"{server.address}/p/astro/apps/{name}")
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Apps", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name=name, exact=True)).to_have_count(0)


def test_an_app_is_inferred_from_a_table_fed_refined_and_asked(server: ServerProcess, page: Page) -> None:
    page.goto(f"{server.address}/p/astro/apps")
    page.get_by_role("button", name="New app").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("flowers")
    dialog.get_by_role("textbox", name="Program").fill("{input: {[Tensor[")
    expect(dialog.locator(".wrong")).to_contain_text("expected")
    data: FilePayload = {"name": "flowers.csv", "mimeType": "text/csv", "buffer": table()}
    dialog.get_by_label("Files to upload").set_input_files(data)
    expect(dialog.get_by_role("textbox", name="Program")).to_have_value(re.compile("Category"))
    dialog.get_by_label("Predict the column").select_option("width")
    expect(dialog.get_by_role("textbox", name="Program")).to_have_value(re.compile(r"output: {\[width"))
    dialog.get_by_label("Predict the column").select_option("kind")
    expect(dialog.get_by_role("textbox", name="Program")).to_have_value(re.compile(r"output: {\[kind"))
    expect(dialog.get_by_role("status")).to_contain_text("candidates")
    dialog.get_by_role("button", name="Create the app").click()
    expect(page.get_by_role("heading", name="flowers")).to_be_visible()
    page.get_by_label("Files to upload").set_input_files(data)
    expect(page.get_by_text("40 new, 0 known already, 40 in all.")).to_be_visible()
    expect(page.get_by_text("40 examples, 0 switched off")).to_be_visible()

    page.get_by_label("Class").fill("a")
    page.get_by_role("switch").first.click()
    expect(page.get_by_text("40 examples, 1 switched off")).to_be_visible()
    page.get_by_role("button", name="Undo the last switch").click()
    expect(page.get_by_text("40 examples, 0 switched off")).to_be_visible()

    page.get_by_role("link", name="Best model").click()
    expect(page.get_by_role("button", name="Download as ONNX")).to_be_visible(timeout=MINUTES_MS)
    expect(page.get_by_role("img", name="Confusion matrix over 2 classes")).to_be_visible()
    expect(page.get_by_role("img", name="The best")).to_be_visible()
    page.get_by_role("link", name="Candidates").click()
    expect(page.get_by_role("img", name="against training seconds")).to_be_visible()
    page.get_by_role("button", name="Pin").first.click()
    expect(page.get_by_text("pinned", exact=True).first).to_be_visible()
    page.get_by_role("link", name="What is next").click()
    expect(page.get_by_role("img", name="The believed score of")).to_be_visible()
    page.get_by_role("link", name="Code").click()
    expect(page.locator("pre")).to_contain_text("flowers")
    page.get_by_role("link", name="Try it").click()
    page.get_by_label("width").fill("3,5")  # a field for each column, filled in from an example
    page.get_by_role("button", name="As JSON").click()
    expect(page.get_by_label("An input, as JSON")).to_have_value(re.compile('"width": 3.5'))
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("heading", name="Answer")).to_be_visible()
    page.goto(f"{server.address}/p/astro")
    expect(page.get_by_role("img", name="The best accuracy over time of flowers")).to_be_visible()
    remove(server, page, "flowers")


def test_pictures_are_fed_by_folder_and_the_model_is_asked_by_drawing(
    server: ServerProcess, page: Page, tmp_path: Path
) -> None:
    for kind in ("bar", "ring"):
        (tmp_path / "shapes" / kind).mkdir(parents=True)
        for i in range(8):
            picture = Image.new("L", (16, 16))
            pen = ImageDraw.Draw(picture)
            if kind == "bar":
                pen.line((4 + i, 2, 4 + i, 13), fill=255, width=2)
            else:
                pen.ellipse((i % 4, 1 + i // 4, 11 + i % 4, 12 + i // 4), outline=255, width=2)
            picture.save(tmp_path / "shapes" / kind / f"{i}.png")
    page.goto(f"{server.address}/p/astro/apps")
    page.get_by_role("button", name="New app").click()
    page.get_by_role("dialog").get_by_label("Name").fill("shapes")
    page.get_by_role("textbox", name="Program").fill(
        "{input: {[Tensor[16, 16, 1]], []}, output: {[Category[bar, ring]], []}}"
    )
    page.get_by_role("button", name="Create the app").click()
    expect(page.get_by_role("heading", name="shapes")).to_be_visible()
    page.get_by_label("Folder to upload").set_input_files(tmp_path / "shapes")
    expect(page.get_by_text("16 new, 0 known already, 16 in all.")).to_be_visible()
    first = page.get_by_role("img", name="Example of bar").first
    expect(first).to_be_visible()
    # A function, because the page's policy forbids to evaluate an expression again and again.
    page.wait_for_function("() => document.querySelector('.gallery img').naturalWidth > 0")
    page.get_by_label("Suspected mislabels first").check()
    expect(page.get_by_role("button", name="Judge all of them")).to_be_visible()
    page.get_by_role("link", name="Best model").click()
    expect(page.get_by_role("button", name="Download as ONNX")).to_be_visible(timeout=MINUTES_MS)
    page.get_by_role("link", name="Try it").click()
    page.get_by_role("img", name="Draw here").scroll_into_view_if_needed()
    sheet = page.get_by_role("img", name="Draw here").bounding_box()
    assert sheet is not None
    page.mouse.move(sheet["x"] + 140, sheet["y"] + 40)
    page.mouse.down()
    page.mouse.move(sheet["x"] + 140, sheet["y"] + 230, steps=5)
    page.mouse.up()
    expect(page.get_by_role("heading", name="Answer")).to_be_visible()
    remove(server, page, "shapes")


def test_series_are_seen_as_curves_and_asked_about_by_a_column(
    server: ServerProcess, page: Page, ana: Client
) -> None:
    ana.apps.declare("waves", "input: series of number\noutput: [calm, wild]")
    rng = random.Random(2)
    kinds = {"calm": 1.0, "wild": 4.0}
    ana.apps.feed(
        "waves", [([rng.gauss(0, s) for _ in range(12)], kind) for kind, s in kinds.items() for _ in range(8)]
    )
    page.goto(f"{server.address}/p/astro/apps/waves?tab=examples")
    curve = page.get_by_role("img", name=re.compile("^Curve of 12 steps from -"))
    expect(curve.first).to_be_visible()
    page.get_by_role("row").last.scroll_into_view_if_needed()
    expect(page.get_by_role("row").last.get_by_role("img")).to_be_visible()
    until(lambda: ana.apps.get("waves").best is not None, 180)
    page.goto(f"{server.address}/p/astro/apps/waves?tab=try")
    expect(page.get_by_role("img", name=re.compile("^Curve of 12 steps"))).to_be_visible()  # of an example
    table = "second,flux\n" + "".join(f"{k},{(-1) ** k * 5}\n" for k in range(12))
    file: FilePayload = {"name": "flux.csv", "mimeType": "text/csv", "buffer": table.encode()}
    page.get_by_label("Files to upload").set_input_files(file)
    page.get_by_label("Column").select_option("flux")
    expect(page.get_by_role("img", name="Curve of flux: 12 steps from -5 to 5")).to_be_visible()
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_role("heading", name="Answer")).to_be_visible()
    remove(server, page, "waves")
