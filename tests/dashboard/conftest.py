"""A real server, a real browser, and people who use them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect
from tests.dashboard.people import person, token_of

from easel.declare.roles import Role
from easel.sdk.client import Client
from easel.serve.pages import BUILT
from easel.testing import browser
from easel.testing.server import ServerProcess, running

PATIENCE_MS = 60_000
"""For anything that a page is waited for: a busy machine is no failure."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    missing = None
    if browser.find_chromium() is None:
        missing = "chromium is not installed"
    elif not (BUILT / "index.html").is_file():
        missing = "the dashboard was not built"
    for item in items:
        if missing and "/dashboard/" in str(item.path):
            item.add_marker(pytest.mark.skip(reason=missing))


@pytest.fixture(scope="session", autouse=True)
def patience() -> None:
    expect.set_options(timeout=PATIENCE_MS)


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


@pytest.fixture(scope="module")
def ana(server: ServerProcess) -> Client:
    return person(server, "ana", Role.ADMIN)


@pytest.fixture
def page(chrome: Browser, server: ServerProcess, ana: Client) -> Iterator[Page]:
    """Logged in as ana. Whatever the console complains of, and every breach of the policy, fails the test."""
    context = chrome.new_context()
    context.set_default_timeout(PATIENCE_MS)
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
