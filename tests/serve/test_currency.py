"""Amounts say in which currency they are."""

from __future__ import annotations

from tests.serve.conftest import World


def test_budgets_and_bills_name_the_currency_of_the_price_book(world: World) -> None:
    book = world.call("root", "GET", "/api/v1/prices").json()["items"][-1]["book"]
    budget = world.call("astro-member", "GET", "/api/v1/projects/astro/budget").json()
    job = {"name": "x", "run": {"kind": "entry", "target": "m:f"}}
    made = world.call("astro-member", "POST", "/api/v1/projects/astro/jobs", json=job).json()["id"]
    bill = world.call("astro-member", "GET", f"/api/v1/projects/astro/jobs/{made}/bill").json()
    assert budget["currency"] == bill["currency"] == book["currency"]
