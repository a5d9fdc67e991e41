"""What a grant hides is hidden in the history, in jobs and in their lines; the table of rights is the server's own."""

from __future__ import annotations

from pathlib import Path

from tests.serve.conftest import World

from easel.testing.reference import access_page

BASE = "/api/v1/projects/astro"


def hide(world: World, scope: str, pattern: str) -> None:
    body = {"scope": scope, "pattern": pattern, "principal": "user:astro-admin", "read": True, "write": True}
    assert world.call("astro-admin", "PUT", f"{BASE}/grants", json=body).status_code == 200


def events(world: World, who: str) -> str:
    return str(world.call(who, "GET", f"{BASE}/events?limit=200").text)


def test_events_name_nothing_that_a_grant_hides(world: World) -> None:
    hide(world, "path", "/secret/")
    hide(world, "fileset", "patients*")
    empty = {"name": "patients", "sources": ["/"]}
    made = world.call("astro-admin", "POST", f"{BASE}/filesets", json=empty)
    shown, hidden = events(world, "astro-admin"), events(world, "astro-member")
    assert "/secret/" in shown
    assert "patients" in shown
    assert "/secret/" not in hidden
    assert "patients" not in hidden, made.text


def test_a_job_on_hidden_files_shows_neither_names_nor_lines(world: World) -> None:
    hide(world, "fileset", "patients*")
    spec = {
        "name": "count patients",
        "run": {"kind": "command", "argv": ["count", "/patients"]},
        "output_set": "patients-counted",
    }
    job = world.call("astro-admin", "POST", f"{BASE}/jobs", json=spec)
    assert job.status_code == 201, job.text
    address = f"{BASE}/jobs/{job.json()['id']}"
    assert "patients" in world.call("astro-admin", "GET", address).text
    for path in (address, f"{BASE}/jobs"):
        assert "patients" not in world.call("astro-member", "GET", path).text
    assert world.call("astro-member", "GET", f"{address}/log").status_code == 404
    assert world.call("astro-admin", "GET", f"{address}/log").status_code == 200
    assert "patients" not in events(world, "astro-member")
    looked = [
        ("POST", f"{BASE}/find", {"kind": "job", "query": "has ward"}),
        ("POST", f"{BASE}/find", {"kind": "job", "query": ""}),
        ("GET", f"{BASE}/lineage", None),
    ]
    tagged = {"kind": "job", "ref": job.json()["id"], "tags": {"ward": "patients of ward 7"}}
    assert world.call("astro-admin", "POST", f"{BASE}/tags", json=tagged).status_code == 200
    for method, path, body in looked:
        for who, found in (("astro-admin", path.endswith("find")), ("astro-member", False)):
            answer = world.call(who, method, path, json=body)
            assert answer.status_code == 200, answer.text
            assert ("patients" in answer.text) == found, (who, path, body, answer.text)
    runs, of_jobs = "/mlflow/astro/api/2.0/mlflow/runs", {"run_id": job.json()["id"]}
    for who, status in (("astro-admin", 200), ("astro-member", 404)):
        assert world.call(who, "GET", f"{runs}/get", params=of_jobs).status_code == status
        found = world.call(who, "POST", f"{runs}/search", json={"experiment_ids": ["0"]})
        assert ("patients" in found.text) == (status == 200), found.text
    mine = {**tagged, "tags": {"seen": 1.0}}
    refused = world.call("astro-member", "POST", f"{BASE}/tags", json=mine)
    assert (refused.status_code, "patients" in refused.text) == (404, False), refused.text


def test_the_table_of_rights_in_the_documents_is_the_servers_own() -> None:
    kept = Path(__file__).parents[2] / "docs" / "reference" / "access.md"
    assert kept.read_text() == access_page(), "run scripts/reference"


