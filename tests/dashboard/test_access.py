"""Every page by the rules of WCAG AA, in light and in dark, on a phone, and without a mouse."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect
from tests.dashboard.people import SMALL, token_of

from easel.sdk.client import Client
from easel.testing import browser
from easel.testing.engine import until
from easel.testing.server import ServerProcess

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
PATIENCE_MS = 60_000

RULES = {
    "light": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"],
    "dark": ["color-contrast"],  # the rest of a page is the same in both
}


def job_set(client: Client) -> str:
    made = client.jobs.submit(["sh", "-c", "echo 1 > output/x"], resources=SMALL).wait().about.output_set
    assert made is not None
    return made


@pytest.fixture(scope="module")
def seen(ana: Client, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A job with a curve, an app and a study, to look at."""
    job = ana.jobs.submit(
        ["sh", "-c", "echo '[EASEL_METRIC] loss=1 step=1'; exit 3"], name="seen", resources=SMALL
    )
    job.wait(check=False)
    table = tmp_path_factory.mktemp("stars") / "a-table-with-a-long-name.csv"
    table.write_text("star,period,magnitude,remarks\nTIC 4000,0.41,11," + "x" * 60)
    ana.lake.upload(table, f"/stars/{table.name}")
    ana.apps.declare("seen", "{input: {[a :: Number], []}, output: {[Category[x, y]], []}}")
    ana.apps.feed("seen", [({"a": float(i)}, "xy"[i % 2]) for i in range(4)])
    until(lambda: ana.apps.get("seen").best is not None, 180)
    ana.apps.set("seen", paused=True)  # further trials would compute beside everything that follows
    study = {
        "name": "seen",
        "job": {
            "run": {"kind": "command", "argv": ["echo", "[EASEL_METRIC] x={a} step=1"]},
            "resources": SMALL,
        },
        "space": {"dimensions": [{"name": "a", "type": "float", "low": 0, "high": 1}]},
        "goal": {"maximise": "x", "budget": {"count": 2}},
        "strategy": "random",
    }
    ana.connection.request("POST", f"{ana.root}/studies", json=study)
    return job.id


def look_at(page: Page, server: ServerProcess, ana: Client, seen: str) -> Iterator[str]:
    """Opens every page in turn and yields its path when it has loaded."""
    headings = {
        "/account": "Tokens",
        "/p/astro": "What happened",
        "/p/astro/jobs": "Jobs",
        f"/p/astro/jobs/{seen}": "Metrics",
        f"/p/astro/jobs/compare?job={seen}&job={ana.jobs.get(seen).rerun().id}": "Compare jobs",
        "/p/astro/people": "Members",
        "/p/astro/apps": "Apps",
        "/p/astro/apps/seen": "seen",
        "/p/astro/apps/seen?tab=examples": "seen",
        "/p/astro/apps/seen?tab=candidates": "seen",
        "/p/astro/apps/seen?tab=next": "seen",
        "/p/astro/apps/seen?tab=try": "seen",
        "/p/astro/apps/seen?tab=code": "seen",
        "/p/astro/studies": "Studies",
        "/p/astro/studies/seen": "seen",
        "/p/astro/provision": "Provisioning",
        "/p/astro/simulator": "Simulator",
        "/p/astro/spending": "Spending",
        "/p/astro/lake?in=/": "Lake",
        "/p/astro/lake?in=/stars/&file=/stars/a-table-with-a-long-name.csv": "Lake",
        "/p/astro/lake/sets": "Lake",
        "/p/astro/lake/search": "Lake",
        f"/p/astro/provenance?from={job_set(ana)}": "Provenance",
    }
    for path, heading in headings.items():
        page.goto(server.address + path)
        page.get_by_role("heading", name=heading).first.wait_for()
        page.get_by_text("Loading…").first.wait_for(state="detached")
        yield path


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: npm ci in web/")
def test_every_page_meets_wcag_aa_in_light_and_in_dark_and_fits_two_widths(
    chrome: Browser, server: ServerProcess, ana: Client, seen: str
) -> None:
    context = chrome.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto(server.address)
    page.get_by_label("Token").wait_for()
    found = {"log-in": broken_in_both(page)}
    browser.log_in(page, server.address, token_of(ana))
    for path in look_at(page, server, ana, seen):
        found[path] = broken_in_both(page)
        for width in (1440, 1024):
            page.set_viewport_size({"width": width, "height": 900})
            found[path] += [f"at {width}: {wrong}"] if (wrong := too_wide(page)) else []
    context.close()
    assert {path: rules for path, rules in found.items() if rules} == {}


