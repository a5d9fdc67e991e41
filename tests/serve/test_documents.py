"""The documents at /docs and the explorer at /api/docs: from this server alone, running only what is ours."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from easel.serve import documents


def site(folder: Path) -> Path:
    script = "let theme = 1"
    (folder / "tutorial").mkdir()
    (folder / "index.html").write_text(f"<h1>Easel</h1><script>{script}</script>")
    (folder / "tutorial" / "index.html").write_text("<h1>Your first model</h1>")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (folder / "scripts.json").write_text(json.dumps([digest]))
    return folder


def client(folder: Path) -> TestClient:
    app = FastAPI(docs_url=None)
    documents.install(app, folder)
    return TestClient(app)


def test_pages_are_served_under_their_folders(tmp_path: Path) -> None:
    browser = client(site(tmp_path))
    assert "<h1>Easel</h1>" in browser.get("/docs").text
    assert "Your first model" in browser.get("/docs/tutorial/").text
    assert browser.get("/docs/../../etc/passwd").status_code == 404
    assert browser.get("/docs/%2e%2e/%2e%2e/etc/passwd").status_code == 404


def test_only_the_scripts_that_the_build_noted_may_run(tmp_path: Path) -> None:
    policy = client(site(tmp_path)).get("/docs/").headers["content-security-policy"]
    (noted,) = json.loads((tmp_path / "scripts.json").read_text())
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    assert scripts == f"script-src 'self' 'sha256-{noted}'"


@pytest.mark.parametrize("folder", [".", "never-made"])
def test_without_a_site_a_page_says_how_to_build_it(tmp_path: Path, folder: str) -> None:
    answer = client(tmp_path / folder).get("/docs/")
    assert answer.status_code == 200
    assert "scripts/build_site.py" in answer.text


def test_the_explorer_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    page = client(tmp_path).get("/api/docs").text
    assert "swagger-ui-bundle.js" in page
    assert "http" not in page
    assert "<script>" not in page
