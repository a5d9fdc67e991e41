"""Bad input, lost sessions, failing servers, people without rights: explained, never a blank page, never a leak."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, Route, expect
from tests.dashboard.people import NASTY, SMALL, person, token_of

from easel.sdk.client import Client
from easel.testing import browser
from easel.testing.server import ServerProcess, running


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
    assert page.title() == f"{NASTY} · Jobs · astro · Easel"
    page.goto(f"{server.address}/p/astro")
    expect(page.get_by_role("heading", name="astro")).to_be_visible()
    assert page.title() == "Overview · astro · Easel"
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
    # looking at the tab again asks who is here; a question of the page's own may have told it before
    page.evaluate("window.dispatchEvent(new Event('visibilitychange'))")
    expect(page.get_by_text("Your session has ended")).to_be_visible()
    page.get_by_label("Token").fill(token_of(client))
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Members")).to_be_visible()
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
    expect(page.get_by_role("alert")).to_contain_text("no project 'bio', or not yours")
    page.goto(f"{server.address}/platform")
    expect(page.get_by_text("for the admins of the whole installation")).to_be_visible()
    expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)
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


def test_two_tabs_follow_each_other_and_a_log_out_in_one_ends_both(
    chrome: Browser, server: ServerProcess
) -> None:
    client = person(server, "twotabs")
    context = chrome.new_context()
    context.set_default_timeout(60_000)
    first, second = context.new_page(), context.new_page()
    browser.log_in(first, server.address, token_of(client))
    for tab in (first, second):
        tab.goto(f"{server.address}/p/astro/jobs?name=tabbed")
        expect(tab.get_by_text("No job fits")).to_be_visible()
    client.jobs.submit(["true"], name="tabbed", resources=SMALL).wait()
    for tab in (first, second):
        tab.bring_to_front()
        expect(tab.get_by_role("row").filter(has_text="tabbed")).to_contain_text("finished")
    first.goto(f"{server.address}/account")
    first.get_by_role("button", name="Log out").click()
    expect(first.get_by_label("Token")).to_be_visible()
    second.bring_to_front()
    second.get_by_role("link", name="People").click()
    expect(second.get_by_label("Token")).to_be_visible()
    context.close()


def test_a_change_from_another_site_is_refused(chrome: Browser, server: ServerProcess) -> None:
    client = person(server, "careful")
    context = chrome.new_context()
    page = context.new_page()
    browser.log_in(page, server.address, token_of(client))
    cookies = {cookie.get("name", ""): cookie.get("value", "") for cookie in context.cookies()}
    session = next(cookie for cookie in context.cookies() if cookie.get("name") == "easel_session")
    assert session.get("httpOnly")
    assert session.get("sameSite") in ("Lax", "Strict")
    body = {"name": "stolen"}
    forged = httpx.post(f"{server.address}/api/v1/tokens", json=body, cookies=cookies)
    assert forged.status_code == 403
    assert "CSRF" in forged.json()["detail"]
    script = "fetch('/api/v1/tokens', {method: 'POST', body: '{\"name\": \"stolen\"}'}).then((r) => r.status)"
    assert page.evaluate(script) in (403, 415)
    context.close()


def test_the_page_cannot_be_framed(chrome: Browser, server: ServerProcess, tmp_path: Path) -> None:
    page = chrome.new_page()
    outside = tmp_path / "outside.html"
    outside.write_text(f"<iframe id=f src='{server.address}/'></iframe>")
    page.goto(outside.as_uri())
    frame = page.frame_locator("#f")
    expect(frame.get_by_label("Token")).to_have_count(0)
    headers = httpx.get(server.address, headers={"Accept": "text/html"}).headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-frame-options"] == "DENY"
    page.close()


def test_an_inline_script_that_gets_into_the_page_does_not_run(
    chrome: Browser, server: ServerProcess
) -> None:
    page = chrome.new_page()  # one of its own, because the browser complains of the breach
    page.goto(server.address)
    page.get_by_label("Token").wait_for()
    refused = page.evaluate(
        """() => new Promise((done) => {
          document.addEventListener("securitypolicyviolation", (e) => done(e.effectiveDirective), {once: true});
          const script = document.createElement("script");
          script.textContent = "document.title = 'owned'";
          document.body.append(script);
        })"""
    )
    assert refused.startswith("script-src")
    assert page.title() == "Easel"
    page.close()


def test_names_of_files_sets_studies_and_tags_are_only_text(
    server: ServerProcess, page: Page, ana: Client, tmp_path: Path
) -> None:
    (tmp_path / "x.txt").write_text(NASTY)
    ana.lake.upload(tmp_path / "x.txt", f"/odd/{NASTY.replace('/', '')}.txt")
    page.goto(f"{server.address}/p/astro/lake?in=/odd/")
    page.get_by_role("link", name="onerror").click()
    expect(page.locator("pre.preview, .preview")).to_contain_text(NASTY)
    page.get_by_label("Tag").fill("note")
    page.get_by_label("Value").fill(NASTY)
    page.get_by_role("button", name="Set").click()
    expect(page.locator(".tag", has_text="onerror")).to_be_visible()
    assert page.locator("img[src=x]").count() == 0
    assert page.title() == "Lake · astro · Easel"


@pytest.mark.parametrize("path", ["apps/none", "studies/none", "jobs/none", "provenance?from=none:9"])
def test_what_is_not_there_is_said_so(server: ServerProcess, page: Page, path: str) -> None:
    page.goto(f"{server.address}/p/astro/{path}")
    expect(page.get_by_role("alert").first).to_be_visible()
    expect(page.get_by_role("navigation", name="Sections")).to_be_visible()