def broken_in_both(page: Page) -> list[str]:
    """Returns what is wrong with a page in light, and with its colours in dark: a page that is loaded follows."""
    found = broken_rules(page, "light")
    page.emulate_media(color_scheme="dark")
    found += [f"in dark, {rule}" for rule in broken_rules(page, "dark")]
    page.emulate_media(color_scheme="light")
    return found


def broken_rules(page: Page, colours: str) -> list[str]:
    # The policy forbids inline script, so axe goes in through the debugger rather than as an element.
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE.read_text())
    result = page.evaluate("rules => axe.run({runOnly: rules})", RULES[colours])
    return [f"{v['id']}: {v['nodes'][0]['html'][:150]}" for v in result["violations"]]


PHONE: ViewportSize = {"width": 390, "height": 844}
TOO_WIDE = """
() => {
  const window_ = document.documentElement, main = document.querySelector("main");
  if (window_.scrollWidth <= window_.clientWidth && main.scrollWidth <= main.clientWidth) return null;
  const right = main.getBoundingClientRect().left + main.clientWidth + 1;
  const out = [...main.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > right);
  const outermost = out.filter((e) => !out.includes(e.parentElement));
  return `${main.scrollWidth} of ${main.clientWidth}: ${outermost.map((e) => e.outerHTML.slice(0, 100)).join(" | ")}`;
}
"""


def too_wide(page: Page) -> str:
    """What is wider than the window, once charts have followed its change: they hear of it a moment later."""
    for _ in range(30):
        if not (found := page.evaluate(TOO_WIDE)):
            break
        page.wait_for_timeout(100)
    return str(found or "")


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: npm ci in web/")
def test_every_page_fits_a_phone(chrome: Browser, server: ServerProcess, ana: Client, seen: str) -> None:
    """Wide tables scroll inside their frame; nothing else is wider than the window."""
    context = chrome.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    browser.log_in(page, server.address, token_of(ana))
    found: dict[str, list[str | None]] = {}
    for path in look_at(page, server, ana, seen):
        found[path] = [page.evaluate(TOO_WIDE), *broken_rules(page, "light")]
    context.close()
    assert {path: wrong for path, wrong in found.items() if any(wrong)} == {}


def test_every_section_is_reached_on_a_phone(chrome: Browser, server: ServerProcess, ana: Client) -> None:
    context = chrome.new_context(viewport=PHONE, has_touch=True, is_mobile=True)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    browser.log_in(page, server.address, token_of(ana))
    sections = page.get_by_role("navigation", name="Sections")
    for name in ("People", "Jobs", "Simulator", "Account", "Overview"):
        if name == "Overview":
            page.get_by_role("link", name="Easel").tap()
        else:
            sections.get_by_role("link", name=name, exact=True).tap()
        here = sections.get_by_role("link", name=name, exact=True)
        expect(here).to_have_attribute("aria-current", "page")
        expect(here).to_be_in_viewport()
    context.close()


def test_a_page_is_reached_and_skipped_to_with_the_keyboard_alone(
    chrome: Browser, server: ServerProcess, ana: Client
) -> None:
    context = chrome.new_context()
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    browser.log_in(page, server.address, token_of(ana))
    page.goto(f"{server.address}/p/astro")
    expect(page.get_by_role("heading", name="What happened")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the page")).to_be_focused()
    people = page.get_by_role("link", name="People", exact=True)
    for _ in range(30):
        if people.evaluate("link => link === document.activeElement"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="People", exact=True)).to_be_visible()
    context.close()
