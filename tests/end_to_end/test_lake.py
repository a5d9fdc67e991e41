"""The lake as people use it: the paper's examples through the API, the SDK, the command line and fsspec."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import fsspec
import httpx
import pandas as pd
import pytest
from dask.bytes import read_bytes

from easel.declare.roles import Role
from easel.errors import Conflict, Denied, InvalidInput, NotFound
from easel.lake.digest import Corrupt, digest_of
from easel.sdk.client import Client
from easel.sdk.filesystem import EaselFileSystem
from easel.testing.commands import run_as
from easel.testing.server import ServerProcess, running

# An installed Easel registers itself by its entry point; a checkout need not be installed.
fsspec.register_implementation("easel", EaselFileSystem, clobber=True)

SMALL = {"vcpu": 0.5, "memory_mb": 256}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="module")
def people(server: ServerProcess) -> dict[str, Client]:
    root = server.client()
    made = {}
    for project in ("qa", "bio"):
        root.projects.create(project)
    made["root"] = root.in_project("qa")
    for name, project in (("john", "qa"), ("mary", "qa"), ("eve", "bio")):
        secret = root.in_project(project).users.create(name, Role.MEMBER).token.secret
        assert secret
        made[name] = server.client(secret, project)
    return made


@pytest.fixture(scope="module")
def john(people: dict[str, Client], tmp_path_factory: pytest.TempPathFactory) -> Client:
    """The paper's two sets."""
    client = people["john"]
    folder = tmp_path_factory.mktemp("hot")
    for path, text in (("data/train.json", "h1"), ("data/dev.json", "h2"), ("validation/v.json", "h3")):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    client.lake.upload(folder, "/")
    client.lake.create_file_set("HotpotQA", ["/data/", "/validation/"])
    (folder / "cold.json").write_text("c1")
    client.lake.upload(folder / "cold.json", "/cold/")
    client.lake.create_file_set("ColdpotQA", ["/cold/"])
    return client


