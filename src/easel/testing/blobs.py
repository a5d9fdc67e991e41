"""The conformance suite of blob stores: subclass it, provide `blobs`, and pytest runs it."""

from __future__ import annotations

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from easel.errors import EaselError, InvalidInput, NotFound
from easel.lake.blobs.store import BlobStore, Incoming, PackMember, Stage, put
from easel.lake.digest import digest_of

FIVE = 5 * 2**20


def send(blobs: BlobStore, name: str, data: bytes) -> Stage:
    """Stage bytes, all parts."""
    stage = blobs.begin(name, len(data))
    for number in range(1, stage.part_count + 1):
        start = (number - 1) * stage.part_size
        blobs.put_part(stage, number, [data[start : start + stage.part_length(number)]])
    return stage


class BlobStoreSuite:
    """`blobs` is empty and cuts parts at 5 MiB, the smallest that S3 takes."""

    def test_what_was_put_is_read_back(self, blobs: BlobStore) -> None:
        digest = put(blobs, "a", b"hello")
        assert b"".join(blobs.read(digest)) == b"hello"
        assert blobs.size(digest) == 5

    def test_empty_bytes_are_bytes_too(self, blobs: BlobStore) -> None:
        digest = put(blobs, "a", b"")
        assert b"".join(blobs.read(digest)) == b""
        assert blobs.size(digest) == 0

    @pytest.mark.parametrize(
        ("offset", "length", "expected"),
        [(0, 2, b"he"), (1, 3, b"ell"), (4, None, b"o"), (5, None, b""), (2, 0, b""), (3, 100, b"lo")],
    )
    def test_any_range_is_read(
        self, blobs: BlobStore, offset: int, length: int | None, expected: bytes
    ) -> None:
        digest = put(blobs, "a", b"hello")
        assert b"".join(blobs.read(digest, offset, length)) == expected

    def test_what_is_not_there_is_not_found(self, blobs: BlobStore) -> None:
        absent = digest_of(b"absent")
        assert blobs.size(absent) is None
        with pytest.raises(NotFound):
            list(blobs.read(absent))

    def test_a_large_object_arrives_in_parts_in_any_order(self, blobs: BlobStore) -> None:
        data = os.urandom(2 * FIVE + 17)
        stage = blobs.begin("big", len(data))
        assert stage.part_count == 3
        for number in (3, 1):
            start = (number - 1) * FIVE
            blobs.put_part(stage, number, [data[start : start + stage.part_length(number)]])
        assert blobs.parts(stage) == {1, 3}
        incoming = Incoming(digest_of(data), len(data))
        with pytest.raises(InvalidInput, match="did not arrive"):
            blobs.check(stage, incoming)
        blobs.put_part(stage, 2, [data[FIVE : 2 * FIVE]])
        blobs.check(stage, incoming)
        blobs.promote(stage, incoming.digest)
        assert b"".join(blobs.read(incoming.digest)) == data

    @pytest.mark.parametrize("size", [4, FIVE + 4])
    def test_a_part_that_comes_after_the_check_changes_nothing(self, blobs: BlobStore, size: int) -> None:
        """Others rely on these bytes from now on; the sender's address may be valid for an hour yet."""
        good, evil = os.urandom(size), os.urandom(size)
        stage, digest = send(blobs, "a", good), digest_of(good)
        blobs.check(stage, Incoming(digest, size))
        for _ in ("before its name", "after it"):
            with contextlib.suppress(EaselError):
                blobs.put_part(stage, 1, [evil[: stage.part_length(1)]])
            blobs.promote(stage, digest)
        assert b"".join(blobs.read(digest)) == good

    def test_a_truncated_part_stays_missing(self, blobs: BlobStore) -> None:
        stage = blobs.begin("a", 10)
        with pytest.raises(InvalidInput, match="ended after 3 of 10"):
            blobs.put_part(stage, 1, [b"abc"])
        assert blobs.parts(stage) == frozenset()

    def test_an_overlong_part_stays_missing(self, blobs: BlobStore) -> None:
        stage = blobs.begin("a", 4)
        with pytest.raises(InvalidInput, match="more than"):
            blobs.put_part(stage, 1, [b"abc", b"de"])
        assert blobs.parts(stage) == frozenset()

    def test_a_part_that_does_not_exist_is_refused(self, blobs: BlobStore) -> None:
        stage = blobs.begin("a", 4)
        for number in (0, 2, -1):
            with pytest.raises(InvalidInput, match="no part"):
                blobs.put_part(stage, number, [b"abcd"])

    def test_wrong_bytes_are_refused_and_removed(self, blobs: BlobStore) -> None:
        stage = send(blobs, "a", b"evil")
        with pytest.raises(InvalidInput, match="send them again"):
            blobs.check(stage, Incoming(digest_of(b"good"), 4))
        assert blobs.parts(stage) == frozenset()
        assert list(blobs.objects()) == []

    def test_each_member_of_a_pack_is_checked(self, blobs: BlobStore) -> None:
        data = b"onetwo"
        good = (PackMember(digest_of(b"one"), 0, 3), PackMember(digest_of(b"two"), 3, 3))
        stage = send(blobs, "a", data)
        blobs.check(stage, Incoming(digest_of(data), 6, good))
        assert blobs.read_stage(stage, 3, 3) == b"two"
        lie = (good[0], replace(good[1], digest=digest_of(b"six")))
        with pytest.raises(InvalidInput, match="of the pack are not"):
            blobs.check(stage, Incoming(digest_of(data), 6, lie))

    @pytest.mark.parametrize("spans", [((0, 3),), ((0, 3), (2, 4)), ((0, 3), (4, 2)), ((0, 3), (3, 9))])
    def test_a_pack_with_gaps_or_overlaps_is_refused(
        self, blobs: BlobStore, spans: tuple[tuple[int, int], ...]
    ) -> None:
        data = b"onetwo"
        members = tuple(PackMember(digest_of(data[o : o + n]), o, n) for o, n in spans)
        stage = send(blobs, "a", data)
        with pytest.raises(InvalidInput):
            blobs.check(stage, Incoming(digest_of(data), 6, members))

    def test_promoting_twice_is_harmless(self, blobs: BlobStore) -> None:
        stage = send(blobs, "a", b"x")
        blobs.check(stage, Incoming(digest_of(b"x"), 1))
        blobs.promote(stage, digest_of(b"x"))
        blobs.promote(stage, digest_of(b"x"))
        assert [o.digest for o in blobs.objects()] == [digest_of(b"x")]
        assert list(blobs.stages()) == []

    def test_equal_bytes_are_one_object(self, blobs: BlobStore) -> None:
        with ThreadPoolExecutor(4) as pool:
            digests = set(pool.map(lambda i: put(blobs, f"s{i}", b"same"), range(8)))
        assert [o.digest for o in blobs.objects()] == list(digests)

    def test_a_discarded_stage_is_gone(self, blobs: BlobStore) -> None:
        stage = blobs.begin("big", 2 * FIVE)
        assert blobs.is_open(stage)
        blobs.put_part(stage, 1, [bytes(FIVE)])
        assert [s.id for s in blobs.stages()] == ["big"]
        blobs.discard(stage)
        blobs.discard(stage)
        assert list(blobs.stages()) == []
        assert not blobs.is_open(stage)
        with pytest.raises(NotFound):
            blobs.promote(stage, digest_of(b"never"))

    def test_a_deleted_object_is_gone(self, blobs: BlobStore) -> None:
        digest = put(blobs, "a", b"x")
        blobs.delete(digest)
        blobs.delete(digest)
        assert blobs.size(digest) is None
        assert list(blobs.objects()) == []

    def test_objects_know_their_size_and_age(self, blobs: BlobStore) -> None:
        put(blobs, "a", b"four")
        (found,) = blobs.objects()
        assert (found.size, found.modified.tzinfo is not None) == (4, True)

    def test_an_object_that_is_put_again_is_young_again(self, blobs: BlobStore) -> None:
        digest = put(blobs, "a", b"four")
        first = blobs.find(digest)
        put(blobs, "b", b"four")
        second = blobs.find(digest)
        assert first is not None
        assert second is not None
        assert (second.digest, second.size) == (digest, 4)
        assert second.modified >= first.modified
        assert blobs.find(digest_of(b"absent")) is None
