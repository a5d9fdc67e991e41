"""Studies, provisioning and the simulator in the browser."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect
from tests.dashboard.people import SMALL

from easel.sdk.client import Client
from easel.testing.server import ServerProcess

MEASURE = (
    'echo "[EASEL_METRIC] accuracy=0.$(({layers} * 10 + 40 - {width})) step=1"; '
    'echo "[EASEL_METRIC] size={width} step=1"'
)


def test_a_study_is_made_by_the_form_and_shows_what_it_found(server: ServerProcess, page: Page) -> None:
    page.goto(f"{server.address}/p/astro/studies")
    page.get_by_role("button", name="New study").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("layers")
    dialog.get_by_label("Command, with").fill(MEASURE)
    dialog.get_by_label("vCPU").fill("0.5")
    dialog.get_by_label("Memory, MB").fill("128")
    for number, (name, low, high) in enumerate([("layers", "1", "4"), ("width", "1", "9")]):
        if number:
            dialog.get_by_role("button", name="Add a dimension").click()
        dialog.get_by_label("Dimension", exact=True).nth(number).fill(name)
        dialog.get_by_label("Kind").nth(number).select_option("integer")
        dialog.get_by_label("From", exact=True).nth(number).fill(low)
        dialog.get_by_label("To", exact=True).nth(number).fill(high)
    dialog.get_by_label("Constraints").fill("size <= 6")
    dialog.get_by_label("Budget").fill("5")
    dialog.get_by_label("Strategy").select_option("random")
    dialog.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("heading", name="layers")).to_be_visible()
    expect(page.locator(".head .state")).to_have_text("finished", timeout=240_000)
    expect(page.get_by_role("heading", name="Recommended now")).to_be_visible()
    expect(page.get_by_role("img", name="accuracy of the recommendation")).to_be_visible()
    expect(page.get_by_role("img", name="Parallel coordinates of 5 points")).to_be_visible()
    expect(page.get_by_role("img", name="Predicted accuracy along layers")).to_be_visible()
    expect(page.get_by_role("img", name="How likely all constraints hold")).to_be_visible()
    rows = page.locator("table:not(.bars)").get_by_role("row")
    expect(rows).to_have_count(6)
    lines = page.get_by_role("img", name="Parallel coordinates of 5 points")
    lines.scroll_into_view_if_needed()
    box = lines.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 56, box["y"] + 42)  # the upper end of the first axis
    page.mouse.down()
    page.mouse.move(box["x"] + 56, box["y"] + 60, steps=5)
    page.mouse.up()
    expect(page.get_by_text(re.compile(r"^[0-4] points? of 5 brushed"))).to_be_visible()
    page.get_by_role("button", name="Show all").click()
    expect(rows).to_have_count(6)
    page.get_by_role("link", name="Studies").click()
    # by what only the list says: the study's own page, which goes away meanwhile, has rows that name its dimensions
    in_list = page.get_by_role("row").filter(has_text="maximise accuracy where size <= 6")
    expect(in_list).to_contain_text("layers")


def test_a_study_from_yaml_says_what_is_wrong_and_can_be_stopped(server: ServerProcess, page: Page) -> None:
    page.goto(f"{server.address}/p/astro/studies")
    page.get_by_role("button", name="New study").click()
    page.get_by_role("button", name="YAML").click()
    text = page.get_by_label("The study")
    text.fill("name: slow\njob: {command: sleep 1000}\ngoal: {maximise: x, budget: {count: 3}}\n")
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("alert")).to_contain_text("lacks space")
    text.fill(
        "name: slow\njob: {command: [sh, -c, 'sleep 1000; echo {a}'], resources: {vcpu: 0.5, memory_mb: 128}}\n"
        "space: [{name: a, type: float, low: 0, high: 1}]\n"
        "goal: {maximise: x, budget: {count: 3}}\nstrategy: random\n"
    )
    page.get_by_role("button", name="Start the study").click()
    expect(page.get_by_role("heading", name="slow")).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    expect(page.locator(".head .state")).to_have_text("stopped")
    expect(page.get_by_role("button", name="Resume")).to_be_visible()


def test_the_cheapest_size_before_a_deadline_is_found_on_the_picture(
    server: ServerProcess, page: Page, ana: Client
) -> None:
    page.goto(f"{server.address}/p/astro/provision")
    page.get_by_role("button", name="Profile a command").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("nap")
    dialog.get_by_label("Command").fill("sleep 0.{tenths:1,2,4}")
    dialog.get_by_role("button", name="See what it would run").click()
    expect(dialog.get_by_role("status")).to_contain_text("runs, at most")
    dialog.get_by_role("button", name="Start the runs").click()
    expect(dialog).to_have_count(0)
    ana.profiles.wait("nap", timeout=300)
    expect(page.get_by_role("img", name=re.compile("^Predicted runtime of 256 sizes"))).to_be_visible()
    page.get_by_label("tenths").fill("3")
    page.get_by_label("Before").fill("2099-01-01T00:00")
    page.get_by_role("button", name="Find the size").click()
    expect(page.get_by_text("Submit the job on this size")).to_be_visible()
    page.get_by_label("Within minutes").fill("0.00001")
    page.get_by_role("button", name="Find the size").click()
    expect(page.get_by_text("Excluded by the limits: 256 of 256 sizes")).to_be_visible()
    page.get_by_label("Within minutes").fill("")
    page.get_by_role("button", name="Find the size").click()
    page.get_by_role("button", name="Submit the job on this size").click()
    expect(page.locator(".state.finished").first).to_be_visible()


def test_a_history_is_replayed_side_by_side(server: ServerProcess, page: Page) -> None:
    page.goto(f"{server.address}/p/astro/simulator")
    expect(page.get_by_role("status").filter(has_text="a replay needs at least two apps")).to_be_visible()
    expect(page.get_by_role("button", name="Simulate")).to_be_disabled()
    page.get_by_text("What these mean").click()
    expect(page.get_by_text("0.2 is a fifth of that time")).to_be_visible()
    rows = [
        f"app{i},model{k},{0.5 + 0.04 * ((i * 5 + k * 3) % 9):.2f},{10 + k}"
        for i in range(6)
        for k in range(5)
    ]
    table = "\n".join(["tenant,candidate,quality,cost", *rows]).encode()
    chooser = page.get_by_label("Another history")
    chooser.set_input_files({"name": "history.csv", "mimeType": "text/csv", "buffer": b"tenant,cost\na,1\n"})
    expect(page.get_by_role("alert")).to_contain_text("lacks the columns candidate, quality")
    chooser.set_input_files({"name": "history.csv", "mimeType": "text/csv", "buffer": table})
    expect(page.get_by_text("30 trials of history.csv")).to_be_visible()
    page.get_by_label("Numbers of devices").fill("1, 3")
    page.get_by_label("Repetitions").fill("1")
    page.get_by_role("button", name="Simulate").click()
    expect(page.get_by_role("img", name="Mean distance to the best possible score")).to_be_visible()
    expect(page.get_by_role("row")).to_have_count(1 + 5 * 2)


def test_a_command_shows_what_it_used_over_time(server: ServerProcess, page: Page, ana: Client) -> None:
    job = ana.jobs.submit(["sh", "-c", "sleep 1000"], name="watched", resources=SMALL)
    page.goto(f"{server.address}/p/astro/jobs/{job.id}")
    expect(page.get_by_role("img", name="Curve of Memory in use over seconds")).to_be_visible()
    expect(page.get_by_role("img", name="Curve of Processors in use over seconds")).to_be_visible()
    page.get_by_role("button", name="Kill", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Kill the job").click()
    expect(page.locator(".state.killed")).to_be_visible()
