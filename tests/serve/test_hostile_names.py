"""Hostile names at every route of the lake: whatever is sent, nothing fails or escapes, nobody else is touched."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.serve.conftest import World

from easel.lake.digest import digest_of

ROOT = "/api/v1/projects/astro"
SPELLINGS = (
    "..", ".", "...", "..\\", "../", "/", "//", "\\", "%2e%2e", "%2e", "%252e%252e%252f", "%2f", "%5c", "%00",
    "\0", "\n", "\x7f", "\u2028", "\ufffe", "a.", "a ", " ", "~", "C:", "C:\\Windows", "etc/passwd", "CON", "@", ":",
    "@S", ":1", ":0", ":-1", ":99999999999999999999", "@S:1", "/@S", "*", "?", "'", '"', ";--", "' OR 1=1 --",
    "{{7*7}}", "${x}", "\u202egpj.exe", "e\u0301", "\u00e9", "\U0001f600", "a" * 300, "b" * 4096, "-rf", "\t",
)  # fmt: skip
names = st.lists(st.sampled_from(SPELLINGS) | st.text(max_size=8), min_size=1, max_size=5).flatmap(
    lambda parts: st.sampled_from(["".join(parts), "/" + "/".join(parts), "/data/" + "".join(parts)])
)
Call = Callable[[str], tuple[str, str, dict[str, object]]]


def upload_body(name: str) -> dict[str, object]:
    return {"json": {"files": [{"path": name, "size": 1, "hash": digest_of(b"x").hex()}]}}


ROUTES: dict[str, Call] = {
    "list": lambda n: ("GET", f"{ROOT}/files", {"params": {"ref": n}}),
    "list after": lambda n: ("GET", f"{ROOT}/files", {"params": {"ref": "/", "cursor": n}}),
    "versions": lambda n: ("GET", f"{ROOT}/files/versions", {"params": {"path": n}}),
    "fetch": lambda n: ("POST", f"{ROOT}/files/fetch", {"json": {"ref": n}}),
    "fetch after": lambda n: ("POST", f"{ROOT}/files/fetch", {"json": {"ref": "/data/", "cursor": n}}),
    "move from": lambda n: ("POST", f"{ROOT}/files/move", {"json": {"source": n, "target": "/moved"}}),
    "move to": lambda n: ("POST", f"{ROOT}/files/move", {"json": {"source": "/data/none", "target": n}}),
    "delete": lambda n: ("DELETE", f"{ROOT}/files", {"params": {"ref": "/data/none" + n}}),
    "add": lambda n: ("POST", f"{ROOT}/uploads/UPLOAD/files", upload_body(n)),
    "upload": lambda n: ("GET", f"{ROOT}/uploads/{quote(n, safe='')}", {}),
    "create set": lambda n: ("POST", f"{ROOT}/filesets", {"json": {"name": n, "sources": ["/data/keep"]}}),
    "set of": lambda n: ("POST", f"{ROOT}/filesets", {"json": {"name": "Other", "sources": [n]}}),
    "sets": lambda n: ("GET", f"{ROOT}/filesets", {"params": {"prefix": n}}),
    "set": lambda n: ("GET", f"{ROOT}/filesets/{quote(n, safe='')}", {}),
    "set versions": lambda n: ("GET", f"{ROOT}/filesets/{quote(n, safe='')}/versions", {}),
    "set diff": lambda n: ("GET", f"{ROOT}/filesets/S/diff", {"params": {"to": n}}),
    "drop": lambda n: ("POST", f"{ROOT}/filesets/{quote(n, safe='')}/drop", {}),
    "replay": lambda n: ("GET", f"{ROOT}/filesets/{quote(n, safe='')}/replay", {}),
    "tag": lambda n: ("POST", f"{ROOT}/tags", {"json": {"kind": "file", "ref": n, "tags": {"a": 1}}}),
    "tag key": lambda n: (
        "POST",
        f"{ROOT}/tags",
        {"json": {"kind": "fileset", "ref": "S", "tags": {n: "x"}}},
    ),
    "find": lambda n: ("POST", f"{ROOT}/find", {"json": {"kind": "file", "query": f"name = {n}"}}),
    "find regex": lambda n: ("POST", f"{ROOT}/find", {"json": {"kind": "file", "query": f"name ~ '{n}'"}}),
    "find sort": lambda n: ("POST", f"{ROOT}/find", {"json": {"kind": "file", "query": "", "sort": n}}),
    "find after": lambda n: ("POST", f"{ROOT}/find", {"json": {"kind": "file", "query": "", "cursor": n}}),
    "sets after": lambda n: ("GET", f"{ROOT}/filesets", {"params": {"cursor": n}}),
    "diff after": lambda n: ("GET", f"{ROOT}/filesets/S/diff", {"params": {"to": "S", "cursor": n}}),
    "trace after": lambda n: ("GET", f"{ROOT}/lineage", {"params": {"ref": "S", "cursor": n}}),
    "put grant": lambda n: (
        "PUT",
        f"{ROOT}/grants",
        {"json": {"scope": "path", "pattern": n, "principal": "user:nobody"}},
    ),
    "grant to": lambda n: (
        "PUT",
        f"{ROOT}/grants",
        {"json": {"scope": "path", "pattern": "/hidden/", "principal": n}},
    ),
    "trace": lambda n: ("GET", f"{ROOT}/lineage", {"params": {"ref": n}}),
    "export": lambda n: ("GET", f"{ROOT}/lineage/export", {"params": {"ref": n}}),
    "grant": lambda n: (
        "DELETE",
        f"{ROOT}/grants",
        {"params": {"scope": "path", "pattern": n, "principal": "everyone"}},
    ),
    "group": lambda n: ("PUT", f"{ROOT}/groups/{quote(n, safe='')}", {"json": {"members": []}}),
    "unused": lambda n: ("POST", f"{ROOT}/unused", {"json": {"prefix": n, "older_than_days": 9}}),
}


@pytest.fixture
def lake(world: World) -> World:
    """`/data/keep` and the set S in astro, the same in bio, and an upload that is open."""
    for project in ("astro", "bio"):
        base, who = f"/api/v1/projects/{project}", f"{project}-admin"
        session = world.call(who, "POST", f"{base}/uploads", json={}).json()["id"]
        body = {"files": [{"path": "/data/keep", "size": 1, "hash": digest_of(b"k").hex()}]}
        world.call(who, "POST", f"{base}/uploads/{session}/files", json=body)
        new = {"objects": [{"hash": digest_of(b"k").hex(), "size": 1}]}
        (transfer,) = world.call(who, "POST", f"{base}/uploads/{session}/objects", json=new).json()[
            "transfers"
        ]
        assert world.http.put(transfer["parts"][0]["url"], content=b"k").status_code == 204
        at = f"{base}/uploads/{session}/objects/{digest_of(b'k').hex()}/finish"
        assert world.call(who, "POST", at).status_code == 204
        assert world.call(who, "POST", f"{base}/uploads/{session}/commit").status_code == 200
        made = world.call(who, "POST", f"{base}/filesets", json={"name": "S", "sources": ["/data/"]})
        assert made.status_code == 201
    world.tokens["UPLOAD"] = world.call("astro-admin", "POST", f"{ROOT}/uploads", json={}).json()["id"]
    return world


def outside(tmp_path: Path) -> set[Path]:
    return {path for path in tmp_path.rglob("*") if not path.is_relative_to(tmp_path / "home")}


def kept(world: World, project: str) -> tuple[object, object]:
    base, who = f"/api/v1/projects/{project}", f"{project}-admin"
    files = world.call(who, "GET", f"{base}/files", params={"ref": "/data/", "recursive": True}).json()[
        "items"
    ]
    return [f for f in files if f["path"] == "/data/keep"], world.call(
        who, "GET", f"{base}/filesets/S:1"
    ).json()


@pytest.mark.parametrize("route", sorted(ROUTES))
def test_no_name_breaks_a_route_or_leads_out_of_the_lake(lake: World, tmp_path: Path, route: str) -> None:
    before, files = [kept(lake, project) for project in ("astro", "bio")], outside(tmp_path)

    @settings(
        max_examples=25,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(name=names.filter(lambda text: not any(0xD800 <= ord(c) < 0xE000 for c in text)))
    def probe(name: str) -> None:
        method, path, more = ROUTES[route](name)
        answer = lake.call("astro-admin", method, path.replace("UPLOAD", lake.tokens["UPLOAD"]), **more)
        assert answer.status_code < 500, (name, answer.text)
        if answer.status_code >= 400:
            assert answer.headers["content-type"] in ("application/problem+json", "application/json"), name
        elif route == "add":
            normal = unicodedata.normalize("NFC", name)
            assert normal.startswith("/")
            assert not {"", ".", ".."} & set(normal[1:].split("/")), "it got in, so it is a plain path"

    probe()
    assert [kept(lake, project) for project in ("astro", "bio")] == before
    assert outside(tmp_path) == files


def test_two_spellings_of_one_name_are_one_file_for_everybody(lake: World) -> None:
    body = [{"path": f"/data/{n}", "size": 1, "hash": digest_of(b"k").hex()} for n in ("\u00e9", "e\u0301")]
    answer = lake.call(
        "astro-admin", "POST", f"{ROOT}/uploads/{lake.tokens['UPLOAD']}/files", json={"files": body}
    )
    assert answer.status_code == 422
    assert "named twice" in answer.text
