"""The conformance suite of the store: subclass it, provide `store`, and pytest runs it over your database."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from easel.declare.page import Filter, PageRequest
from easel.declare.roles import Role
from easel.errors import Conflict, InvalidInput
from easel.ids import UserId
from easel.store import events, identity, leases
from easel.store.engine import Store


class StoreSuite:
    """What every database must do for Easel. `store` is migrated and empty."""

    def test_a_failed_transaction_leaves_nothing(self, store: Store) -> None:
        def fail_halfway() -> None:
            with store.write() as tx:
                identity.add_project(tx, "astro", "")
                tx.emit("project.created", "x")
                raise RuntimeError("after the insert")

        with pytest.raises(RuntimeError):
            fail_halfway()
        with store.read() as tx:
            assert events.last_seq(tx) == 0
        with store.write() as tx:
            identity.add_project(tx, "astro", "")

    def test_a_reader_cannot_write(self, store: Store) -> None:
        with store.read() as tx:
            identity.add_project(tx, "astro", "")
        with store.write() as tx:
            identity.add_project(tx, "astro", "")  # the name is still free

    def test_a_taken_name_is_a_conflict_and_the_transaction_goes_on(self, store: Store) -> None:
        with store.write() as tx:
            identity.add_project(tx, "astro", "")
            with pytest.raises(Conflict, match="choose another"):
                identity.add_project(tx, "astro", "again")
            identity.add_project(tx, "bio", "")
        with store.read() as tx:
            admin = identity.find_user(tx, _admin(store))
            assert admin is not None
            names = [p.name for p in identity.list_projects(tx, admin, PageRequest()).items]
        assert names == ["astro", "bio"]

    def test_equal_user_names_live_in_different_projects(self, store: Store) -> None:
        with store.write() as tx:
            one, two = identity.add_project(tx, "one", ""), identity.add_project(tx, "two", "")
            first = identity.add_user(tx, "ana", home=one.id)
            second = identity.add_user(tx, "ana", home=two.id)
            identity.put_member(tx, one.id, first.id, Role.MEMBER)
            identity.put_member(tx, one.id, second.id, Role.MEMBER)
            assert identity.get_member(tx, one.id, "ana").user.id == first.id
            assert identity.get_member(tx, one.id, second.id).user.id == second.id

    def test_pages_neither_skip_nor_repeat_whatever_the_order(self, store: Store) -> None:
        admin_id = _admin(store)
        with store.write() as tx:
            made = {identity.add_project(tx, f"p{i:03}", "").name for i in range(57)}
        for sort in ("name", "-name", "created_at", "-created_at", "id", "-id"):
            seen: list[str] = []
            cursor = None
            while True:
                with store.read() as tx:
                    admin = identity.find_user(tx, admin_id)
                    assert admin is not None
                    request = PageRequest(limit=10, cursor=cursor, sort=sort)
                    page = identity.list_projects(tx, admin, request)
                seen += [p.name for p in page.items]
                cursor = page.next_cursor
                if cursor is None:
                    break
            assert len(seen) == len(made)
            assert set(seen) == made

    def test_filters_compare_by_type_and_refuse_what_they_do_not_know(self, store: Store) -> None:
        admin_id = _admin(store)
        with store.write() as tx:
            for name in ("ab", "a_b", "abc", "b"):
                identity.add_project(tx, name, "")
        with store.read() as tx:
            admin = identity.find_user(tx, admin_id)
            assert admin is not None

            def names(*filters: Filter) -> list[str]:
                return [p.name for p in identity.list_projects(tx, admin, PageRequest(filters=filters)).items]

            assert names(Filter("name", "prefix", "a_")) == ["a_b"]  # _ is no wildcard
            assert names(Filter("name", "ge", "abc")) == ["abc", "b"]
            assert names(Filter("created_at", "lt", "2000-01-01T00:00:00Z")) == []
            with pytest.raises(InvalidInput, match="no field"):
                names(Filter("secret_hash", "eq", "x"))
            with pytest.raises(InvalidInput, match="zone"):
                names(Filter("created_at", "lt", "2000-01-01"))

    def test_a_damaged_or_foreign_cursor_is_refused(self, store: Store) -> None:
        admin_id = _admin(store)
        with store.write() as tx:
            for i in range(5):
                identity.add_project(tx, f"p{i}", "")
        with store.read() as tx:
            admin = identity.find_user(tx, admin_id)
            assert admin is not None
            cursor = identity.list_projects(tx, admin, PageRequest(limit=2)).next_cursor
            for bad in ("", "%%%", "AAAA", "W10", "bnVsbA", (cursor or "")[:-3]):
                with pytest.raises(InvalidInput):
                    identity.list_projects(tx, admin, PageRequest(cursor=bad))
            with pytest.raises(InvalidInput, match="another sort"):
                identity.list_projects(tx, admin, PageRequest(cursor=cursor, sort="-name"))

    def test_a_follower_of_events_misses_none_of_many_writers(self, store: Store) -> None:
        writers, each = 8, 12
        stop = threading.Event()
        seen: list[int] = []

        def follow() -> None:
            last = 0
            while True:
                finished = stop.is_set()
                with store.read() as tx:
                    found = events.events_after(tx, None, last)
                seen.extend(event.seq for event in found)
                last = seen[-1] if seen else 0
                if finished and not found:
                    return

        def write(writer: int) -> None:
            for i in range(each):
                with store.write() as tx:
                    tx.emit("thing.changed", f"{writer}", body={"i": i})
                    tx.emit("thing.changed", f"{writer}", body={"i": i, "again": True})

        with ThreadPoolExecutor(writers + 1) as pool:
            follower = pool.submit(follow)
            for done in [pool.submit(write, n) for n in range(writers)]:
                done.result()
            stop.set()
            follower.result()
        assert len(seen) == len(set(seen)) == writers * each * 2
        assert seen == sorted(seen)

    def test_fifty_writers_all_get_their_turn(self, store: Store) -> None:
        def write(i: int) -> None:
            with store.write() as tx:
                identity.add_project(tx, f"p{i}", "")
                tx.emit("project.created", f"p{i}")

        with ThreadPoolExecutor(50) as pool:
            list(pool.map(write, range(150)))
        with store.read() as tx:
            assert len(events.events_after(tx, None, 0, limit=1000)) == 150

    def test_one_holder_at_a_time_and_the_fence_grows_with_each(self, store: Store) -> None:
        with store.write() as tx:
            assert leases.take(tx, "controller", "a", 10) == 1
            assert leases.take(tx, "controller", "a", 10) == 1
            assert leases.take(tx, "controller", "b", 10) is None
            assert leases.holds(tx, "controller", 1)
        with store.write() as tx:
            leases.release(tx, "controller", "a")
        with store.write() as tx:
            assert leases.take(tx, "controller", "b", 10) == 2
            assert not leases.holds(tx, "controller", 1)


def _admin(store: Store) -> UserId:
    with store.write() as tx:
        return identity.add_user(tx, "root", home=None, platform_admin=True).id
