"""Tags, search, traces, listings, moves and grants, on each database."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from tests.flow.lake import traced_jobs as jobs
from tests.flow.lake.conftest import People

from easel.errors import Conflict, Denied, InvalidInput, NotFound
from easel.flow.lake import browse
from easel.flow.lake.find import find
from easel.flow.lake.grant import put_grant, set_group
from easel.flow.lake.tag import set_tags
from easel.flow.lake.trace import trace, whole_graph
from easel.ids import JobId
from easel.lake.access import Scope
from easel.records.identity import Caller
from easel.records.lake import Folder, Kind, TagValue
from easel.store.identity import remove_member
from easel.store.lake.lineage import TraceDirection


def found(
    people: People, who: Caller, query: str, kind: Kind = Kind.FILE_SET, sort: str = "name"
) -> list[str]:
    with people.lake.store.read() as tx:
        return [artifact.name for artifact, _ in find(tx, who, kind, query, sort=sort).items]


def listed(people: People, who: Caller, ref: str, recursive: bool = False) -> list[str]:
    with people.lake.store.read() as tx:
        items = browse.list_files(tx, who, ref, recursive=recursive, limit=2)
        names = [item.path for item in items.items]
        while items.next_cursor:
            items = browse.list_files(tx, who, ref, recursive=recursive, limit=2, after=items.next_cursor)
            names += [item.path for item in items.items]
    return names


@pytest.fixture
def models(people: People) -> People:
    """Sets `m0` … `m3` with tags of each type."""
    people.put(people.ana, {"/a": b"x", "/b": b"longer"})
    values: list[dict[str, TagValue]] = [
        {"model": "BERT", "precision": 0.7, "trained": datetime(2026, 1, 1, tzinfo=UTC)},
        {"model": "BERT", "precision": 0.4, "trained": datetime(2026, 2, 1, tzinfo=UTC)},
        {"model": "bert-large", "precision": 0.9},
        {"precision": -1.0, "note": "50% (a+b)"},
    ]
    for number, tags in enumerate(values):
        people.make_set(people.ana if number % 2 else people.ben, f"m{number}", "/a")
        with people.lake.store.write() as tx:
            set_tags(tx, people.ana, Kind.FILE_SET, f"m{number}", tags)
    return people


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", ["m0", "m1", "m2", "m3"]),
        ("model = BERT", ["m0", "m1"]),
        ("model = BERT and precision > 0.5", ["m0"]),
        ("precision >= 0.4 and precision < 0.9", ["m0", "m1"]),
        ("model = BERT or precision = -1", ["m0", "m1", "m3"]),
        ("not model = BERT", ["m2", "m3"]),
        ("model != BERT", ["m2", "m3"]),
        ("has model", ["m0", "m1", "m2"]),
        ("model ^= 'bert'", ["m2"]),
        ("model ~ '(?i)^bert'", ["m0", "m1", "m2"]),
        ("model in (BERT, bert-large)", ["m0", "m1", "m2"]),
        ("trained < 2026-01-15", ["m0"]),
        ("trained = 2026-02-01", ["m1"]),
        ("trained > 2026-01-01", ["m1"]),
        ("note = '50% (a+b)'", ["m3"]),
        ("creator = ana", ["m1", "m3"]),
        ("creator != ana", ["m0", "m2"]),
        ("creator = nobody", []),
        ("size < 99999999999999999999", ["m0", "m1", "m2", "m3"]),
        ("precision > -1e300 and version = 99999999999999999999", []),
        ("create_time = today and version = 1", ["m0", "m1", "m2", "m3"]),
        ("create_time < yesterday", []),
        ("name = m2", ["m2"]),
        ("size > 0 and size < 2", ["m0", "m1", "m2", "m3"]),
        ("precision = BERT", []),
    ],
)
def test_a_query_finds_what_it_says(models: People, query: str, expected: list[str]) -> None:
    assert found(models, models.ana, query) == expected


def test_files_are_found_by_size_and_hash(models: People) -> None:
    assert found(models, models.ana, "size > 3", Kind.FILE) == ["/b"]
    assert found(models, models.ana, "name ^= '/'", Kind.FILE) == ["/a", "/b"]
    with pytest.raises(InvalidInput):
        found(models, models.ana, "hash = xyz", Kind.FILE)


def test_sorting_and_paging_by_a_tag_visits_everything_once(models: People) -> None:
    for sort, expected in (("precision", ["m3", "m1", "m0", "m2"]), ("-precision", ["m2", "m0", "m1", "m3"])):
        seen: list[str] = []
        cursor = None
        with models.lake.store.read() as tx:
            while True:
                page = find(tx, models.ana, Kind.FILE_SET, "", sort=sort, limit=1, cursor=cursor)
                seen += [artifact.name for artifact, _ in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    break
        assert seen == expected
    assert found(models, models.ana, "", sort="trained") == ["m0", "m1"]


@pytest.mark.parametrize(
    "query",
    [
        "model = A",
        "model = A and precision > 0.5",
        "model = A and precision > 0.98",
        "model != A and has precision",
        "(model = A or model = B) and not precision < 0.3",
        "creator = ana and model = B",
        "name ^= 's1' and model in (A, B)",
    ],
)
def test_the_newest_are_found_alike_however_many_are_asked_for(people: People, query: str) -> None:
    """A page that lies among the newest is found by walking, another by gathering: the answer is the same."""
    people.put(people.ana, {"/a": b"x"})
    for number in range(60):
        people.make_set(people.ana, f"s{number}", "/a")
        tags: dict[str, TagValue] = {"model": "ABC"[number % 3], "precision": (number * 37 % 60) / 60}
        with people.lake.store.write() as tx:
            set_tags(tx, people.ana, Kind.FILE_SET, f"s{number}", tags)
    with people.lake.store.read() as tx:
        everything = [a.name for a, _ in find(tx, people.ana, Kind.FILE_SET, query, limit=500).items]
        for limit in (1, 2, 5):
            page = find(tx, people.ana, Kind.FILE_SET, query, limit=limit)
            seen = [a.name for a, _ in page.items]
            while page.next_cursor:
                page = find(tx, people.ana, Kind.FILE_SET, query, limit=limit, cursor=page.next_cursor)
                seen += [a.name for a, _ in page.items]
            assert seen == everything


def test_a_cursor_of_another_search_is_refused(models: People) -> None:
    with models.lake.store.read() as tx:
        cursor = find(tx, models.ana, Kind.FILE_SET, "", sort="name", limit=1).next_cursor
        for bad in (cursor, "x", "e30="):
            with pytest.raises(InvalidInput, match="cursor"):
                find(tx, models.ana, Kind.FILE_SET, "", sort="-name", limit=1, cursor=bad)


def test_a_new_value_replaces_the_old_one_and_its_type(models: People) -> None:
    with models.lake.store.write() as tx:
        _, tags = set_tags(tx, models.ana, Kind.FILE_SET, "m0", {"precision": "high"}, remove=["model"])
    assert tags == {"precision": "high", "trained": datetime(2026, 1, 1, tzinfo=UTC)}
    assert found(models, models.ana, "precision > 0") == ["m1", "m2"]


@pytest.mark.parametrize("key", ["creator", "size", "job.x", "", "a b", "x" * 65])
def test_a_key_that_cannot_be_asked_for_is_refused(models: People, key: str) -> None:
    with models.lake.store.write() as tx, pytest.raises(InvalidInput):
        set_tags(tx, models.ana, Kind.FILE_SET, "m0", {key: 1.0})


def test_sets_are_found_by_the_job_that_made_them(models: People) -> None:
    with models.lake.store.write() as tx:
        jobs.register_job(tx, models.ben, JobId("job_1"), ["m0"])
        set_tags(tx, models.ben, Kind.JOB, "job_1", {"model": "BERT"})
    session = models.send(models.ben, {"/out": b"o"})
    with models.lake.store.write() as tx:
        jobs.attach_output(tx, models.ben, JobId("job_1"), session.id, "out")
    query = "job.creator = ben and job.create_time = today and job.model = BERT"
    assert found(models, models.ana, query) == ["out"]
    assert found(models, models.ana, "job.creator = ana") == []
    assert found(models, models.ana, "not job.model = BERT and has precision") == ["m0", "m1", "m2", "m3"]


def test_another_project_finds_nothing(models: People) -> None:
    assert found(models, models.eve, "") == []
    assert found(models, models.eve, "model = BERT") == []


def test_traces_go_backward_and_forward_once_through_a_diamond(people: People) -> None:
    people.put(people.ana, {"/a": b"x", "/b": b"y"})
    people.make_set(people.ana, "top", "/a", "/b")
    people.make_set(people.ana, "left", "/a@top")
    people.make_set(people.ana, "right", "/b@top")
    people.make_set(people.ana, "bottom", "/@left", "/@right")
    people.make_set(people.ana, "aside", "/@left")
    with people.lake.store.read() as tx:
        back = trace(tx, people.ana, "bottom", TraceDirection.BACKWARD)
        ahead = trace(tx, people.ana, "top", TraceDirection.FORWARD, limit=2)
        rest = trace(tx, people.ana, "top", TraceDirection.FORWARD, limit=2, cursor=ahead.next_cursor)
        step = trace(tx, people.ana, "bottom", TraceDirection.BACKWARD, one_step=True)
        whole = whole_graph(tx, people.ana)
    assert sorted(node.name for node in back.nodes.values()) == ["bottom", "left", "right", "top"]
    assert len(back.edges) == 4
    assert len(ahead.edges) + len(rest.edges) == 5
    assert rest.next_cursor is None
    assert sorted(node.name for node in step.nodes.values()) == ["bottom", "left", "right"]
    assert len(whole.edges) == 5


def test_folders_are_listed_level_by_level_and_in_pages(people: People) -> None:
    names = ["/a", "/d/1", "/d/2", "/d/e/3", "/d-e", "/d.txt", "/z/1"]
    people.put(people.ana, dict.fromkeys(names, b"x"))
    people.make_set(people.ana, "all", "/")
    for ref, inner in (("/", "/d/"), ("/@all", "/d/@all")):
        assert listed(people, people.ana, ref) == ["/a", "/d-e", "/d.txt", "/d/", "/z/"]
        assert listed(people, people.ana, inner) == ["/d/1", "/d/2", "/d/e/"]
        assert listed(people, people.ana, ref, recursive=True) == sorted(names)
    with people.lake.store.read() as tx:
        (folder,) = browse.list_files(tx, people.ana, "/z/", recursive=False).items
        assert not isinstance(folder, Folder)


def test_a_move_makes_a_version_at_the_new_place_and_sends_nothing(people: People) -> None:
    people.put(people.ana, {"/old/a": b"x", "/old/b": b"y", "/new/a": b"z"})
    people.make_set(people.ana, "kept", "/old/")
    before = sum(o.size for o in people.lake.blobs.objects())
    with people.lake.store.write() as tx:
        assert browse.move(tx, people.ana, "/old/", "/new/") == 2
        assert [v.version for v in browse.versions(tx, people.ana, "/new/a")] == [2, 1]
        assert browse.open_file(tx, people.ana, "/new/a").entry.digest != b""
        with pytest.raises(NotFound):
            browse.open_file(tx, people.ana, "/old/a")
    assert sum(o.size for o in people.lake.blobs.objects()) == before
    assert people.content(people.ana, "kept") == {"/old/a": 1, "/old/b": 1}


def test_a_move_onto_itself_or_below_a_file_is_refused(people: People) -> None:
    people.put(people.ana, {"/f": b"x", "/d/a": b"y"})
    for source, target in (("/f", "/f"), ("/f", "/d"), ("/d/a", "/f/a"), ("/d/", "/d/")):
        with pytest.raises(Conflict), people.lake.store.write() as tx:
            browse.move(tx, people.ana, source, target)
    assert listed(people, people.ana, "/", recursive=True) == ["/d/a", "/f"]


def test_a_deleted_file_is_hidden_and_its_numbers_go_on(people: People) -> None:
    people.put(people.ana, {"/d/a": b"1", "/d/b": b"2"})
    with people.lake.store.write() as tx:
        assert browse.delete(tx, people.ana, "/d/") == 2
        with pytest.raises(NotFound):
            browse.delete(tx, people.ana, "/d/")
        assert browse.open_file(tx, people.ana, "/d/a:1").entry.version == 1
    assert listed(people, people.ana, "/") == []
    people.put(people.ana, {"/d/a": b"3"})
    with people.lake.store.read() as tx:
        assert browse.open_file(tx, people.ana, "/d/a").entry.version == 2


def test_grants_are_checked_on_every_way_in(people: People) -> None:
    people.put(people.ana, {"/open": b"o", "/secret/s": b"s", "/secret/shared/x": b"x"})
    people.make_set(people.ana, "SecretSet", "/secret/")
    people.make_set(people.ana, "Derived", "/@SecretSet")
    with people.lake.store.write() as tx:
        set_group(tx, people.root, "inner", ["ana"])
        put_grant(tx, people.root, Scope.PATH, "/secret/", "group:inner", read=True, write=True)
        put_grant(tx, people.root, Scope.PATH, "/secret/shared/", "everyone", read=True, write=False)
        put_grant(tx, people.root, Scope.FILE_SET, "Secret*", "user:ana", read=True, write=True)
    assert listed(people, people.ben, "/", recursive=True) == ["/open", "/secret/shared/x"]
    assert listed(people, people.ana, "/", recursive=True) == ["/open", "/secret/s", "/secret/shared/x"]
    assert found(people, people.ben, "", Kind.FILE) == ["/open", "/secret/shared/x"]
    assert found(people, people.ben, "") == ["Derived"]
    with people.lake.store.read() as tx:
        assert [n.name for n in trace(tx, people.ben, "Derived", TraceDirection.BACKWARD).nodes.values()] == [
            "Derived"
        ]
        assert whole_graph(tx, people.ben).edges == []
        for ref in ("/secret/s", "/secret/s:1", "/secret/s@Derived"):
            with pytest.raises(NotFound):
                browse.open_file(tx, people.ben, ref)
        assert browse.open_file(tx, people.ben, "/secret/shared/x").entry.version == 1
    for files in ({"/secret/n": b"n"}, {"/secret/shared/x": b"n"}):
        with pytest.raises(Denied):
            people.put(people.ben, files)
    with pytest.raises(NotFound):
        people.make_set(people.ben, "Mine", "/@SecretSet")
    with pytest.raises(Denied):
        people.make_set(people.ben, "SecretOther", "/open")
    with pytest.raises(Denied):
        people.content(people.ben, "Derived")
    people.put(people.root, {"/secret/n": b"n"})


def test_knowing_a_hash_does_not_open_a_hidden_file(people: People) -> None:
    people.put(people.ana, {"/secret/s": b"top secret"})
    with people.lake.store.write() as tx:
        put_grant(tx, people.root, Scope.PATH, "/secret/", "user:ana", read=True, write=True)
    from easel.flow.lake import upload
    from easel.lake.digest import digest_of
    from easel.records.lake import UploadItem

    with people.lake.store.write() as tx:
        session = upload.start(tx, people.ben)
        item = UploadItem("/mine", 10, digest_of(b"top secret"))
        assert upload.add_files(tx, people.ben, session.id, [item]) == [digest_of(b"top secret")]


def test_what_people_made_is_found_by_their_name_after_they_left(models: People) -> None:
    with models.lake.store.write() as tx:
        remove_member(tx, models.ben.project_id, models.ben.user.id)
    assert found(models, models.ana, "creator = ben") == ["m0", "m2"]
    assert found(models, models.ana, "creator != ben") == ["m1", "m3"]
