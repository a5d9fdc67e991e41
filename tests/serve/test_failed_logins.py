from __future__ import annotations

import pytest

from easel.errors import Denied, QuotaExhausted, Unauthenticated
from easel.serve import failed_logins
from easel.serve.failed_logins import FailedLogins
from easel.testing.clock import FakeClock


def guess(failed: FailedLogins, address: str, account: str, error: type[Exception] | None) -> None:
    """Somebody tries a password, which is right unless an error says otherwise."""
    with failed.guessing(address, account, "passwords", wrong=Unauthenticated):
        if error is not None:
            raise error("no")


def wrong(failed: FailedLogins, address: str, account: str, times: int) -> None:
    for _ in range(times):
        with pytest.raises(Unauthenticated):
            guess(failed, address, account, Unauthenticated)


def test_after_a_minute_one_may_guess_again() -> None:
    clock = FakeClock()
    failed = FailedLogins(clock, 3)
    wrong(failed, "here", "eva", 3)
    with pytest.raises(QuotaExhausted) as refused:
        guess(failed, "here", "eva", None)
    assert refused.value.details["retry_after"] == 60
    clock.advance(61)
    guess(failed, "here", "eva", None)


def test_right_passwords_and_other_refusals_do_not_count() -> None:
    failed = FailedLogins(FakeClock(), 2)
    for error in (None, Denied, None, Denied):
        if error is None:
            guess(failed, "here", "eva", None)
        else:
            with pytest.raises(error):
                guess(failed, "here", "eva", error)
    wrong(failed, "here", "eva", 2)


def test_neither_many_addresses_nor_many_accounts_are_a_way_around() -> None:
    failed = FailedLogins(FakeClock(), 2)
    for number in range(5):
        wrong(failed, f"10.0.0.{number}", "eva", 2)
    with pytest.raises(QuotaExhausted):
        guess(failed, "10.0.0.9", "eva", None)
    for number in range(5):
        wrong(failed, "there", f"user {number}", 2)
    with pytest.raises(QuotaExhausted):
        guess(failed, "there", "tom", None)


def test_wrong_tokens_of_a_neighbour_shut_nobody_out() -> None:
    failed = FailedLogins(FakeClock(), 1)
    failed.note("here")
    with pytest.raises(QuotaExhausted):
        failed.note("here")
    guess(failed, "here", "eva", None)


def test_a_scan_wipes_out_nothing_that_is_known_of_an_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failed_logins, "_MOST_KNOWN", 50)
    monkeypatch.setattr(failed_logins, "_SHARED", 16)
    clock = FakeClock()
    failed = FailedLogins(clock, 2)
    for number in range(5):
        wrong(failed, f"10.0.0.{number}", "eva", 2)
    for number in range(200):  # the account of each is another, and so is the address
        with pytest.raises((Unauthenticated, QuotaExhausted)):
            guess(failed, f"10.1.{number}.1", f"user {number}", Unauthenticated)
    assert len(failed._times) <= 50 + 3 * 16, "many are counted together"
    with pytest.raises(QuotaExhausted):
        guess(failed, "10.0.0.9", "eva", None)
    clock.advance(61)
    guess(failed, "10.0.0.9", "eva", None)
    assert len(failed._times) < 10, "what is older than a minute is forgotten"


def test_what_is_refused_takes_no_room() -> None:
    failed = FailedLogins(FakeClock(), 1)
    wrong(failed, "here", "eva", 1)
    for number in range(4):
        wrong(failed, "here", f"other {number}", 1)
    known = len(failed._times)
    for number in range(20):
        with pytest.raises(QuotaExhausted):
            guess(failed, "here", f"user {number}", None)
    assert len(failed._times) == known


def test_the_addresses_of_one_ipv6_network_are_one() -> None:
    failed = FailedLogins(FakeClock(), 2)
    for number in range(10):
        wrong(failed, f"2001:db8::{number:x}", f"user {number}", 1)
    with pytest.raises(QuotaExhausted):
        guess(failed, "2001:db8::ffff", "eva", None)
    guess(failed, "2001:db8:0:1::1", "eva", None)
    guess(failed, "::ffff:10.0.0.1", "eva", None)
