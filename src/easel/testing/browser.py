"""Debian's Chromium, headless, driven by Playwright: for tests of the dashboard and for its pictures."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

from playwright.sync_api import Browser, Page, sync_playwright

_FLAGS = [
    "--no-sandbox",  # root in a container has no user namespaces
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
]


def find_chromium() -> str | None:
    return os.environ.get("EASEL_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


@contextlib.contextmanager
def running() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def log_in(page: Page, address: str, token: str) -> None:
    page.goto(address)
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("navigation", name="Sections").wait_for()
    # the first page sends on to a project; a click before that may be scrolled away from under the pointer
    settled = 'nav [aria-current="page"], main:has-text("You are in no project")'
    page.locator(settled).first.wait_for()
