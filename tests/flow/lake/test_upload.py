from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.flow.lake.conftest import People

from easel.errors import Conflict, InvalidInput, NotFound
from easel.flow.lake import upload
from easel.flow.lake.file_set import find_file
from easel.flow.lake.ingest import ingest_folder
from easel.lake.access import EVERYTHING
from easel.lake.blobs.local import LocalBlobs
from easel.lake.blobs.store import Incoming
from easel.lake.digest import Digest, digest_of
from easel.records.identity import Caller
from easel.records.lake import Kind, Upload, UploadItem, UploadState
from easel.store.lake import artifacts, blob_index


def version(people: People, path: str) -> int:
    with people.lake.store.read() as tx:
        return find_file(tx, people.ana, EVERYTHING, path, None).version


def stored(people: People) -> int:
    return sum(o.size for o in people.lake.blobs.objects())


def item(path: str, content: bytes) -> UploadItem:
    return UploadItem(path, len(content), digest_of(content))


def test_a_first_upload_is_version_one_and_the_next_is_two(people: People) -> None:
    people.put(people.ana, {"/data/train.json": b"one"})
    assert version(people, "/data/train.json") == 1
    people.put(people.ben, {"/data/train.json": b"two", "/data/test.json": b"x"})
    assert version(people, "/data/train.json") == 2
    assert version(people, "/data/test.json") == 1


def test_nothing_of_a_pending_upload_is_seen(people: People) -> None:
    people.send(people.ana, {"/a": b"one"})
    with pytest.raises(NotFound):
        version(people, "/a")


def test_two_sessions_on_one_path_get_consecutive_numbers_in_the_order_of_their_commits(
    people: People,
) -> None:
    first, second = people.send(people.ana, {"/a": b"first"}), people.send(people.ben, {"/a": b"second"})
    with people.lake.store.write() as tx:
        upload.commit(tx, people.ben, second.id)
        upload.commit(tx, people.ana, first.id)
        found = artifacts.versions_of(tx, people.ana.project_id, Kind.FILE, "/a")
    assert [(v.version, v.digest) for v in found] == [(2, digest_of(b"first")), (1, digest_of(b"second"))]


def test_an_aborted_upload_takes_no_number_and_leaves_no_bytes(people: People) -> None:
    people.put(people.ana, {"/a": b"one"})
    session = people.send(people.ana, {"/a": b"two"})
    upload.abort(people.lake, people.ana, session.id)
    upload.abort(people.lake, people.ana, session.id)
    people.put(people.ana, {"/a": b"three"})
    assert version(people, "/a") == 2
    with people.lake.store.write() as tx, pytest.raises(Conflict, match="aborted"):
        upload.commit(tx, people.ana, session.id)


def test_the_same_commit_twice_commits_once(people: People) -> None:
    session = people.send(people.ana, {"/a": b"one"})
    for _ in range(2):
        with people.lake.store.write() as tx:
            assert upload.commit(tx, people.ana, session.id).state is UploadState.COMMITTED
    assert version(people, "/a") == 1


def test_many_commits_at_once_leave_no_gap(people: People) -> None:
    sessions = [people.send(people.ana, {"/a": bytes([i]), f"/b{i % 3}": bytes([i])}) for i in range(12)]

    def commit(session: Upload) -> None:
        with people.lake.store.write() as tx:
            upload.commit(tx, people.ana, session.id)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(commit, sessions + sessions))
    with people.lake.store.read() as tx:
        numbers = [v.version for v in artifacts.versions_of(tx, people.ana.project_id, Kind.FILE, "/a")]
        others = [v.version for v in artifacts.versions_of(tx, people.ana.project_id, Kind.FILE, "/b1")]
    assert numbers == list(range(12, 0, -1))
    assert others == [4, 3, 2, 1]


