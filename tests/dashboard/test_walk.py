"""The dashboard in a real browser on a real server, as a newcomer would walk through it."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.dashboard.people import SMALL, person, token_of

from easel.declare.roles import Role
from easel.sdk.client import Client
from easel.serve.documents import SITE
from easel.testing import browser
from easel.testing.server import ServerProcess


def test_a_wrong_token_is_explained_and_a_right_one_opens_the_project(
    chrome: Browser, server: ServerProcess, ana: Client
) -> None:
    page = chrome.new_page()
    page.goto(f"{server.address}/p/astro/people")
    page.get_by_label("Token").fill("easel_wrong")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("token")
    page.get_by_label("Token").fill(token_of(ana))
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="People")).to_be_visible()
    page.close()


def test_an_admin_adds_somebody_who_can_log_in(chrome: Browser, server: ServerProcess, page: Page) -> None:
    page.goto(f"{server.address}/p/astro/people")
    page.get_by_label("New person").fill("newcomer")
    page.get_by_role("button", name="Add").click()
    secret = page.locator(".secret code").inner_text()
    expect(page.get_by_role("cell", name="newcomer", exact=True)).to_be_visible()
    other = chrome.new_page()
    browser.log_in(other, server.address, secret)
    expect(other.get_by_role("link", name="newcomer")).to_be_visible()
    other.close()


def test_a_new_project_says_what_to_do_first(chrome: Browser, server: ServerProcess) -> None:
    server.client().projects.create("fresh")
    fern = person(server, "fern", Role.ADMIN, project="fresh")
    page = chrome.new_page()
    browser.log_in(page, server.address, token_of(fern))
    page.goto(f"{server.address}/p/fresh")
    steps = page.get_by_role("region", name="First steps")
    expect(steps).to_contain_text("easel run -- python train.py")
    expect(steps).to_contain_text("Set a budget")
    steps.get_by_role("button", name="Hide the first steps").click()
    expect(steps).to_have_count(0)
    page.close()


def test_ctrl_k_goes_to_what_is_typed(server: ServerProcess, page: Page, ana: Client) -> None:
    job = ana.jobs.submit(["true"], name="supernova hunt", resources=SMALL)
    page.goto(f"{server.address}/p/astro")
    expect(page.get_by_role("button", name="Go to")).to_be_visible()
    page.keyboard.press("Control+k")
    box = page.get_by_role("combobox", name="Part of the name")
    box.fill("nova hu")
    expect(page.get_by_role("option", name="supernova hunt")).to_be_visible()
    box.press("Enter")
    expect(page).to_have_url(re.compile(f"/jobs/{job.id}$"))
    page.keyboard.press("Control+k")
    box.fill("nothing has this name")
    expect(page.get_by_role("dialog")).to_contain_text("Nothing here")
    box.fill("lake")
    box.press("Enter")
    expect(page).to_have_url(re.compile("/p/astro/lake$"))
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_job_is_submitted_watched_to_its_end_and_run_again(server: ServerProcess, page: Page) -> None:
    page.goto(f"{server.address}/p/astro/jobs")
    page.get_by_role("button", name="New job").click()
    page.get_by_label("Name", exact=True).fill("counting")
    page.get_by_label("Command").fill(
        'for i in 1 2 3; do echo line $i; echo "[EASEL_METRIC] loss=0.$i step=$i"; done'
    )
    page.get_by_label("vCPU").fill("0.5")
    page.get_by_label("Memory").fill("128")
    page.get_by_role("button", name="Submit", exact=True).click()
    expect(page.get_by_role("heading", name="counting")).to_be_visible()
    expect(page.get_by_role("log")).to_contain_text("line 3")
    expect(page.get_by_role("listitem").filter(has_text="finished")).to_have_attribute("aria-current", "step")
    expect(page.get_by_role("img", name="Curve of loss over steps")).to_be_visible()
    page.get_by_label("Search the log").fill("line 2")
    expect(page.get_by_role("log")).not_to_contain_text("line 3")
    first = page.url
    page.get_by_role("button", name="Run again").click()
    expect(page).not_to_have_url(first)
    expect(page.get_by_text("Rerun of")).to_be_visible()


def test_a_running_job_is_killed_from_its_page(server: ServerProcess, page: Page, ana: Client) -> None:
    job = ana.jobs.submit(["sh", "-c", "echo begun; sleep 1000"], name="endless", resources=SMALL)
    page.goto(f"{server.address}/p/astro/jobs/{job.id}")
    expect(page.get_by_role("log")).to_contain_text("begun")
    expect(page).to_have_title("endless · Jobs · astro · Easel")
    page.get_by_role("button", name="Kill", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Kill the job").click()
    expect(page.locator(".state.killed")).to_be_visible()
    expect(page.get_by_text("killed by ana from the dashboard")).to_be_visible()


def test_the_list_follows_what_happens_elsewhere_and_filters_by_address(
    server: ServerProcess, page: Page, ana: Client
) -> None:
    page.goto(f"{server.address}/p/astro/jobs?name=elsewhere")
    expect(page.get_by_text("No job fits")).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    jobs = [ana.jobs.submit(["true"], name=f"made elsewhere {i}", resources=SMALL) for i in range(3)]
    for i, job in enumerate(jobs):
        row = page.get_by_role("row").filter(has_text=f"made elsewhere {i}")
        expect(row).to_contain_text("finished")
        assert job.wait().state == "finished"
    expect(page.get_by_role("row")).to_have_count(4)


def test_a_list_of_many_jobs_draws_only_what_is_in_view(
    server: ServerProcess, page: Page, ana: Client
) -> None:
    many = person(server, "many")
    server.client(project="astro").queues.change("many", paused=True)
    for i in range(130):
        many.jobs.submit(["true"], name=f"many {i:03}", resources=SMALL)
    page.goto(f"{server.address}/p/astro/jobs?name=many&sort=name")
    expect(page.get_by_role("link", name="many 000")).to_be_visible()
    assert page.get_by_role("row").count() < 80
    grid = page.get_by_role("region", name="Jobs")
    for _ in range(20):
        grid.evaluate("box => box.scrollTo(0, box.scrollHeight)")
        if page.get_by_role("link", name="many 129").is_visible():
            break
        page.get_by_role("status").filter(has_text=re.compile(r"^\d")).wait_for()
    expect(page.get_by_role("link", name="many 129")).to_be_visible()
    page.get_by_role("columnheader", name="Job").get_by_role("button").click()
    grid.evaluate("box => box.scrollTo(0, 0)")
    expect(page.get_by_role("link", name="many 129")).to_be_visible()
    page.get_by_role("checkbox", name=re.compile("Choose many 129")).check()
    grid.evaluate("box => box.scrollTo(0, 1500)")
    link = page.get_by_role("link", name=re.compile("many 09")).first
    link.click()
    expect(page.get_by_role("region", name="Why it waits")).to_contain_text("paused")
    page.go_back()
    expect(page.get_by_text("1 job chosen")).to_be_visible()
    assert grid.evaluate("box => box.scrollTop") > 1000, "the place is kept"


def test_jobs_are_a_table_of_chosen_columns_and_several_are_changed_at_once(
    server: ServerProcess, page: Page, ana: Client
) -> None:
    made = [
        ana.jobs.submit(
            ["sh", "-c", f"echo '[EASEL_METRIC] score={rate} step=1'; test {rate} != 0.3"],
            name=f"swept {rate}",
            resources=SMALL,
            tags={"rate": rate},
        )
        for rate in (0.1, 0.3, 0.2)
    ]
    for job in made:
        job.wait(check=False)
    page.goto(f"{server.address}/p/astro/jobs?name=swept&columns=state,tag:score,tag:rate&sort=-tag:score")
    names = page.get_by_role("link", name=re.compile("^swept"))
    expect(names).to_have_text(["swept 0.3", "swept 0.2", "swept 0.1"])
    page.get_by_label("Tags and metrics").fill("score > 0.15")
    expect(names).to_have_text(["swept 0.3", "swept 0.2"])
    page.get_by_label("Group by").select_option("State")
    expect(page.get_by_role("row").filter(has_text="failed (1 job)")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download CSV").click()
    assert "swept 0.3,failed,0.3,0.3" in saved.value.path().read_text()
    for box in page.get_by_role("checkbox", name=re.compile("Choose swept")).all():
        box.check()
    page.get_by_label("Tag of the chosen jobs").fill("kept")
    page.get_by_label("Value of the tag").fill("yes")
    page.get_by_role("button", name="Tag", exact=True).click()
    expect(page.get_by_text("2 jobs tagged.")).to_be_visible()
    page.goto(f"{server.address}/p/astro/jobs/compare?job=job_bogus&job={made[0].id}&job={made[1].id}")
    expect(page.get_by_text("Not in this project: job_bogus")).to_be_visible()
    score = page.get_by_role("row", name=re.compile("^score"))
    expect(score.get_by_role("cell")).to_have_text(["0.1", "0.3 best"])
    expect(page.get_by_role("img", name="Curve of score over steps")).to_be_visible()


def test_files_are_uploaded_previewed_tagged_and_found(server: ServerProcess, page: Page) -> None:
    page.goto(f"{server.address}/p/astro/lake?in=/stars/")
    chooser = page.get_by_label("Files to upload")
    table = "star,period\nMira,332\n"
    for contents in (table, table + "Algol,2.87\n"):
        chooser.set_input_files({"name": "periods.csv", "mimeType": "text/csv", "buffer": contents.encode()})
        expect(page.get_by_text("Uploaded.")).to_be_visible()
        page.get_by_role("link", name="periods.csv").click()
        expect(page.get_by_role("cell", name="Mira")).to_be_visible()
        page.goto(f"{server.address}/p/astro/lake?in=/stars/")
    page.get_by_role("link", name="periods.csv").click()
    expect(page.get_by_role("cell", name="Algol")).to_be_visible()
    page.get_by_role("button", name="Version 1").click()
    expect(page.get_by_role("cell", name="Algol")).to_have_count(0)
    page.get_by_label("Tag").fill("survey")
    page.get_by_label("Value").fill("7")
    page.get_by_role("button", name="Set").click()
    expect(page.locator(".tag", has_text="survey 7")).to_be_visible()
    page.goto(f"{server.address}/p/astro/lake/search?kind=file&q=survey+%3D+7")
    page.get_by_role("link", name="/stars/periods.csv:1").click()
    expect(page.get_by_role("heading", name="/stars/periods.csv")).to_be_visible()


def test_two_versions_of_a_file_are_compared(
    server: ServerProcess, page: Page, ana: Client, tmp_path: Path
) -> None:
    table, blob = tmp_path / "periods.csv", tmp_path / "model.bin"
    for rows, content in (("a,1\nb,2\n", b"\0\1"), ("a,1\nb,<b>3</b>\nc,4\n", b"\0\2\3")):
        table.write_text("star,period\n" + rows)
        blob.write_bytes(content)
        ana.lake.upload(table, "/compared/")
        ana.lake.upload(blob, "/compared/")
    page.goto(f"{server.address}/p/astro/lake?in=/compared/&file=/compared/periods.csv")
    page.get_by_label("Compare version 2 with").select_option("version 1")
    expect(page.get_by_text("2 rows added, 1 removed")).to_be_visible()
    changed = page.get_by_role("region", name="What changed")
    expect(changed.locator(".removed")).to_have_text(["-b,2"])
    expect(changed.locator(".added")).to_have_text(["+b,<b>3</b>", "+c,4"])
    page.goto(f"{server.address}/p/astro/lake?in=/compared/&file=/compared/model.bin")
    page.get_by_label("Compare version 2 with").select_option("version 1")
    expect(page.get_by_text("2 B → 3 B, other bytes")).to_be_visible()
    expect(page.get_by_text("Not text: only sizes and digests")).to_be_visible()


def test_file_sets_have_versions_and_the_graph_leads_from_output_to_input(
    server: ServerProcess, page: Page, ana: Client, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("one")
    ana.lake.upload(tmp_path / "a.txt", "/raw/")
    page.goto(f"{server.address}/p/astro/lake/sets")
    (tmp_path / "b.txt").write_text("two")
    ana.lake.upload(tmp_path / "b.txt", "/raw/")
    for sources in ("/raw/a.txt:1", "/raw/"):
        page.get_by_role("button", name="New file set").click()
        page.get_by_label("Name of the set").fill("raw")
        page.get_by_label("Made of").fill(sources)
        page.get_by_role("button", name="Create").click()
        page.get_by_role("dialog").wait_for(state="detached")
    page.get_by_role("link", name="raw:2").click()
    expect(page.get_by_role("dialog")).to_contain_text("added /raw/b.txt")
    with page.expect_download() as saved:
        page.get_by_role("dialog").get_by_role("link", name="Download as zip").first.click()
    assert sorted(name.rpartition("/")[2] for name in zipfile.ZipFile(saved.value.path()).namelist()) == [
        "a.txt",
        "b.txt",
    ]
    job = ana.jobs.submit(
        ["sh", "-c", "echo x > output/x"], name="fold the raw data", input="raw:2", resources=SMALL
    )
    output = job.wait().about.output_set
    page.goto(f"{server.address}/p/astro/provenance?from={output}")
    expect(page.get_by_role("group", name="File set raw:2")).to_be_visible()
    page.get_by_role("group", name=f"File set {output}").click()
    expect(page.get_by_role("complementary")).to_contain_text("Made by fold the raw data")
    expect(page.get_by_role("group", name=f"File set {output}")).to_contain_text("output")
    expect(page.locator(".react-flow__edge-text")).to_have_text("fold the raw data")
    page.goto(f"{server.address}/p/astro/lake/search?kind=job&q=name+%3D+%22{job.id}%22")
    page.get_by_role("link", name="fold the raw data").click()
    expect(page.get_by_role("heading", name="fold the raw data")).to_be_visible()
    page.goto(f"{server.address}/p/astro/lake/sets")
    expect(page.get_by_role("link", name="raw:2")).to_be_visible()
    expect(page.get_by_role("link", name=str(output))).to_have_count(0)
    page.get_by_label("Outputs of jobs that nobody named").click()  # it is ticked once the address says so
    expect(page.get_by_role("link", name=str(output))).to_be_visible()
    page.goto(f"{server.address}/p/astro/provenance?from={output}")
    page.get_by_role("group", name="File set raw:2").click()
    page.get_by_role("button", name="Trace forward").click()
    expect(page).to_have_url(re.compile("from=raw%3A2&direction=forward"))
    expect(page.get_by_role("group", name=f"File set {output}")).to_be_visible()


def test_going_back_brings_the_earlier_query_back(server: ServerProcess, page: Page) -> None:
    page.goto(f"{server.address}/p/astro/lake/search?kind=job&q=rate+%3E+1")
    query = page.get_by_label("Query")
    query.fill("rate > 2")
    page.get_by_role("button", name="Search").click()
    expect(page).to_have_url(re.compile("rate.*2$"))
    page.go_back()
    expect(query).to_have_value("rate > 1")


def test_what_a_job_left_is_saved_linked_to_and_written_about(
    server: ServerProcess, page: Page, ana: Client
) -> None:
    told = "echo first; echo '[EASEL_METRIC] loss=0.5 step=1'; echo '[EASEL_METRIC] loss=0.25 step=2'; echo oh >&2"
    job = ana.jobs.submit(["sh", "-c", told], name="kept", resources=SMALL).wait()
    page.goto(f"{server.address}/p/astro/jobs/{job.id}?line=2")
    expect(page.locator(".log-line.wanted")).to_contain_text("loss")
    expect(page.locator(".log-line.err")).to_contain_text("stderr oh")
    expect(page.get_by_label("Follow")).not_to_be_checked()
    page.get_by_role("link", name="Line 1", exact=True).click()
    expect(page).to_have_url(re.compile(r"\?line=1$"))
    with page.expect_download() as saved:
        page.get_by_role("link", name="Download", exact=True).first.click()
    assert "first" in saved.value.path().read_text()
    with page.expect_download() as saved:
        page.get_by_role("button", name=re.compile("^Save loss .*as CSV|^Save loss as CSV")).click()
    assert "0.25" in saved.value.path().read_text()
    with page.expect_download() as saved:
        page.get_by_role("button", name=re.compile("^Save loss .*as PNG|^Save loss as PNG")).click()
    assert saved.value.path().read_bytes().startswith(b"\x89PNG")
    page.get_by_placeholder("Write a note").fill("the one to keep")
    page.get_by_role("button", name="Add note").click()
    expect(page.get_by_role("region", name="Notes")).to_contain_text("the one to keep")
    page.get_by_role("button", name="In code").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"easel jobs show {job.id[-6:]}")


def test_several_jobs_are_run_again_and_killed_at_once(
    server: ServerProcess, page: Page, ana: Client
) -> None:
    for number in (1, 2):
        ana.jobs.submit(["sleep", "1000"], name=f"dozing {number}", resources=SMALL)
    page.goto(f"{server.address}/p/astro/jobs?name=dozing")
    chosen = page.get_by_role("checkbox", name=re.compile("Choose dozing"))
    expect(chosen).to_have_count(2)
    for box in chosen.all():
        box.check()
    page.get_by_role("button", name="Run again").click()
    expect(page.get_by_text("2 jobs submitted again.")).to_be_visible()
    expect(chosen).to_have_count(4)
    for box in chosen.all():
        box.check()
    page.get_by_role("button", name="Kill 4").click()
    page.get_by_role("dialog").get_by_role("button", name="Kill 4 jobs").click()
    expect(page.get_by_text("4 jobs asked to end.")).to_be_visible()
    expect(page.locator(".state.killed")).to_have_count(4)


@pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="the documents were not built")
def test_documents_are_searched_and_the_api_is_explored_without_the_internet(
    server: ServerProcess, page: Page
) -> None:
    foreign: list[str] = []
    ours = (server.address, "data:", "blob:")
    page.on("request", lambda one: None if one.url.startswith(ours) else foreign.append(one.url))
    page.goto(f"{server.address}/docs/")
    page.get_by_placeholder("Search").fill("fair share")
    found = page.locator(".md-search-result__link").first
    expect(found).to_be_visible()
    found.click()
    expect(page).not_to_have_url(f"{server.address}/docs/")
    page.goto(f"{server.address}/api/docs")
    page.locator(".opblock-tag").first.click()
    page.locator(".opblock-summary").first.click()
    expect(page.get_by_role("button", name="Execute").first).to_be_visible()
    assert foreign == []
