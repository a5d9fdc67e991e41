"""The dashboard in a real browser on a real server, as a newcomer would walk through it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Route, expect

from easel.declare.roles import Role
from easel.sdk.client import Client
from easel.serve.pages import BUILT
from easel.testing import browser
from easel.testing.server import ServerProcess, running

pytestmark = [
    pytest.mark.skipif(browser.find_chromium() is None, reason="chromium is not installed"),
    pytest.mark.skipif(not (BUILT / "index.html").is_file(), reason="the dashboard was not built"),
]
expect.set_options(timeout=20_000)  # a busy machine is no failure
COLOURS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SMALL = {"vcpu": 0.5, "memory_mb": 128}
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
NASTY = "<img src=x onerror=document.title='owned'>"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("server")) as started:
        root = started.client()
        root.projects.create("astro")
        root.projects.create("bio")
        yield started


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browser.running() as started:
        yield started


def person(server: ServerProcess, name: str, role: Role = Role.MEMBER, project: str = "astro") -> Client:
    secret = server.client(project=project).users.create(name, role).token.secret
    assert secret is not None
    return server.client(secret, project)


def token_of(client: Client) -> str:
    return client.connection.http.headers["Authorization"].removeprefix("Bearer ")


@pytest.fixture(scope="module")
def ana(server: ServerProcess) -> Client:
    return person(server, "ana", Role.ADMIN)


@pytest.fixture
def page(chrome: Browser, server: ServerProcess, ana: Client) -> Iterator[Page]:
    """Logged in as ana. Whatever the console complains of, and every breach of the policy, fails the test."""
    context = chrome.new_context()
    opened = context.new_page()
    complaints: list[str] = []

    def listen(message: ConsoleMessage) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            complaints.append(message.text)

    opened.on("console", listen)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    browser.log_in(opened, server.address, token_of(ana))
    yield opened
    context.close()
    assert complaints == []


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


def test_a_job_is_submitted_watched_to_its_end_and_run_again(server: ServerProcess, page: Page) -> None:
    page.goto(f"{server.address}/p/astro/jobs")
    page.get_by_role("button", name="New job").click()
    page.get_by_label("Name", exact=True).fill("counting")
    page.get_by_label("Command").fill(
        'for i in 1 2 3; do echo line $i; echo "[EASEL_METRIC] loss=0.$i step=$i"; done'
    )
    page.get_by_label("vCPU").fill("0.5")
    page.get_by_label("Memory").fill("128")
    page.get_by_role("button", name="Submit").click()
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
    page.get_by_role("button", name="Kill").click()
    expect(page.locator(".state.killed")).to_be_visible()
    expect(page.get_by_text("killed from the dashboard")).to_be_visible()


def test_the_list_follows_what_happens_elsewhere_and_filters_by_address(
    server: ServerProcess, page: Page, ana: Client
) -> None:
    page.goto(f"{server.address}/p/astro/jobs?name=elsewhere")
    expect(page.get_by_text("No job fits")).to_be_visible()
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    job = ana.jobs.submit(["true"], name="made elsewhere", resources=SMALL)
    row = page.get_by_role("row").filter(has_text="made elsewhere")
    expect(row).to_contain_text("finished")
    assert job.wait().state == "finished"
    expect(page.get_by_role("row")).to_have_count(2)


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


def test_names_with_markup_and_right_to_left_text_are_only_text(
    server: ServerProcess, page: Page, ana: Client
) -> None:
    arabic = "نموذج النجوم"
    ana.jobs.submit(["echo", NASTY], name=NASTY, resources=SMALL, tags={"note": NASTY}).wait()
    ana.jobs.submit(["true"], name=arabic + "-" * 60, resources=SMALL).wait()
    page.goto(f"{server.address}/p/astro/jobs")
    page.get_by_role("link", name=NASTY).click()
    expect(page.get_by_role("heading", name=NASTY)).to_be_visible()
    expect(page.get_by_role("log")).to_contain_text(NASTY)
    assert page.title() == "Easel"
    page.goto(f"{server.address}/p/astro")
    expect(page.get_by_role("heading", name="astro")).to_be_visible()
    assert page.title() == "Easel"
    assert page.locator("img[src=x]").count() == 0


def test_an_ended_session_brings_the_log_in_back_and_then_the_same_page(
    chrome: Browser, server: ServerProcess
) -> None:
    client = person(server, "forgetful")
    context = chrome.new_context()
    page = context.new_page()
    browser.log_in(page, server.address, token_of(client))
    page.goto(f"{server.address}/p/astro/people")
    expect(page.get_by_role("heading", name="Members")).to_be_visible()
    context.clear_cookies()
    page.get_by_role("link", name="Jobs").click()
    expect(page.get_by_text("Your session has ended")).to_be_visible()
    page.get_by_label("Token").fill(token_of(client))
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    context.close()


def test_a_member_sees_no_admin_controls_and_a_stranger_no_project(
    chrome: Browser, server: ServerProcess
) -> None:
    context = chrome.new_context()
    page = context.new_page()
    browser.log_in(page, server.address, token_of(person(server, "mia")))
    page.goto(f"{server.address}/p/astro/people")
    expect(page.get_by_role("heading", name="Members")).to_be_visible()
    expect(page.get_by_label("New person")).to_have_count(0)
    page.goto(f"{server.address}/p/bio/jobs")
    expect(page.get_by_role("alert").first).to_contain_text("no project 'bio', or not yours")
    context.close()


@pytest.mark.parametrize(("status", "words"), [(500, "The server failed"), (503, "The server is busy")])
def test_a_failing_server_is_explained_and_never_a_blank_page(
    server: ServerProcess, page: Page, status: int, words: str
) -> None:
    def fail(route: Route) -> None:
        route.fulfill(status=status, body="<html>proxy</html>", content_type="text/html")

    page.clock.install()
    page.route("**/api/v1/projects/astro/users?*", fail)
    page.goto(f"{server.address}/p/astro/people")
    alert = page.get_by_role("alert").first
    for _ in range(200):  # what may pass is asked for again, with pauses that begin when an answer has come
        page.clock.fast_forward(11_000)
        if alert.is_visible():
            break
        page.wait_for_timeout(100)
    expect(alert).to_contain_text(words)
    expect(page.get_by_role("navigation", name="Sections")).to_be_visible()
    page.unroute("**/api/v1/projects/astro/users?*")
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("heading", name="Members")).to_be_visible()


def test_files_are_uploaded_previewed_tagged_and_found(server: ServerProcess, page: Page) -> None:
    page.goto(f"{server.address}/p/astro/lake?in=/stars/")
    chooser = page.locator("input[type=file]")
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
    job = ana.jobs.submit(
        ["sh", "-c", "cp -r raw/. output/ 2>/dev/null; echo x > output/x"], input="raw:2", resources=SMALL
    )
    output = job.wait().about.output_set
    page.goto(f"{server.address}/p/astro/provenance?from={output}")
    expect(page.get_by_role("group", name="File set raw:2")).to_be_visible()
    page.get_by_role("group", name=f"File set {output}").click()
    expect(page.get_by_role("complementary")).to_contain_text(job.id)
    page.get_by_role("group", name="File set raw:2").click()
    page.get_by_role("button", name="Trace forward").click()
    expect(page).to_have_url(re.compile("from=raw%3A2&direction=forward"))
    expect(page.get_by_role("group", name=f"File set {output}")).to_be_visible()


def job_set(client: Client) -> str:
    made = client.jobs.submit(["sh", "-c", "echo 1 > output/x"], resources=SMALL).wait().about.output_set
    assert made is not None
    return made


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: npm ci in web/")
@pytest.mark.parametrize("colours", COLOURS)
def test_every_page_meets_wcag_aa(
    chrome: Browser, server: ServerProcess, ana: Client, colours: Literal["light", "dark"]
) -> None:
    job = ana.jobs.submit(
        ["sh", "-c", "echo '[EASEL_METRIC] loss=1 step=1'; exit 3"], name="seen", resources=SMALL
    )
    job.wait(check=False)
    context = chrome.new_context(color_scheme=colours)
    page = context.new_page()
    page.goto(server.address)
    page.get_by_label("Token").wait_for()
    found = {"log-in": broken_rules(page)}
    browser.log_in(page, server.address, token_of(ana))
    pages = {
        "/account": "Tokens",
        "/p/astro": "What happened",
        "/p/astro/jobs": "Jobs",
        f"/p/astro/jobs/{job.id}": "Metrics",
        f"/p/astro/jobs/compare?job={job.id}&job={job.rerun().id}": "Compare jobs",
        "/p/astro/people": "Members",
        "/p/astro/apps": "Apps",
        "/p/astro/spending": "Spending",
        "/p/astro/lake?in=/": "Lake",
        "/p/astro/lake/sets": "Lake",
        "/p/astro/lake/search": "Lake",
        f"/p/astro/provenance?from={job_set(ana)}": "Provenance",
    }
    for path, heading in pages.items():
        page.goto(server.address + path)
        page.get_by_role("heading", name=heading).wait_for()
        page.get_by_text("Loading…").first.wait_for(state="detached")
        found[path] = broken_rules(page)
    context.close()
    assert {path: rules for path, rules in found.items() if rules} == {}


def broken_rules(page: Page) -> list[str]:
    # The policy forbids inline script, so axe goes in through the debugger rather than as an element.
    page.evaluate(AXE.read_text())
    result = page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']})")
    return [f"{v['id']}: {v['nodes'][0]['html'][:150]}" for v in result["violations"]]


def test_the_page_comes_back_to_life_after_a_restart_of_the_server(chrome: Browser, tmp_path: Path) -> None:
    with running(tmp_path) as own:
        own.client().projects.create("astro")
        context = chrome.new_context()
        page = context.new_page()
        browser.log_in(page, own.address, own.admin_token)
        page.goto(f"{own.address}/p/astro")
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        own.kill()
        expect(page.get_by_text("Reconnecting…")).to_be_visible()
        own.start()
        own.client(project="astro").users.create("after-the-restart")
        expect(page.get_by_text("after-the-restart").first).to_be_visible(timeout=40_000)
        expect(page.get_by_text("Live", exact=True)).to_be_visible()
        context.close()
