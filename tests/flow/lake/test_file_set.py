from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.flow.lake import traced_jobs as jobs
from tests.flow.lake.conftest import People

from easel.errors import Conflict, InvalidInput, NotFound
from easel.flow.lake import upload
from easel.flow.lake.checkout import checkout
from easel.flow.lake.file_set import compare, delete_file_set, get_file_set
from easel.ids import JobId
from easel.lake.access import EVERYTHING
from easel.lake.cache import BlobCache
from easel.store.lake import lineage


@pytest.fixture
def qa(people: People) -> People:
    """Two sets, as in the paper."""
    hot = {"/data/train.json": b"h1", "/data/dev.json": b"h2", "/validation/v.json": b"h3"}
    people.put(people.ana, hot)
    people.make_set(people.ana, "HotpotQA", *hot)
    people.put(people.ana, {"/cold/train.json": b"c1"})
    people.make_set(people.ana, "ColdpotQA", "/cold/")
    return people


def test_merging(qa: People) -> None:
    made = qa.make_set(qa.ana, "MergedQA", "/@HotpotQA", "/@ColdpotQA")
    assert (made.artifact.version, made.files) == (1, 4)
    assert made.sources == ("/@HotpotQA:1", "/@ColdpotQA:1")
    assert set(qa.content(qa.ana, "MergedQA")) == {
        "/data/train.json",
        "/data/dev.json",
        "/validation/v.json",
        "/cold/train.json",
    }


def test_updating(qa: People) -> None:
    qa.put(qa.ana, {"/data/train.json": b"h1 again"})
    made = qa.make_set(qa.ana, "HotpotQA", "/@HotpotQA", "/data/train.json")
    assert made.artifact.version == 2
    assert made.sources == ("/@HotpotQA:1", "/data/train.json:2")
    assert qa.content(qa.ana, "HotpotQA")["/data/train.json"] == 2
    assert qa.content(qa.ana, "HotpotQA:1")["/data/train.json"] == 1


def test_subsetting(qa: People) -> None:
    qa.make_set(qa.ana, "HotpotQAValidationSet", "/validation/@HotpotQA")
    assert qa.content(qa.ana, "HotpotQAValidationSet") == {"/validation/v.json": 1}


def test_a_file_by_the_version_that_a_set_refers_to(qa: People) -> None:
    qa.put(qa.ana, {"/data/train.json": b"newer"})
    qa.make_set(qa.ana, "Old", "/data/train.json@HotpotQA:1")
    assert qa.content(qa.ana, "Old") == {"/data/train.json": 1}


def test_dependencies_are_recorded(qa: People) -> None:
    made = qa.make_set(qa.ana, "MergedQA", "/@HotpotQA", "/cold/train.json@ColdpotQA:1")
    with qa.lake.store.read() as tx:
        sources = {get_file_set(tx, qa.ana, name).artifact.id for name in ("HotpotQA", "ColdpotQA")}
        edges = lineage.neighbours(
            tx, qa.ana.project_id, made.artifact.id, lineage.TraceDirection.BACKWARD, EVERYTHING
        )
    assert {edge.source for edge in edges} == sources


def test_two_versions_of_one_file_are_a_conflict_that_names_them(qa: People) -> None:
    qa.put(qa.ana, {"/data/train.json": b"newer"})
    qa.make_set(qa.ana, "Other", "/data/train.json")
    with pytest.raises(Conflict, match="is version 1 in /@HotpotQA:1 and 2 in /@Other:1"):
        qa.make_set(qa.ana, "MergedQA", "/@HotpotQA", "/@Other")
    with pytest.raises(Conflict, match="two versions"):
        qa.make_set(qa.ana, "MergedQA", "/data/train.json:1", "/data/train.json:2")
    with qa.lake.store.read() as tx, pytest.raises(NotFound):
        get_file_set(tx, qa.ana, "MergedQA")


@pytest.mark.parametrize(
    "reference",
    ["/none", "/none/", "/data/train.json:9", "/@None", "/@HotpotQA:9", "/none/@HotpotQA", "/none@HotpotQA"],
)
def test_what_is_not_there_is_named(qa: People, reference: str) -> None:
    with pytest.raises(NotFound, match=r"there (is|are) no"):
        qa.make_set(qa.ana, "New", reference)


