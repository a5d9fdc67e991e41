from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from easel.errors import InvalidInput, NotFound
from easel.price.book import Billing, OwnHardware, PriceBook, Spot, book_named, read_book, shipped_books

FLAT = '[vcpu]\nkind = "flat"\nper_hour = 0.04\n[memory_gb]\nkind = "flat"\nper_hour = 0.004\n'


@pytest.mark.parametrize(
    ("cpus", "memory_mb", "minutes", "paid", "digits"),
    [
        (7.5, 3584, 16.6, 0.08837, 5),
        (8, 3328, 37.4, 0.21800, 5),
        # The last digit that a runtime printed to a tenth of a minute allows.
        (2.5, 512, 52.6, 0.0597, 4),
        (2.5, 512, 140.4, 0.1595, 4),
    ],
)
def test_the_papers_auto_provisioned_prices_come_out(
    cpus: float, memory_mb: float, minutes: float, paid: float, digits: int
) -> None:
    book = book_named("acai")
    assert round(float(book.charge(book.rate(cpus, memory_mb), minutes * 60)), digits) == paid


@pytest.mark.parametrize(("minutes", "paid"), [(64.6, 0.09765), (162.2, 0.24519)])
def test_the_papers_baselines_come_out_within_a_hundredth(minutes: float, paid: float) -> None:
    book = book_named("acai")
    assert float(book.charge(book.rate(2, 7680), minutes * 60)) == pytest.approx(paid, rel=0.01)


def test_unit_prices_rise_from_two_thirds_to_four_thirds_and_stay_there() -> None:
    vcpu = book_named("acai").vcpu
    units = vcpu.unit(np.array([0.1, 0.5, 4.25, 8.0, 16.0])) / 0.031611
    np.testing.assert_allclose(units, [2 / 3, 2 / 3, 1.0, 4 / 3, 4 / 3])


def test_a_grid_is_priced_at_once_as_cell_by_cell() -> None:
    book = book_named("acai")
    cpus, memory = np.meshgrid([0.5, 2, 8], [512, 4096])
    together = book.rate(cpus, memory)
    alone = [[float(book.rate(c, m)) for c in (0.5, 2, 8)] for m in (512, 4096)]
    np.testing.assert_array_equal(together, alone)


def test_every_shipped_book_prices_a_job() -> None:
    books = shipped_books()
    assert {"acai", "n1", "n1-spot", "n1-reserved", "workstation", "hourly", "free"} <= set(books)
    for book in books.values():
        assert float(book.charge(book.rate(2, 4096), 600)) >= 0
        assert book.note


def test_gpu_hours_are_added_and_unknown_gpus_refused() -> None:
    book = book_named("n1")
    assert float(book.rate(4, 8192, "t4", 2) - book.rate(4, 8192)) == pytest.approx(0.70)
    with pytest.raises(InvalidInput, match="no price for GPU h200; it lists t4, v100"):
        book.rate(4, 8192, "h200", 1)


def test_negative_resources_are_refused() -> None:
    with pytest.raises(InvalidInput, match="negative"):
        book_named("n1").rate(-1, 512)


@pytest.mark.parametrize(
    ("billing", "elapsed", "billed"),
    [
        (Billing(granularity_s=1, minimum_s=60), 0, 60),
        (Billing(granularity_s=1, minimum_s=60), 60, 60),
        (Billing(granularity_s=1, minimum_s=60), 60.2, 61),
        (Billing(granularity_s=3600), 1, 3600),
        (Billing(granularity_s=3600), 3600, 3600),
        (Billing(granularity_s=3600), 3601, 7200),
        (Billing(granularity_s=0), 0.25, 0.25),
        (Billing(granularity_s=0.1), 0.3, 0.3),
    ],
)
def test_seconds_are_rounded_up_and_at_least_the_minimum(
    billing: Billing, elapsed: float, billed: float
) -> None:
    assert float(billing.seconds(np.asarray(elapsed))) == pytest.approx(billed)


@given(st.floats(0, 1e6), st.sampled_from([0, 0.1, 1, 60, 3600]), st.sampled_from([0, 60, 3600]))
def test_nobody_pays_for_less_than_was_used_nor_for_more_than_a_step_over(
    t: float, step: float, least: float
) -> None:
    billed = float(Billing(granularity_s=step, minimum_s=least).seconds(np.asarray(t)))
    assert billed >= max(t, least) - 1e-6 * max(step, 1)
    assert billed <= max(t, least) + step + 1e-6


def test_a_reserved_hour_that_idles_half_of_the_time_costs_twice_as_much() -> None:
    text = 'name = "r"\n' + FLAT + '[terms]\nkind = "reserved"\ndiscount = 0.4\nutilisation = '
    full, half = read_book(text + "1.0"), read_book(text + "0.5")
    assert float(full.rate(1, 0)) == pytest.approx(0.6 * 0.04)
    assert float(half.rate(1, 0)) == pytest.approx(2 * 0.6 * 0.04)


