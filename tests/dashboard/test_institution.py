"""What an institution's admins and newcomers do in the browser: the platform's parts, messages, invitations."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.dashboard.people import person
from tests.dashboard.test_access import AXE, broken_rules, too_wide

from easel.sdk.client import Client
from easel.testing import browser
from easel.testing.engine import until
from easel.testing.server import ServerProcess

TABS = {
    "projects": "Projects",
    "people": "People and programs",
    "devices": "Reservations",
    "quotas": "Quotas",
    "storage": "Storage",
    "prices": "Prices",
    "messages": "Messages",
    "health": "Health",
}


@pytest.fixture(scope="module")
def root(chrome: Browser, server: ServerProcess) -> Iterator[Page]:
    """Logged in as the platform's admin."""
    context = chrome.new_context()
    context.set_default_timeout(60_000)
    page = context.new_page()
    browser.log_in(page, server.address, server.admin_token)
    yield page
    context.close()


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: npm ci in web/")
def test_every_page_of_the_admin_fits_and_meets_wcag_aa(
    root: Page, server: ServerProcess, ana: Client
) -> None:
    """At three widths; the colours of the dark theme are checked at the middle one."""
    pages = {f"/platform?tab={tab}": heading for tab, heading in TABS.items()}
    pages |= {"/audit": "Audit", "/messages": "Ways to reach you", "/account": "Join a project"}
    pages |= {"/p/astro/people": "Quotas", "/device?code=BCDF-GHJK": "Log in another machine"}
    wrong: dict[str, list[str]] = {}
    ana.messages.add("mail", "ana@example.org", ["job-ended"])
    for path, heading in pages.items():
        root.goto(server.address + path)
        root.get_by_role("heading", name=heading).first.wait_for()
        root.get_by_text("Loading…").first.wait_for(state="detached")
        for width in (390, 1024, 1440):
            root.set_viewport_size({"width": width, "height": 900})
            found = [too_wide(root), *broken_rules(root, "light")]
            if width == 1024:
                root.emulate_media(color_scheme="dark")
                found += broken_rules(root, "dark")
            _keep_picture(root, path, width)
            root.emulate_media(color_scheme="light")
            if any(found):
                wrong[f"{path} at {width}"] = [each for each in found if each]
    assert wrong == {}


def _keep_picture(page: Page, path: str, width: int) -> None:
    """Pictures for whoever wants to look: EASEL_PICTURES names a folder."""
    if folder := os.environ.get("EASEL_PICTURES"):
        name = path.strip("/").replace("/", "-").replace("?", "-").replace("=", "-")
        page.screenshot(path=Path(folder) / f"{name}-{width}.png", full_page=True)


def test_somebody_is_disabled_and_let_in_again(root: Page, server: ServerProcess) -> None:
    leaver = person(server, "leaver")
    root.goto(f"{server.address}/platform?tab=people")
    row = root.get_by_role("row").filter(has_text="leaver")
    expect(row).to_contain_text("astro")
    root.once("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Disable leaver").click()
    expect(root.get_by_role("status")).to_contain_text("leaver is disabled: 1 token stopped working")
    expect(row).to_contain_text("disabled")
    row.get_by_role("button", name="Let in leaver").click()
    expect(row.get_by_role("button", name="Disable leaver")).to_be_visible()
    leaver.close()


def test_a_device_is_reserved_and_a_quota_set(root: Page, server: ServerProcess) -> None:
    root.goto(f"{server.address}/platform?tab=devices")
    root.get_by_label("For the project").select_option("bio")
    until = (datetime.now() + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M")  # noqa: DTZ005 - as the field wants it
    root.get_by_label("Until").fill(until)
    root.get_by_role("button", name="Reserve").click()
    kept = root.get_by_role("row").filter(has_text="bio")
    kept.get_by_role("button", name="Cancel the reservation").click()
    expect(kept).to_have_count(0)
    root.goto(f"{server.address}/platform?tab=quotas")
    root.get_by_role("main").get_by_role("combobox").first.select_option("bio")
    root.get_by_label("Jobs at a time").fill("7")
    root.get_by_label("Gigabytes").fill("2.5")
    root.get_by_role("button", name="Set the quota").click()
    own = root.get_by_role("row").filter(has_text="the project")
    expect(own).to_contain_text("0 of 7")
    expect(own).to_contain_text("of 2.5 GB")


def test_the_charges_of_a_month_are_shown_and_saved(root: Page, server: ServerProcess, ana: Client) -> None:
    ana.jobs.submit(["sleep", "1"], resources={"vcpu": 0.5, "memory_mb": 64}).wait()
    admin, month = server.client(), f"{datetime.now(UTC):%Y-%m}"
    until(lambda: any(line.project == "astro" for line in admin.bills.chargeback(month).items), 60)
    root.goto(f"{server.address}/platform?tab=prices")
    charges = root.get_by_role("region", name="Charges of the month")
    expect(charges.get_by_role("row").filter(has_text="astro").first).to_contain_text("USD")
    with root.expect_download() as saved:
        root.get_by_role("link", name="CSV").click()
    assert saved.value.path().read_text().startswith("project,person,jobs,hours,GPU-hours,amount,currency")
    root.get_by_label("only GPUs while they were held idle").check()
    expect(root.get_by_text("Nothing in that month.")).to_be_visible()
    expect(root.get_by_text("No job holds a GPU for nothing.")).to_be_visible()


def test_a_way_to_be_told_is_added_changed_and_unsubscribed(page: Page, server: ServerProcess) -> None:
    page.goto(f"{server.address}/messages")
    form = page.get_by_role("region", name="Add a way").or_(page.locator("section").first)
    form.get_by_label("Address").fill("ana@uni.example")
    form.get_by_label("an app of mine is done").check()
    form.get_by_label("Quiet from").fill("22:00")
    form.get_by_label("Quiet until").fill("07:00")
    form.get_by_role("button", name="Add this way").click()
    card = page.get_by_role("article", name="Mail to ana@uni.example")
    expect(card).to_contain_text("an app of mine is done")
    expect(card).to_contain_text("not from 22:00 to 07:00")
    card.get_by_role("button", name="Change").click()
    card.get_by_label("One digest a day, at").fill("08:00")
    card.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("All of a day as one message at 08:00")
    card.get_by_role("button", name="Unsubscribe").click()
    expect(card).to_contain_text("stopped")
    card.get_by_role("button", name="Send again").click()
    expect(card).not_to_contain_text("stopped")


def test_an_invitation_is_accepted_in_the_browser(
    chrome: Browser, server: ServerProcess, ana: Client
) -> None:
    code = ana.invitations.create().code
    context = chrome.new_context()
    context.set_default_timeout(60_000)
    newcomer = context.new_page()
    newcomer.goto(server.address)
    newcomer.get_by_text("I have an invitation").click()
    newcomer.get_by_label("Code of the invitation").fill("no such code")
    newcomer.get_by_label("Your name here").fill("nora")
    newcomer.get_by_role("button", name="Join").click()
    expect(newcomer.get_by_role("alert")).to_contain_text("No open invitation has this code")
    newcomer.get_by_label("Code of the invitation").fill(code or "")
    newcomer.get_by_role("button", name="Join").click()
    newcomer.get_by_role("button", name="I have kept it: go on").click()
    newcomer.get_by_role("navigation", name="Sections").wait_for()
    newcomer.goto(f"{server.address}/p/astro/people")
    expect(newcomer.get_by_role("cell", name="nora", exact=True)).to_be_visible()
    context.close()