def test_a_set_needs_content_and_a_name(qa: People) -> None:
    with pytest.raises(InvalidInput):
        qa.make_set(qa.ana, "New")
    with pytest.raises(InvalidInput):
        qa.make_set(qa.ana, "../New", "/data/")


def test_versions_of_sets_have_no_gaps_when_many_create_at_once(qa: People) -> None:
    def make(_: int) -> int:
        return qa.make_set(qa.ana, "Busy", "/data/").artifact.version

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(make, range(8))) == list(range(1, 9))


def test_the_difference_of_two_versions(qa: People) -> None:
    qa.put(qa.ana, {"/data/train.json": b"newer", "/data/extra.json": b"x"})
    qa.make_set(qa.ana, "HotpotQA", "/data/train.json", "/data/dev.json", "/data/extra.json")
    with qa.lake.store.read() as tx:
        changes = list(compare(tx, qa.ana, "HotpotQA:1", "HotpotQA:2"))
    assert [(c.path, c.before and c.before.version, c.after and c.after.version) for c in changes] == [
        ("/data/extra.json", None, 1),
        ("/data/train.json", 1, 2),
        ("/validation/v.json", 1, None),
    ]


def test_seven_files_sent_again_with_one_changed_differ_in_one(qa: People) -> None:
    files = {f"/seven/{i}.csv": f"row {i}".encode() for i in range(7)}
    qa.put(qa.ana, files)
    qa.make_set(qa.ana, "seven", "/seven/")
    qa.put(qa.ana, {**files, "/seven/3.csv": b"changed"})
    qa.make_set(qa.ana, "seven", "/seven/")
    with qa.lake.store.read() as tx:
        assert [change.path for change in compare(tx, qa.ana, "seven:1", "seven:2")] == ["/seven/3.csv"]


def test_a_deleted_set_is_still_there_by_number(qa: People) -> None:
    with qa.lake.store.write() as tx:
        delete_file_set(tx, qa.ana, "ColdpotQA")
        with pytest.raises(NotFound):
            get_file_set(tx, qa.ana, "ColdpotQA")
        assert get_file_set(tx, qa.ana, "ColdpotQA:1").files == 1
    assert qa.make_set(qa.ana, "ColdpotQA", "/cold/").artifact.version == 2


def test_what_is_materialised_is_what_was_put_in(qa: People, tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "cache")
    done = checkout(qa.lake, qa.ana, "HotpotQA", tmp_path / "job", cache=cache)
    assert done.files == 3
    assert (tmp_path / "job/data/train.json").read_bytes() == b"h1"
    part = checkout(qa.lake, qa.ana, "HotpotQA", tmp_path / "part", folder="/validation/", cache=cache)
    assert (part.files, part.fetched) == (1, 0)


def test_a_jobs_output_becomes_a_set_that_is_traced_to_its_input(qa: People) -> None:
    with qa.lake.store.write() as tx:
        (given,) = jobs.register_job(tx, qa.ana, JobId("job_1"), ["HotpotQA"])
        assert str(given) == "HotpotQA:1"
    session = qa.send(qa.ana, {"/out/model.bin": b"weights"})
    with qa.lake.store.write() as tx:
        made = jobs.attach_output(tx, qa.ana, JobId("job_1"), session.id, "job_1_output")
        (edge,) = lineage.neighbours(
            tx, qa.ana.project_id, made.artifact.id, lineage.TraceDirection.BACKWARD, EVERYTHING
        )
        assert (edge.source, edge.job) == (given.artifact.id, made.artifact.made_by)
        assert upload.get(tx, qa.ana, session.id).state == "committed"
    assert qa.content(qa.ana, "job_1_output") == {"/out/model.bin": 1}


def test_another_project_has_its_own_names(qa: People) -> None:
    with pytest.raises(NotFound):
        qa.make_set(qa.eve, "Stolen", "/@HotpotQA")
    with pytest.raises(NotFound):
        qa.make_set(qa.eve, "Stolen", "/data/train.json")
    qa.put(qa.eve, {"/data/train.json": b"eve's"})
    assert qa.make_set(qa.eve, "HotpotQA", "/data/").artifact.version == 1
    assert qa.content(qa.ana, "HotpotQA")["/data/train.json"] == 1
