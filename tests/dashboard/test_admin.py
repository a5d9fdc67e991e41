"""What admins do in the browser: people, limits, secrets, grants, budgets, prices."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, Page, expect
from tests.dashboard.people import SMALL, person

from easel.sdk.client import Client
from easel.testing import browser
from easel.testing.server import ServerProcess


def test_a_limit_of_active_jobs_is_set_beside_the_queue(
    server: ServerProcess, page: Page, ana: Client
) -> None:
    job = ana.jobs.submit(["sleep", "1000"], resources=SMALL)
    page.goto(f"{server.address}/p/astro/people")
    limit = page.get_by_label("Most active jobs of ana")
    limit.fill("3")
    with page.expect_response(lambda r: r.request.method == "PATCH" and r.ok):
        limit.press("Enter")
    assert next(queue for queue in ana.queues.list() if queue.user == "ana").max_active == 3
    page.reload()
    expect(page.get_by_label("Most active jobs of ana")).to_have_value("3")
    job.kill("seen enough")


def test_a_secret_is_kept_and_its_value_never_shown(server: ServerProcess, page: Page) -> None:
    page.goto(f"{server.address}/p/astro/people")
    page.get_by_label("Secret's name").fill("wandb-key")
    page.get_by_label("Secret value").fill("hunter2")
    page.get_by_role("button", name="Save the secret").click()
    expect(page.get_by_text("wandb-key", exact=True)).to_be_visible()
    assert "hunter2" not in page.content()
    page.once("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Remove the secret wandb-key").click()
    expect(page.get_by_text("wandb-key", exact=True)).to_have_count(0)


def test_a_grant_and_a_group_are_made_and_taken_back(server: ServerProcess, page: Page) -> None:
    person(server, "gus")
    page.goto(f"{server.address}/p/astro/people")
    page.get_by_label("Group").fill("lab")
    page.get_by_label("Its members").fill("gus")
    page.get_by_role("button", name="Set the group").click()
    expect(page.get_by_role("listitem").filter(has_text="lab: gus")).to_be_visible()
    page.get_by_label("Path or name").fill("/private/")
    page.get_by_label("For whom").fill("group:lab")
    page.get_by_role("button", name="Grant", exact=True).click()
    row = page.get_by_role("row").filter(has_text="/private/")
    expect(row).to_contain_text("group:lab")
    row.get_by_role("button").click()
    expect(row).to_have_count(0)


def test_a_budget_is_set_and_shown_on_the_overview(server: ServerProcess, page: Page) -> None:
    page.goto(f"{server.address}/p/astro/spending")
    page.get_by_role("spinbutton", name="Limit").fill("12.5")
    page.get_by_role("button", name="Set the budget").click()
    expect(page.get_by_text("of 12.50 USD a month")).to_be_visible()
    page.goto(f"{server.address}/p/astro")
    expect(page.get_by_text("of 12.50 USD a month")).to_be_visible()


def test_a_new_limit_leaves_what_else_was_said_of_the_budget(
    server: ServerProcess, page: Page, ana: Client
) -> None:
    ana.bills.set_budget(12.5, period="total", hard_stop=False, warn_at=[0.25])
    page.goto(f"{server.address}/p/astro/spending")
    page.get_by_role("spinbutton", name="Limit").fill("13")
    page.get_by_role("button", name="Set the budget").click()
    expect(page.get_by_text("of 13.00 USD in all")).to_be_visible()
    found = ana.bills.budget()
    assert (found.period, found.hard_stop, found.warn_at) == ("total", False, [0.25])
    ana.bills.remove_budget()


def test_the_overview_says_what_needs_attention_and_what_today_has_cost(
    server: ServerProcess, page: Page, ana: Client
) -> None:
    pia = person(server, "pia")
    server.client(project="astro").queues.change("pia", paused=True)
    pia.jobs.submit(["true"], resources=SMALL)
    ana.jobs.submit(["sh", "-c", "exit 3"], name="doomed", resources=SMALL).wait(check=False)
    page.goto(f"{server.address}/p/astro")
    alerts = page.get_by_role("list", name="Alerts")
    expect(alerts).to_contain_text("Paused: pia")
    expect(alerts).to_contain_text("failed within the last hour")
    expect(page.get_by_text(re.compile(r"spent today"))).to_be_visible()
    alerts.get_by_role("listitem").filter(has_text="failed").get_by_role("link").click()
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    expect(page.get_by_role("link", name="doomed")).to_be_visible()


def test_a_platform_admin_who_is_no_member_has_a_name_in_a_project(server: ServerProcess, page: Page) -> None:
    root = server.client(project="astro")
    name = root.whoami().user.name
    job = root.jobs.submit(["true"], name="from above", resources=SMALL)
    page.goto(f"{server.address}/p/astro/jobs/{job.id}")
    expect(page.locator("dl.facts div").filter(has_text="Owner")).to_contain_text(name)
    page.goto(f"{server.address}/p/astro")
    event = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="from above")).first
    expect(event).to_contain_text(name)
    page.goto(f"{server.address}/p/astro/jobs?name=from+above")
    expect(page.get_by_role("row").filter(has_text="from above")).to_contain_text(name)


def test_a_platform_admin_opens_a_project_admits_somebody_and_sets_prices(
    chrome: Browser, server: ServerProcess
) -> None:
    traveller = person(server, "traveller", project="bio")
    context = chrome.new_context()
    context.set_default_timeout(60_000)
    page = context.new_page()
    browser.log_in(page, server.address, server.admin_token)
    page.goto(f"{server.address}/platform")
    page.get_by_label("Name", exact=True).fill("geo")
    page.get_by_role("button", name="Open a project").click()
    expect(page.get_by_role("link", name="geo")).to_be_visible()
    page.get_by_role("link", name="Prices").click()
    page.get_by_label("Price book").select_option("workstation")
    page.get_by_role("button", name="Set the prices").click()
    expect(page.get_by_text(re.compile("workstation, since"))).to_be_visible()
    page.get_by_role("link", name="Projects").click()
    page.get_by_role("link", name="geo").click()
    page.get_by_label("Somebody from another project").fill(traveller.whoami().user.id)
    page.get_by_role("button", name="Admit").click()
    expect(page.get_by_role("cell", name="traveller", exact=True)).to_be_visible()
    context.close()