def test_an_apps_examples_are_hidden_where_their_set_or_folder_is(world: World) -> None:
    program = "{input: {[Tensor[2]], []}, output: {[Tensor[2]], []}}"
    for name, scope in (("wards", "fileset"), ("beds", "path")):
        made = world.call("astro-admin", "POST", f"{BASE}/apps", json={"name": name, "program": program})
        assert made.status_code == 201, made.text
        address = f"{BASE}/apps/{name}"
        pairs = [{"input": [float(n), 1.0], "output": [float(n % 2), float(1 - n % 2)]} for n in range(8)]
        fed = world.call("astro-admin", "POST", f"{address}/feed", json={"pairs": pairs})
        assert fed.status_code == 200, fed.text
        digest = world.call("astro-member", "GET", f"{address}/examples").json()["items"][0]["digest"]
        pages = [
            ("GET", f"{address}/examples"),
            ("GET", f"{address}/examples/{digest}"),
            ("GET", f"{address}/examples/{digest}/thumbnail"),
            ("GET", f"{address}/suspects"),
            ("POST", f"{address}/suspects"),
            ("GET", f"{address}/checks"),
            ("POST", f"{address}/checks"),
            ("POST", f"{address}/report"),
        ]
        hide(world, scope, f"{name}*" if scope == "fileset" else made.json()["folder"])
        for method, page in pages:
            answer = world.call("astro-member", method, page)
            assert answer.status_code == 404, (method, page, answer.text)
            assert "[0.0, 1.0]" not in answer.text
        body = {"digests": [digest], "on": False}
        assert world.call("astro-member", "POST", f"{address}/refine", json=body).status_code == 404
        assert world.call("astro-admin", "GET", f"{address}/examples").status_code == 200


def test_neither_pages_nor_filters_nor_orders_tell_of_hidden_jobs(either_world: World) -> None:
    world = either_world
    hide(world, "fileset", "patients*")
    spec = {"name": "open", "run": {"kind": "command", "argv": ["count"]}}
    hidden = {**spec, "name": "zeta", "output_set": "patients-counted"}
    made = []
    for each in (hidden, spec, hidden, hidden):
        answer = world.call("astro-admin", "POST", f"{BASE}/jobs", json=each)
        assert answer.status_code == 201, answer.text
        made.append(answer.json()["id"])
        tagged = {"kind": "job", "ref": made[-1], "tags": {"ward": len(made)}}
        assert world.call("astro-admin", "POST", f"{BASE}/tags", json=tagged).status_code == 200

    def find(who: str, query: str, sort: str = "-create_time") -> tuple[list[str], bool]:
        body = {"kind": "job", "query": query, "sort": sort, "limit": 1}
        told = world.call(who, "POST", f"{BASE}/find", json=body).json()
        return [item["name"] for item in told["items"]], told["next_cursor"] is not None

    def search(who: str) -> tuple[list[str], bool]:
        body = {"experiment_ids": ["0"], "max_results": 1}
        told = world.call(who, "POST", "/mlflow/astro/api/2.0/mlflow/runs/search", json=body).json()
        return [run["info"]["run_id"] for run in told.get("runs", ())], "next_page_token" in told

    for sort in ("-create_time", "ward"):
        assert find("astro-admin", "has ward", sort) == ([made[3] if sort[0] == "-" else made[0]], True)
        assert find("astro-member", "has ward", sort) == ([made[1]], False)
    assert find("astro-member", "ward > 2") == ([], False)
    assert search("astro-admin") == ([made[3]], True)
    assert search("astro-member") == ([made[1]], False)
    for path in ("jobs", "jobs/table"):
        for query, told in (
            ("filter=name:eq:zeta", []),
            ("filter=name:prefix:o", [made[1]]),
            ("sort=name", [made[1]]),
            ("sort=seq", made),
        ):
            found = world.call("astro-member", "GET", f"{BASE}/{path}?{query}").json()["items"]
            assert [item.get("id") or item["job"]["id"] for item in found] == told, (path, query)
    tagged_order = world.call("astro-member", "GET", f"{BASE}/jobs/table?sort=ward").json()["items"]
    assert [item["job"]["id"] for item in tagged_order] == [made[1]]
