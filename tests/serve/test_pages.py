"""The dashboard's files, and what is served where they were not built."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.serve.conftest import World

from easel.serve.pages import Pages

BROWSER = {"Accept": "text/html,application/xhtml+xml"}


def served(folder: Path) -> TestClient:
    app = FastAPI()
    app.router.default = Pages(app.router.default, folder)
    return TestClient(app)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<title>the page</title>")
    (tmp_path / "assets" / "main-abc.js").write_text("let x = 1;\n" * 500)
    return tmp_path


@pytest.mark.parametrize("path", ["/", "/p/astro/jobs", "/p/astro/jobs/job_1?x=1", "/no/such/thing"])
def test_every_address_of_a_browser_gets_the_one_page(built: Path, path: str) -> None:
    answer = served(built).get(path, headers=BROWSER)
    assert (answer.status_code, answer.text) == (200, "<title>the page</title>")
    assert answer.headers["cache-control"] == "no-cache"


def test_assets_are_compressed_and_kept_for_ever(built: Path) -> None:
    answer = served(built).get("/assets/main-abc.js", headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert "immutable" in answer.headers["cache-control"]
    assert answer.text.startswith("let x")


@pytest.mark.parametrize(
    "path", ["/assets/none.js", "/assets/../index.html", "/assets/%2e%2e/%2e%2e/pages.py"]
)
def test_what_is_no_asset_is_not_found(built: Path, path: str) -> None:
    answer = served(built).get(path)
    assert answer.status_code == 404


def test_without_a_build_a_plain_page_says_how(tmp_path: Path) -> None:
    answer = served(tmp_path / "none").get("/", headers=BROWSER)
    assert answer.status_code == 200
    assert "npm run build" in answer.text


def test_the_api_keeps_its_own_answers(world: World) -> None:
    for path in ("/api/v1/nothing", "/api", "/blobs/none"):
        assert world.http.get(path, headers=BROWSER).headers["content-type"] == "application/problem+json"
    assert world.http.get("/no-page", headers={"Accept": "*/*"}).status_code == 404
    assert world.http.post("/p/astro", headers=BROWSER).status_code == 404
    assert world.http.post("/healthz").status_code == 405


def test_a_page_allows_no_inline_script_or_style_and_no_frame(world: World) -> None:
    answer = world.http.get("/", headers=BROWSER)
    policy = answer.headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert answer.headers["x-frame-options"] == "DENY"