def test_the_same_bytes_make_no_new_version(people: People) -> None:
    people.put(people.ana, {"/a": b"one", "/b": b"one"})
    people.put(people.ana, {"/a": b"one", "/b": b"two"})
    assert (version(people, "/a"), version(people, "/b")) == (1, 2)
    people.put(people.ana, {"/b": b"one"})
    assert version(people, "/b") == 3


def test_a_commit_without_all_bytes_says_which_are_missing(people: People) -> None:
    with people.lake.store.write() as tx:
        session = upload.start(tx, people.ana)
        upload.add_files(tx, people.ana, session.id, [item("/a", b"never sent")])
        with pytest.raises(Conflict, match="/a have not been sent"):
            upload.commit(tx, people.ana, session.id)
        with pytest.raises(InvalidInput, match="no files"):
            upload.commit(tx, people.ana, upload.start(tx, people.ana).id)


def test_bytes_that_the_project_has_are_not_sent_again(people: People) -> None:
    people.put(people.ana, {"/a": b"one"})
    with people.lake.store.write() as tx:
        session = upload.start(tx, people.ben)
        assert upload.add_files(tx, people.ben, session.id, [item("/b", b"one")]) == []
        upload.commit(tx, people.ben, session.id)
    assert version(people, "/b") == 1


def test_nobody_learns_by_asking_what_another_project_has(people: People) -> None:
    people.put(people.ana, {"/secret": b"one"})
    before = stored(people)
    with people.lake.store.write() as tx:
        session = upload.start(tx, people.eve)
        asked = upload.add_files(tx, people.eve, session.id, [item("/guess", b"one")])
    assert asked == [digest_of(b"one")]
    people.put(people.eve, {"/same": b"one"})
    assert stored(people) == before  # and yet the bytes are stored once


@pytest.mark.parametrize("size", [10, 300_000])
def test_equal_bytes_are_stored_once(people: People, size: int) -> None:
    people.put(people.ana, {"/a": b"x" * size, "/b": b"x" * size, "/c": b"x" * size + b"y"})
    people.put(people.eve, {"/e": b"x" * size, "/f": b"z" * size})
    assert stored(people) == size + (size + 1) + size


def test_an_interrupted_upload_sends_only_what_is_missing(people: People) -> None:
    lake, big = people.lake, bytes(300_000)
    with lake.store.write() as tx:
        session = upload.start(tx, people.ana)
        upload.add_files(tx, people.ana, session.id, [item("/big", big), item("/c", b"c")])
    (transfer,) = upload.announce(lake, people.ana, session.id, [Incoming(digest_of(big), len(big))])
    assert transfer.missing == [1]
    upload.receive_part(lake, transfer.stage.id, 1, [big])
    (transfer,) = upload.announce(lake, people.ana, session.id, [Incoming(digest_of(big), len(big))])
    assert transfer.missing == []  # a new client asks again after the crash
    upload.finish_object(lake, people.ana, session.id, digest_of(big))
    upload.finish_object(lake, people.ana, session.id, digest_of(big))
    with lake.store.write() as tx:
        assert upload.wanted(tx, people.ana, session.id, b"", 10) == [(digest_of(b"c"), 1)]


def test_wrong_bytes_are_refused_and_can_be_sent_again(people: People) -> None:
    lake, good = people.lake, digest_of(b"good")
    with lake.store.write() as tx:
        session = upload.start(tx, people.ana)
        upload.add_files(tx, people.ana, session.id, [UploadItem("/a", 4, good)])
    for content in (b"evil", b"good"):
        (transfer,) = upload.announce(lake, people.ana, session.id, [Incoming(good, 4)])
        upload.receive_part(lake, transfer.stage.id, 1, [content])
        if content == b"evil":
            with pytest.raises(InvalidInput, match="hash to"):
                upload.finish_object(lake, people.ana, session.id, good)
        else:
            upload.finish_object(lake, people.ana, session.id, good)
    with lake.store.write() as tx:
        upload.commit(tx, people.ana, session.id)


