from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from easel.errors import Conflict, InvalidInput
from easel.lake.cache import BlobCache
from easel.lake.digest import Corrupt, Digest, digest_of
from easel.lake.manifest.node import Entry
from easel.lake.materialise import Mode, materialise

DAY_NS = 86_400 * 10**9


class Bytes:
    """Blobs in a dictionary, which counts what is fetched."""

    def __init__(self, *contents: bytes) -> None:
        self.by_digest = {digest_of(content): content for content in contents}
        self.fetched = 0

    def fetch(self, digest: Digest, size: int) -> Iterator[bytes]:
        self.fetched += 1
        content = self.by_digest[digest]
        yield content[: size // 2]
        yield content[size // 2 :]


def entry(path: str, content: bytes) -> Entry:
    return Entry(path, 1, 1, len(content), digest_of(content))


def tree(root: Path) -> dict[str, bytes]:
    return {"/" + str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("cached", [True, False])
def test_a_set_becomes_a_folder(tmp_path: Path, mode: Mode, cached: bool) -> None:
    source = Bytes(b"one", b"two", b"")
    entries = [entry("/a", b"one"), entry("/b/c/d", b"two"), entry("/b/empty", b""), entry("/copy", b"one")]
    cache = BlobCache(tmp_path / "cache") if cached else None
    done = materialise(entries, tmp_path / "out", source.fetch, cache=cache, mode=mode)
    assert tree(tmp_path / "out") == {"/a": b"one", "/b/c/d": b"two", "/b/empty": b"", "/copy": b"one"}
    assert (done.files, done.bytes) == (4, 9)


def test_a_second_job_fetches_nothing(tmp_path: Path) -> None:
    source, cache = Bytes(b"one"), BlobCache(tmp_path / "cache")
    assert materialise([entry("/a", b"one")], tmp_path / "1", source.fetch, cache=cache).fetched == 3
    assert materialise([entry("/z", b"one")], tmp_path / "2", source.fetch, cache=cache).fetched == 0
    assert source.fetched == 1


def test_shared_files_are_read_only_and_own_files_are_not(tmp_path: Path) -> None:
    source, cache = Bytes(b"one"), BlobCache(tmp_path / "cache")
    materialise([entry("/a", b"one")], tmp_path / "own", source.fetch, cache=cache, mode=Mode.OWN)
    (tmp_path / "own/a").write_bytes(b"mine")
    materialise([entry("/a", b"one")], tmp_path / "share", source.fetch, cache=cache)
    assert (tmp_path / "share/a").read_bytes() == b"one"
    assert (tmp_path / "own/a").stat().st_mode & 0o200


def test_a_job_that_writes_through_a_link_spoils_nobody_elses_input(tmp_path: Path) -> None:
    source, cache = Bytes(b"one"), BlobCache(tmp_path / "cache")
    materialise([entry("/a", b"one")], tmp_path / "bad", source.fetch, cache=cache)
    (tmp_path / "bad/a").chmod(0o644)
    (tmp_path / "bad/a").write_bytes(b"0ne")
    materialise([entry("/a", b"one")], tmp_path / "next", source.fetch, cache=cache)
    assert (tmp_path / "next/a").read_bytes() == b"one"


def test_damaged_bytes_never_become_a_folder(tmp_path: Path) -> None:
    source, good = Bytes(b"one"), entry("/a", b"one")
    source.by_digest[good.digest] = b"0ne"
    for cache in (None, BlobCache(tmp_path / "cache")):
        with pytest.raises(Corrupt):
            materialise([good], tmp_path / "out", source.fetch, cache=cache)
        assert not (tmp_path / "out").exists()
        assert not list(tmp_path.glob(".out*"))


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("precious")
    with pytest.raises(InvalidInput, match="not empty"):
        materialise([], tmp_path, Bytes().fetch)
    assert tree(tmp_path) == {"/mine": b"precious"}


def test_a_path_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput):
        materialise([entry("/../escape", b"one")], tmp_path / "out", Bytes(b"one").fetch)
    assert not (tmp_path / "escape").exists()


def test_a_name_that_is_both_file_and_folder_is_named(tmp_path: Path) -> None:
    entries = [entry("/a", b"one"), entry("/a/b", b"two")]
    with pytest.raises(Conflict, match="is a file and a folder"):
        materialise(entries, tmp_path / "out", Bytes(b"one", b"two").fetch, threads=1)


def test_the_cache_lets_go_of_what_was_used_longest_ago(tmp_path: Path) -> None:
    ticks = iter(range(1, 100))
    cache = BlobCache(tmp_path / "cache", limit=6, now_ns=lambda: next(ticks) * 10**9)
    source = Bytes(b"old", b"mid", b"new")
    for content in (b"old", b"mid", b"new", b"old"):
        cache.path(digest_of(content), 3, lambda c=content: iter([c]))  # type: ignore[misc]
    assert cache.trim() == 3
    assert [cache.holds(d, 3) for d in source.by_digest] == [True, False, True]


segments = st.text(st.sampled_from("abcé"), min_size=1, max_size=3)


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.dictionaries(segments, st.dictionaries(segments, st.binary(max_size=8), max_size=4), max_size=4))
def test_every_file_comes_back_byte_for_byte(tmp_path: Path, folders: dict[str, dict[str, bytes]]) -> None:
    content = {f"/{d}/{f}": data for d, files in folders.items() for f, data in files.items()}
    source = Bytes(*content.values())
    target = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
    cache = BlobCache(tmp_path / "cache")
    materialise([entry(p, c) for p, c in sorted(content.items())], target, source.fetch, cache=cache)
    assert tree(target) == content


def test_what_nobody_used_for_long_leaves_the_cache_and_a_full_disk_empties_it(tmp_path: Path) -> None:
    now = [100 * DAY_NS]
    free = [10**12]
    cache = BlobCache(
        tmp_path / "cache", now_ns=lambda: now[0], days=30, least_free=10, free=lambda _root: free[0]
    )
    for text in (b"old", b"new"):
        cache.path(digest_of(text), 3, lambda text=text: iter([text]))  # type: ignore[misc]
        now[0] += 20 * DAY_NS
    assert (cache.trim(), cache.holds(digest_of(b"old"), 3), cache.holds(digest_of(b"new"), 3)) == (
        3,
        False,
        True,
    )
    free[0] = 9
    assert (cache.trim(), cache.holds(digest_of(b"new"), 3)) == (3, False)


def test_idle_files_give_way_when_the_disk_fills_under_one_that_a_job_needs(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "cache")
    cache.path(digest_of(b"idle"), 4, lambda: iter([b"idle"]))

    def needed() -> Iterator[bytes]:
        if cache.holds(digest_of(b"idle"), 4):
            raise OSError(errno.ENOSPC, "No space left on device")
        yield b"needed"

    assert cache.path(digest_of(b"needed"), 6, needed).read_bytes() == b"needed"
    assert not cache.holds(digest_of(b"idle"), 4)


def test_what_is_about_to_get_its_name_is_not_trimmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker trims its cache when it starts, which is when its first job fetches."""
    source, cache = Bytes(b"one"), BlobCache(tmp_path / "cache")
    real = Path.replace

    def trimmed_first(path: Path, target: Path) -> Path:
        cache.trim()
        return real(path, target)

    monkeypatch.setattr(Path, "replace", trimmed_first)
    found = cache.path(digest_of(b"one"), 3, lambda: source.fetch(digest_of(b"one"), 3))
    assert found.read_bytes() == b"one"


def test_what_a_killed_process_left_half_written_goes_after_a_day(tmp_path: Path) -> None:
    cache = BlobCache(tmp_path / "cache")
    fresh, old = tmp_path / "cache" / "new-a", tmp_path / "cache" / "new-b"
    for half in (fresh, old):
        half.write_bytes(b"ha")
    os.utime(old, ns=(old.stat().st_atime_ns - 2 * DAY_NS,) * 2)
    cache.trim()
    assert (fresh.exists(), old.exists()) == (True, False)