def easel(client: Client, *arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = run_as(client, *arguments)
    assert not check or done.returncode == 0, done.stderr
    return done


def paths(client: Client, ref: str) -> dict[str, int | None]:
    return {item.path: item.version for item in client.lake.ls(ref, recursive=True)}


def test_merging_updating_and_subsetting_through_the_sdk(john: Client, tmp_path: Path) -> None:
    merged = john.lake.create_file_set("MergedQA", ["/@HotpotQA", "/@ColdpotQA"])
    assert merged.files == 4
    (tmp_path / "train.json").write_text("h1 again")
    john.lake.upload(tmp_path / "train.json", "/data/")
    updated = john.lake.create_file_set("HotpotQA", ["/@HotpotQA", "/data/train.json"])
    assert updated.version == 2
    assert paths(john, "/@HotpotQA")["/data/train.json"] == 2
    john.lake.create_file_set("HotpotQAValidationSet", ["/validation/@HotpotQA"])
    assert set(paths(john, "/@HotpotQAValidationSet")) == {"/validation/v.json"}
    assert [(d.path, d.before, d.after) for d in john.lake.diff("HotpotQA:1", "HotpotQA:2")] == [
        ("/data/train.json", 1, 2)
    ]
    back = john.lake.trace("HotpotQAValidationSet")
    assert {node.id for node in back.nodes} == {"HotpotQAValidationSet:1", "HotpotQA:2", "HotpotQA:1"}
    ahead = john.lake.trace("HotpotQA:1", forward=True, one_step=True)
    assert {edge.target for edge in ahead.edges} == {"MergedQA:1", "HotpotQA:2"}


def test_the_same_through_the_command_line(john: Client, tmp_path: Path) -> None:
    easel(john, "filesets", "create", "CliMerged", "/@HotpotQA:1", "/@ColdpotQA")
    shown = json.loads(easel(john, "filesets", "show", "CliMerged", "--json").stdout)
    assert (shown["version"], shown["files"]) == (1, 4)
    (tmp_path / "up").mkdir()
    (tmp_path / "up/new.txt").write_text("new")
    easel(john, "put", str(tmp_path / "up"), "/cli/")
    assert easel(john, "cat", "/cli/new.txt").stdout == "new"
    easel(john, "mv", "/cli/new.txt", "/cli/moved.txt")
    listed = json.loads(easel(john, "ls", "/cli/", "--json").stdout)
    assert [item["path"] for item in listed] == ["/cli/moved.txt"]
    assert easel(john, "ls", "/cli", "--json").stdout == easel(john, "ls", "/cli/", "--json").stdout
    easel(john, "get", "/@CliMerged", str(tmp_path / "down"))
    easel(john, "get", "CliMerged:1", str(tmp_path / "same"))  # as jobs name their outputs
    assert sorted(p.name for p in (tmp_path / "same").rglob("*")) == sorted(
        p.name for p in (tmp_path / "down").rglob("*")
    )
    assert (tmp_path / "down/cold/cold.json").read_text() == "c1"
    assert "HotpotQA:1" in easel(john, "trace", "CliMerged").stdout
    easel(john, "tag", "fileset", "CliMerged", "quality=0.9", "stage=raw")
    found = json.loads(easel(john, "find", "filesets", "quality > 0.5 and stage = raw", "--json").stdout)
    assert [item["name"] for item in found] == ["CliMerged"]
    easel(john, "rm", "/cli/moved.txt")
    assert easel(john, "cat", "/cli/moved.txt", check=False).returncode == 3
    assert easel(john, "cat", "/cli/moved.txt:1").stdout == "new"


def test_the_same_through_the_api_alone(john: Client) -> None:
    http, root = john.connection.http, john.root
    body = {"name": "ApiMerged", "sources": ["/@HotpotQA:1", "/@ColdpotQA"]}
    made = http.post(f"{root}/filesets", json=body)
    assert (made.status_code, made.json()["files"]) == (201, 4)
    graph = http.get(f"{root}/lineage", params={"ref": "ApiMerged", "one_step": True}).json()
    assert {edge["source"] for edge in graph["edges"]} == {"HotpotQA:1", "ColdpotQA:1"}
    refused = http.post(f"{root}/filesets", json={"name": "Bad", "sources": ["/../etc/passwd"]})
    assert refused.status_code == 422


def test_the_papers_query_finds_what_a_job_made_today(people: dict[str, Client], john: Client) -> None:
    """File sets made by jobs submitted by John today that use model BERT with a precision above 0.5."""
    script = (
        "import os, pathlib; pathlib.Path(os.environ['EASEL_OUTPUT'], 'model').write_text('w');"
        "print('[EASEL_TAG] job model:{model}'); print('[ACAI_TAG_NUM] fileset precision:{precision}')"
    )
    outputs = {}
    for who, model, precision in (
        ("john", "BERT", 0.7),
        ("john", "BERT", 0.4),
        ("john", "GPT", 0.9),
        ("mary", "BERT", 0.9),
    ):
        text = script.format(model=model, precision=precision)
        job = people[who].jobs.submit([sys.executable, "-c", text], input="ColdpotQA", resources=SMALL)
        outputs[who, model, precision] = job.wait().output_set
    query = "job.creator = john and job.create_time = today and job.model = BERT and precision > 0.5"
    found = list(john.lake.find("fileset", query))
    assert [f"{each.name}:{each.version}" for each in found] == [outputs["john", "BERT", 0.7]]
    best = john.lake.max("fileset", "precision", "job.model = BERT")
    assert best is not None
    assert f"{best.name}:{best.version}" == outputs["mary", "BERT", 0.9]
    back = john.lake.trace(str(outputs["john", "BERT", 0.7]))
    assert [(edge.source, edge.action) for edge in back.edges] == [("ColdpotQA:1", "job")]
    (named,) = {str(edge.job_name) for edge in back.edges}
    assert {node.made_by_name for node in back.nodes} == {None, named}
    jobs = list(john.lake.find("job", "model = BERT"))
    assert {each.job_name for each in jobs} == {named}
    assert found[0].job_name == named
    assert named in easel(john, "trace", str(outputs["john", "BERT", 0.7])).stdout
    assert named in easel(john, "find", "jobs", "model = BERT").stdout


def test_a_job_is_traced_by_its_id_or_the_end_of_it(john: Client) -> None:
    job = john.jobs.submit(["sh", "-c", "echo 1 > output/x"], input="ColdpotQA", resources=SMALL).wait()
    for name in (job.id, job.id[-8:]):
        told = easel(john, "trace", name).stdout
        assert told.startswith(str(job.about.output_set))
        assert "ColdpotQA:1" in told
    broken = john.jobs.submit(["false"], input="ColdpotQA", resources=SMALL).wait(check=False)
    told = easel(john, "trace", broken.id, check=False).stderr
    assert "left no output. It read ColdpotQA:1: easel trace ColdpotQA:1" in told


def test_a_dropped_output_is_brought_back_by_replay(people: dict[str, Client], john: Client) -> None:
    script = "import os, pathlib; pathlib.Path(os.environ['EASEL_OUTPUT'], 'm').write_text('replay me')"
    made = john.jobs.submit([sys.executable, "-c", script], input="ColdpotQA", resources=SMALL).wait()
    ref = str(made.output_set)
    with pytest.raises(Denied):
        john.lake.drop(ref)
    plan = john.lake.replay_plan(ref)
    assert plan.jobs == [made.id]
    assert plan.seconds is not None
    assert plan.cost is not None
    people["root"].lake.drop(ref)
    with pytest.raises(Conflict, match="given up"):
        john.lake.create_file_set("Broken", [f"/{made.id}-output/m"])
    # The collector has not come yet: the bytes are still there, and no job need run.
    assert john.lake.replay(ref).submitted == []
    assert john.lake.file_set(ref).dropped_at is None


def test_pandas_reads_and_writes_the_lake(john: Client) -> None:
    fs = EaselFileSystem(client=john, skip_instance_cache=True)
    table = pd.DataFrame({"a": range(1000), "b": [x / 2 for x in range(1000)]})
    with fs.open("easel://qa/tables/t.csv", "wb") as out:
        table.to_csv(out, index=False)
    john.lake.create_file_set("Tables", ["/tables/"])
    with fs.open("easel://qa/tables/t.csv", "wb") as out:
        table.head(3).to_csv(out, index=False)
    options = {"server": john.server, "token": _token(john), "skip_instance_cache": True}
    latest = pd.read_csv("easel://qa/tables/t.csv", storage_options=options)
    pinned = pd.read_csv("easel://qa/tables/t.csv@Tables:1", storage_options=options)
    assert (len(latest), len(pinned)) == (3, 1000)
    pd.testing.assert_frame_equal(pinned, table)
    assert fs.ls("qa/tables", detail=False) == ["qa/tables/t.csv"]
    assert fs.ls("qa/tables@Tables:1", detail=False) == ["qa/tables/t.csv@Tables:1"]
    assert fs.cat_file("qa/tables/t.csv", start=0, end=3) == b"a,b"
    assert fs.isdir("qa/tables")
    assert not fs.exists("qa/none")


def test_damaged_bytes_are_not_handed_to_pandas(
    server: ServerProcess, people: dict[str, Client], tmp_path: Path
) -> None:
    content = os.urandom(300_000)
    (tmp_path / "large").write_bytes(content)
    people["john"].lake.upload(tmp_path / "large", "/damaged/large")
    name = digest_of(content).hex()
    stored = server.folder / "home" / "blobs" / "objects" / name[:2] / name
    stored.chmod(0o644)
    stored.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(Corrupt):
        people["john"].lake.read_range("/damaged/large", 0, len(content))
    with pytest.raises(Corrupt):
        people["john"].lake.cat("/damaged/large")


def test_pyarrow_reads_a_parquet_file_by_ranges(john: Client, tmp_path: Path) -> None:
    table = pd.DataFrame({"a": range(200_000), "b": [str(x) for x in range(200_000)]})
    table.to_parquet(tmp_path / "t.parquet")
    john.lake.upload(tmp_path / "t.parquet", "/tables/")
    with fsspec.open(
        "easel://qa/tables/t.parquet", server=john.server, token=_token(john), skip_instance_cache=True
    ) as file:
        only_a = pd.read_parquet(file, columns=["a"])
    assert list(only_a.columns) == ["a"]
    assert len(only_a) == 200_000


def test_dask_reads_many_files_of_a_pinned_set_at_once(john: Client, tmp_path: Path) -> None:
    for part in range(3):
        rows = pd.DataFrame({"part": [part] * 100, "x": range(100)})
        rows.to_csv(tmp_path / f"{part}.csv", index=False)
    john.lake.upload(tmp_path, "/parts/")
    john.lake.create_file_set("Parts", ["/parts/"])
    options = {"server": john.server, "token": _token(john), "skip_instance_cache": True}
    refs = [f"easel://qa/parts/{part}.csv@Parts:1" for part in range(3)]
    with dask.config.set(scheduler="synchronous"):
        _, blocks = read_bytes(refs, blocksize=None, **options)
        tables = [pd.read_csv(io.BytesIO(dask.compute(block)[0])) for part in blocks for block in part]
        _, pieces = read_bytes(refs[0], blocksize=200, delimiter=b"\n", **options)
        again = b"".join(dask.compute(*pieces[0]))
    assert pd.concat(tables)["x"].sum() == 3 * sum(range(100))
    assert len(pieces[0]) > 1, "one file in blocks, by ranges"
    assert again == (tmp_path / "0.csv").read_bytes()


def test_a_folder_comes_back_byte_for_byte(john: Client, tmp_path: Path) -> None:
    source = tmp_path / "source"
    content = {f"d{i % 7}/f{i}": os.urandom(i * 13) for i in range(300)}
    content["large"] = os.urandom(600_000)
    content["empty"] = b""
    for name, data in content.items():
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes(data)
    seen: list[int] = []
    done = john.lake.upload(source, "/round/", progress=seen.append)
    assert done.files == 302
    assert sum(seen) == sum(map(len, content.values()))
    john.lake.download("/round/", tmp_path / "back")
    root = tmp_path / "back"
    back = {str(p.relative_to(root)): p.read_bytes() for p in (tmp_path / "back").rglob("*") if p.is_file()}
    assert back == content


def test_an_interrupted_upload_is_resumed_by_another_client(
    server: ServerProcess, people: dict[str, Client], tmp_path: Path
) -> None:
    (tmp_path / "big").write_bytes(os.urandom(500_000))
    client = people["john"]
    session = client.lake.start_upload()
    other = server.client(_token(client), "qa")
    assert [u.id for u in other.lake.uploads()] == [session.id]
    done = other.lake.upload(tmp_path / "big", "/resumed/", resume=session.id)
    assert (done.id, done.state) == (session.id, "committed")
    assert other.lake.uploads() == []


def test_a_signed_address_is_good_for_its_range_only(john: Client) -> None:
    page = next(john.lake._fetch("/cold/cold.json"))
    url, start = page.ranges[0].url, page.ranges[0].start
    address = john.server + url
    assert httpx.get(address, headers={"Range": f"bytes={start}-{start + 1}"}).content == b"c1"
    assert httpx.get(address, headers={"Range": f"bytes={start}-{start + 2}"}).status_code == 422
    assert httpx.get(address.replace("length=2", "length=3")).status_code == 403
    assert httpx.put(address, content=b"x").status_code == 405


def test_other_projects_do_not_exist(people: dict[str, Client], john: Client) -> None:
    eve = people["eve"]
    with pytest.raises(NotFound):
        eve.in_project("qa").lake.file_set("HotpotQA")
    with pytest.raises(NotFound):
        eve.lake.file_set("HotpotQA")
    with pytest.raises(NotFound):
        eve.lake.cat("/cold/cold.json")
    assert list(eve.lake.find("fileset")) == []
    assert eve.lake.graph().nodes == []


def test_grants_hide_paths_and_sets_everywhere(people: dict[str, Client], tmp_path: Path) -> None:
    root, mary, john = people["root"], people["mary"], people["john"]
    (tmp_path / "s").write_text("secret")
    john.lake.upload(tmp_path / "s", "/secret/")
    john.lake.create_file_set("Secret", ["/secret/"])
    john.lake.create_file_set("FromSecret", ["/@Secret"])
    root.lake.set_group("trusted", ["john"])
    root.lake.grant("group:trusted", "/secret/", write=True)
    root.lake.grant("group:trusted", "Secret")
    try:
        assert john.lake.cat("/secret/s") == b"secret"
        hidden: list[Any] = [
            lambda: mary.lake.cat("/secret/s"),
            lambda: mary.lake.file_set("Secret"),
            lambda: mary.lake.create_file_set("Mine", ["/secret/s"]),
        ]
        for call in hidden:
            with pytest.raises(NotFound):
                call()
        with pytest.raises(Denied):
            mary.lake.download("/@FromSecret", tmp_path / "x")
        assert "/secret/" not in [item.path for item in mary.lake.ls("/")]
        assert list(mary.lake.find("file", "name ^= '/secret/'")) == []
        assert [node.id for node in mary.lake.trace("FromSecret").nodes] == ["FromSecret:1"]
        with pytest.raises(Denied):
            mary.lake.upload(tmp_path / "s", "/secret/")
        with pytest.raises(Denied):
            mary.lake.grants()
    finally:
        root.lake.revoke("group:trusted", "/secret/")
        root.lake.revoke("group:trusted", "Secret")
    assert mary.lake.cat("/secret/s") == b"secret"


def test_provenance_is_exported_in_formats_that_others_read(john: Client) -> None:
    from prov.model import ProvDocument

    prov = john.lake.export_lineage("MergedQA")
    document = ProvDocument.deserialize(content=json.dumps(prov), format="json")
    assert {str(e.identifier) for e in document.get_records() if "MergedQA" in str(e.identifier)}
    events = john.lake.export_lineage("MergedQA", "openlineage")
    merged = next(e for e in events if e["outputs"][0]["name"] == "MergedQA:1")
    assert {i["name"] for i in merged["inputs"]} == {"HotpotQA:1", "ColdpotQA:1"}
    assert merged["eventType"] == "COMPLETE"


def test_what_cannot_be_asked_is_refused_with_a_reason(john: Client) -> None:
    for query in ("model =", "size > abc", "creator > john", "x ~ '('"):
        with pytest.raises(InvalidInput):
            list(john.lake.find("fileset", query))
    with pytest.raises(InvalidInput, match="built-in"):
        john.lake.tag("fileset", "HotpotQA", {"creator": "me"})


def _token(client: Client) -> str:
    header: str = client.connection.http.headers["Authorization"]
    return header.removeprefix("Bearer ")