def test_only_bytes_that_were_asked_for_may_be_sent(people: People) -> None:
    with people.lake.store.write() as tx:
        session = upload.start(tx, people.ana)
    with pytest.raises(InvalidInput, match="no file of this upload"):
        upload.announce(people.lake, people.ana, session.id, [Incoming(digest_of(b"spam"), 4)])


@pytest.mark.parametrize("who", ["ben", "eve"])
def test_a_session_belongs_to_its_sender(people: People, who: str) -> None:
    other: Caller = getattr(people, who)
    session = people.send(people.ana, {"/a": b"one"})
    with people.lake.store.write() as tx, pytest.raises(NotFound):
        upload.commit(tx, other, session.id)
    with pytest.raises(NotFound):
        upload.abort(people.lake, other, session.id)


def test_a_path_is_a_file_or_a_folder_but_not_both(people: People) -> None:
    people.put(people.ana, {"/a/b": b"one"})
    for files in ({"/a": b"x"}, {"/a/b/c": b"x"}, {"/new": b"x", "/new/y": b"y"}):
        session = people.send(people.ana, files)
        with people.lake.store.write() as tx, pytest.raises(Conflict, match="file and a folder"):
            upload.commit(tx, people.ana, session.id)
    assert version(people, "/a/b") == 1


def test_a_path_named_twice_in_two_spellings_is_refused(people: People) -> None:
    with people.lake.store.write() as tx:
        session = upload.start(tx, people.ana)
        twins = [item("/cafe\u0301", b"one"), item("/caf\u00e9", b"two")]
        with pytest.raises(InvalidInput, match="twice"):
            upload.add_files(tx, people.ana, session.id, twins)


def test_a_link_inside_the_folder_is_its_file_and_one_that_leads_out_is_refused(
    people: People, tmp_path: Path
) -> None:
    folder = tmp_path / "up"
    folder.mkdir()
    (folder / "real").write_bytes(b"real")
    (folder / "alias").symlink_to("real")
    session = ingest_folder(people.lake, people.ana, folder, "/up/")
    with people.lake.store.write() as tx:
        upload.commit(tx, people.ana, session.id)
    assert version(people, "/up/alias") == 1
    for target in ("/etc/hostname", "..", "nowhere"):
        (folder / "bad").symlink_to(target)
        with pytest.raises(InvalidInput, match="leads out"):
            ingest_folder(people.lake, people.ana, folder, "/up/")
        (folder / "bad").unlink()


def damage(people: People, content: bytes) -> None:
    """Turns a bit of the stored bytes."""
    with people.lake.store.read() as tx:
        place = blob_index.locate(tx, [digest_of(content)])[digest_of(content)]
    assert isinstance(people.lake.blobs, LocalBlobs)
    path = people.lake.blobs.path(Digest(place.object))
    assert path is not None
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[place.offset] ^= 1
    path.write_bytes(data)


def read_back(people: People, content: bytes) -> bytes:
    with people.lake.store.read() as tx:
        place = blob_index.locate(tx, [digest_of(content)])[digest_of(content)]
    return b"".join(people.lake.blobs.read(Digest(place.object), place.offset, place.size))


@pytest.mark.parametrize("size", [20, 300_000], ids=["in a pack", "alone"])
def test_damaged_bytes_are_healed_by_sending_them_again(people: People, size: int) -> None:
    good, beside = bytes(range(20)) * (size // 20), b"beside it"
    people.put(people.ana, {"/a": good, "/b": beside})
    damage(people, good)
    assert read_back(people, good) != good
    people.put(people.ben, {"/copy": good})
    assert read_back(people, good) == good
    assert read_back(people, beside) == beside
    assert version(people, "/a") == 1


def test_bytes_that_are_gone_from_the_disk_come_back_by_sending_them_again(people: People) -> None:
    people.put(people.ana, {"/a": b"good"})
    for found in list(people.lake.blobs.objects()):
        people.lake.blobs.delete(found.digest)
    people.put(people.ana, {"/a": b"good"})
    assert read_back(people, b"good") == b"good"