def test_spot_runs_stretch_as_a_simulation_of_interruptions_says() -> None:
    spot = Spot(kind="spot", discount=0.7, interruptions_per_hour=0.5)
    rng = np.random.default_rng(0)
    totals = []
    for _ in range(20_000):
        total, left = 0.0, 2.0
        while (gap := rng.exponential(1 / 0.5)) < left:
            total += gap
        totals.append(total + left)
    assert float(spot.stretch(np.array(7200.0))) / 3600 == pytest.approx(np.mean(totals), rel=0.03)


@pytest.mark.parametrize("checkpoint", [None, 600.0])
def test_played_runs_end_as_a_simulation_of_interruptions_and_restarts_says(checkpoint: float | None) -> None:
    spot = Spot(
        kind="spot",
        discount=0.7,
        interruptions_per_hour=0.6,
        checkpoint_every_s=checkpoint,
        restart_s=240.0,
    )
    rng = np.random.default_rng(0)
    elapsed, paid = [], []
    for _ in range(10_000):
        left, here, waits = 7200.0, 0.0, 0
        while left > 0:
            step = min(left, checkpoint or left)
            gap = rng.exponential(3600 / 0.6)
            here += min(gap, step)
            left -= step if gap >= step else 0.0
            waits += gap < step
        elapsed.append(here + 240.0 * waits)
        paid.append(here)
    played, on_device = spot.play(np.full(10_000, 7200.0), np.random.default_rng(1))
    for found, truth in ((played, elapsed), (on_device, paid)):
        for level in (0.5, 0.8, 0.95):
            assert np.quantile(found, level) == pytest.approx(np.quantile(truth, level), rel=0.05)
    assert float(spot.stretch(np.array(7200.0))) == pytest.approx(np.mean(elapsed), rel=0.02)
    assert float(spot.paid(np.array(7200.0))) == pytest.approx(np.mean(paid), rel=0.02)


def test_devices_with_terms_of_their_own_have_prices_of_their_own() -> None:
    book = read_book(
        'name = "m"\n'
        + FLAT
        + '[terms_of.spot]\nkind = "spot"\ndiscount = 0.75\ninterruptions_per_hour = 0.1\n'
    )
    assert float(book.under("spot").rate(1, 0)) == pytest.approx(0.25 * float(book.rate(1, 0)))
    assert book.under("on-demand") is book, "its own terms are those"
    assert book.under("of another world") is book
    assert book.knows("spot")
    assert not book.knows("")


def test_checkpoints_and_calm_markets_shorten_the_stretch() -> None:
    bare = Spot(kind="spot", discount=0.7, interruptions_per_hour=1)
    saved = Spot(kind="spot", discount=0.7, interruptions_per_hour=1, checkpoint_every_s=300)
    calm = Spot(kind="spot", discount=0.7, interruptions_per_hour=0)
    day = np.array([86_400.0])
    assert saved.stretch(day) < bare.stretch(day)
    np.testing.assert_allclose(calm.stretch(day), day)
    np.testing.assert_allclose(calm.play(day, np.random.default_rng(0)), [day, day])
    slow = Spot(kind="spot", discount=0.7, interruptions_per_hour=1, checkpoint_every_s=300, restart_s=600)
    assert slow.stretch(day) > saved.stretch(day)
    np.testing.assert_allclose(slow.paid(day), saved.paid(day), err_msg="a restart is not paid")
    assert np.isfinite(bare.stretch(np.array([0.0, 1e9]))).all()


def test_own_hardware_costs_its_hourly_share_when_used_whole() -> None:
    own = OwnHardware(
        name="box", purchase=8766, years=1, utilisation=0.5, watts=1000, kwh_price=0.3, vcpus=8, memory_gb=32
    )
    assert own.per_hour == pytest.approx(2.0 + 0.3)
    assert float(own.book().rate(8, 32 * 1024)) == pytest.approx(2.3)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("name = ", "not TOML"),
        ('name = "x"', "vcpu: Field required"),
        ('name = "x"\n' + FLAT.replace("0.04", "-1"), "vcpu.flat.per_hour"),
        ('name = "x"\n' + FLAT.replace("0.04", "nan"), "vcpu.flat.per_hour"),
        ('name = "x"\ncolour = 1\n' + FLAT, "colour"),
        ('name = "x"\n' + FLAT + '[terms]\nkind = "barter"', "terms"),
    ],
)
def test_a_wrong_book_is_explained(text: str, part: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read_book(text)
    assert part in caught.value.message


def test_an_installations_own_book_comes_before_a_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "n1.toml").write_text('name = "n1"\n' + FLAT)
    assert float(book_named("n1", tmp_path).rate(1, 0)) == pytest.approx(0.04)
    with pytest.raises(NotFound, match="no price book nowhere; there are acai"):
        book_named("nowhere", tmp_path)


def test_prices_of_zero_are_allowed_and_cost_nothing() -> None:
    book: PriceBook = book_named("free")
    assert float(book.charge(book.rate(8, 8192), 1e6)) == 0.0
