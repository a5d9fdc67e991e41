"""The router that knows by one look that none of its routes is meant answers as FastAPI's own."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI
from fastapi.testclient import TestClient

from easel.serve.router import Router


def served(kind: type[APIRouter]) -> tuple[TestClient, APIRouter]:
    """An app with two routers of the kind, as ours are: paths with names, with whatever follows, and without."""
    one, two = kind(prefix="/jobs/{job}"), kind(prefix="/jobs")
    one.get("/log")(lambda job: {"log": job})
    one.get("/files/{path:path}")(lambda job, path: {"job": job, "path": path})
    one.post("/log")(lambda job: {"posted": job})
    two.get("")(lambda: {"all": True})
    two.get("/{job}")(lambda job: {"job": job})
    app = FastAPI()
    for router in (one, two):
        app.include_router(router)
    return TestClient(app), two


ASKED = [
    ("GET", "/jobs"),
    ("GET", "/jobs/"),
    ("GET", "/jobs/7"),
    ("GET", "/jobs/7/log"),
    ("POST", "/jobs/7/log"),
    ("DELETE", "/jobs/7/log"),
    ("PUT", "/jobs"),
    ("GET", "/jobs/7/files/a/b%20c"),
    ("GET", "/jobs/7/other"),
    ("GET", "/elsewhere"),
    ("HEAD", "/jobs/7"),
    ("OPTIONS", "/jobs/7"),
]


def test_it_answers_as_the_frameworks_own_router() -> None:
    (ours, _), (theirs, _) = served(Router), served(APIRouter)
    for method, path in ASKED:
        one, other = ours.request(method, path), theirs.request(method, path)
        assert (one.status_code, one.text) == (other.status_code, other.text), (method, path)
    assert ours.get("/jobs/7/files/a/b").json() == {"job": "7", "path": "a/b"}


def test_a_route_that_is_added_later_is_found() -> None:
    client, router = served(Router)
    assert client.get("/jobs/7/late").status_code == 404
    router.get("/{job}/late")(lambda job: {"late": job})
    assert client.get("/jobs/7/late").json() == {"late": "7"}
