"""Price books: what one hour of vCPU, memory and GPU costs, under which terms, billed how. Books are data.

A rate is money per hour for given resources; a charge is a rate over billed seconds. Both work on arrays, so
that a whole grid is priced at once. Memory is counted in GB of 1024 MB.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from easel.errors import InvalidInput, NotFound
from easel.price.grid import ANY_GPU, ON_CPU

Array = npt.NDArray[np.float64]
TERMS, ON_DEMAND = "terms", "on-demand"
"""The label by which a device says under which terms it is to be had, and what one says that is always there."""
Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FlatPrice(_Value):
    """The same price for every unit."""

    kind: Literal["flat"] = "flat"
    per_hour: Price

    def unit(self, amount: Array) -> Array:
        return np.full(np.shape(amount), self.per_hour)


class RisingPrice(_Value):
    """A unit price that rises linearly with the amount, so that large jobs pay for the scarcity they cause.

    `unit(a) = reference · (low + (high − low)·(a − smallest)/(largest − smallest))`, constant outside the
    range.
    """

    kind: Literal["rising"]
    reference: Price
    smallest: Price
    largest: Price
    low: Price
    high: Price

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.smallest < self.largest:
            raise ValueError("smallest must be below largest")
        return self

    def unit(self, amount: Array) -> Array:
        share = np.clip((np.asarray(amount) - self.smallest) / (self.largest - self.smallest), 0.0, 1.0)
        return np.asarray(self.reference * (self.low + (self.high - self.low) * share))


UnitPrice = Annotated[FlatPrice | RisingPrice, Field(discriminator="kind")]


class OnDemand(_Value):
    """Full price, never interrupted."""

    kind: Literal["on-demand"] = "on-demand"

    @property
    def factor(self) -> float:
        return 1.0


class Reserved(_Value):
    """Capacity paid for a long term: a discount per hour, which idle hours eat up.

    The effective factor is `(1 − discount)/utilisation`: capacity used half of the time costs twice as much
    an hour.
    """

    kind: Literal["reserved"]
    discount: Annotated[float, Field(ge=0, lt=1)]
    utilisation: Annotated[float, Field(gt=0, le=1)] = 1.0

    @property
    def factor(self) -> float:
        return (1.0 - self.discount) / self.utilisation


class Spot(_Value):
    """Spare capacity at a discount, taken away at random: `interruptions_per_hour` is a Poisson rate λ.

    A run loses what it did since its last checkpoint, so `t` hours of work take `(e^{λτ} − 1)/(λτ) · t` hours
    on average, with `τ` the hours between checkpoints (`τ = t` without any), and all of them are paid. Each time it
    waits for `restart_s` until it runs again, which is not paid.
    """

    kind: Literal["spot"]
    discount: Annotated[float, Field(ge=0, lt=1)]
    interruptions_per_hour: Price
    checkpoint_every_s: Positive | None = None
    restart_s: Price = 0.0

    @property
    def factor(self) -> float:
        return 1.0 - self.discount

    def paid(self, seconds: Array) -> Array:
        """Expected seconds on a device of work that takes `seconds` when left alone."""
        work = np.asarray(seconds, dtype=float)
        safe = self._risk(work)
        return np.asarray(work * np.expm1(safe) / safe)

    def stretch(self, seconds: Array) -> Array:
        """Expected elapsed seconds of such work, with the waits for another device: `(1/λ + R)(e^{λτ} − 1)/τ · t`."""
        work = np.asarray(seconds, dtype=float)
        rate = self.interruptions_per_hour / 3600.0
        return np.asarray(self.paid(work) * (1.0 + rate * self.restart_s))

    def _risk(self, work: Array) -> Array:
        """`λτ`. expm1(x)/x → 1 as x → 0; the guard keeps 0/0 out. Hopeless runs saturate instead of overflowing."""
        segment = np.minimum(work, self.checkpoint_every_s or np.inf) * self.interruptions_per_hour / 3600.0
        return np.asarray(np.clip(segment, 1e-12, 500.0))

    def play(self, seconds: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Elapsed and paid seconds of runs that take `seconds` when left alone, each with interruptions of its own.

        Each of the `m` segments of length `τ` succeeds with `p = e^{−λτ}`, so that there are negative binomially many
        failures; each loses a time of the exponential distribution cut off at `τ` and waits for a restart. The sum of
        those times is drawn as a normal one of the same mean and variance.
        """
        work = np.asarray(seconds, dtype=float)
        rate = self.interruptions_per_hour / 3600.0
        risk = self._risk(work)
        if rate <= 0.0:
            return work, work
        step = risk / rate
        segments = np.maximum(np.round(work / np.maximum(step, 1e-9)), 1.0)
        # of hopeless runs (λτ > 30: one try in 10¹³) more failures would change nothing
        failures = np.asarray(rng.negative_binomial(segments, np.exp(-np.minimum(risk, 30.0))), dtype=float)
        # mean and variance of an exponential of rate λ that is known to lie below τ
        left = risk / np.expm1(risk)
        mean = (1.0 - left) / rate
        variance = np.maximum((1.0 - left * (left + risk)) / rate**2, 0.0)
        drawn = failures * mean + np.sqrt(failures * variance) * rng.standard_normal(work.shape)
        lost = np.clip(drawn, 0.0, failures * step)
        return work + lost + failures * self.restart_s, work + lost


Terms = Annotated[OnDemand | Reserved | Spot, Field(discriminator="kind")]


class Billing(_Value):
    """Seconds are rounded up to whole `granularity_s` (0: exactly as measured), and at least `minimum_s` are
    paid.
    """

    granularity_s: Price = 1.0
    minimum_s: Price = 0.0

    def seconds(self, elapsed: Array) -> Array:
        billed = np.maximum(np.asarray(elapsed, dtype=float), self.minimum_s)
        if self.granularity_s == 0:
            return np.asarray(billed)
        # A run of exactly 60 s must not pay for 61 because of the last bit of a float.
        return np.asarray(np.ceil(np.round(billed / self.granularity_s, 9)) * self.granularity_s)


class PriceBook(_Value):
    """One list of prices. `gpus` are per GPU-hour by the GPU's name; `note` says where the figures come
    from.
    """

    name: str
    note: str = ""
    currency: str = "USD"
    vcpu: UnitPrice
    memory_gb: UnitPrice
    gpus: Mapping[str, UnitPrice] = Field(default_factory=dict)
    terms: Terms = OnDemand()
    terms_of: Mapping[str, Terms] = Field(default_factory=dict)
    """Of devices whose label `terms` has such a name, beside those under the book's own terms."""
    billing: Billing = Billing()

    def under(self, label: str) -> PriceBook:
        """Returns the prices on devices with this label; the book's own where it says nothing of it."""
        terms = self.terms_of.get(label)
        if terms is None and label == ON_DEMAND:
            terms = OnDemand()
        return self if terms is None or terms == self.terms else self.model_copy(update={"terms": terms})

    def knows(self, label: str) -> bool:
        """Whether devices with this label have terms of their own."""
        return label in self.terms_of or label == ON_DEMAND

    def rate(self, cpus: Any, memory_mb: Any, gpu: str | None = None, gpus: Any = 0) -> Array:
        """Money per hour: `(μ_c·cpus + μ_m·GB + μ_g·gpus) · terms`; arguments broadcast."""
        c, gb, g = np.asarray(cpus, float), np.asarray(memory_mb, float) / 1024.0, np.asarray(gpus, float)
        if np.any(c < 0) or np.any(gb < 0) or np.any(g < 0):
            raise InvalidInput("resources cannot be negative")
        total = self.vcpu.unit(c) * c + self.memory_gb.unit(gb) * gb
        if gpu is not None:
            if gpu not in self.gpus:
                listed = ", ".join(sorted(self.gpus)) or "none"
                raise InvalidInput(f"price book {self.name} has no price for GPU {gpu}; it lists {listed}")
            total = total + self.gpus[gpu].unit(g) * g
        return np.asarray(total * self.terms.factor)

    def gpu_kind(self, device: str) -> str | None:
        """Which entry a device pays: none for processors, its own, and for `gpu` the first listed if there is any."""
        if device == ON_CPU:
            return None
        if device != ANY_GPU or ANY_GPU in self.gpus:
            return device
        return min(self.gpus, default=None)

    def charge(self, rate: Any, elapsed: Any) -> Array:
        """Money for `elapsed` seconds at `rate`, with this book's rounding and minimum."""
        return np.asarray(rate, float) * self.billing.seconds(np.asarray(elapsed, float)) / 3600.0


class OwnHardware(_Value):
    """A machine that was bought: its price over its working life, plus power, shared among its parts.

    Hourly cost `h = purchase/(years·8766·utilisation) + watts/1000·kwh_price·overhead`; vCPUs, memory and
    GPUs carry the given `shares` of it, so a job on the whole machine pays exactly `h`.
    """

    name: str
    note: str = ""
    currency: str = "USD"
    purchase: Price
    years: Positive
    utilisation: Annotated[float, Field(gt=0, le=1)]
    watts: Price
    kwh_price: Price
    overhead: Positive = 1.0
    vcpus: Positive
    memory_gb: Positive
    gpu: str | None = None
    gpus: Price = 0.0
    shares: tuple[Price, Price, Price] = (0.7, 0.3, 0.0)
    billing: Billing = Billing()

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if abs(sum(self.shares) - 1.0) > 1e-9:
            raise ValueError("shares of vCPU, memory and GPU must add up to 1")
        if (self.shares[2] > 0) != (self.gpu is not None and self.gpus > 0):
            raise ValueError("a GPU share needs gpu and gpus, and the other way round")
        return self

    @property
    def per_hour(self) -> float:
        bought = self.purchase / (self.years * 8766.0 * self.utilisation)
        return bought + self.watts / 1000.0 * self.kwh_price * self.overhead

    def book(self) -> PriceBook:
        cpu, memory, gpu = (share * self.per_hour for share in self.shares)
        gpus = {self.gpu: FlatPrice(per_hour=gpu / self.gpus)} if self.gpu else {}
        return PriceBook(
            name=self.name,
            note=self.note,
            currency=self.currency,
            vcpu=FlatPrice(per_hour=cpu / self.vcpus),
            memory_gb=FlatPrice(per_hour=memory / self.memory_gb),
            gpus=gpus,
            billing=self.billing,
        )


def read_book(text: str) -> PriceBook:
    """A book from TOML; `[own]` describes bought hardware, everything else is a price list."""
    try:
        data = tomllib.loads(text)
        if "own" in data:
            return OwnHardware.model_validate(data["own"]).book()
        return PriceBook.model_validate(data)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"the price book is not TOML: {error}") from error
    except ValidationError as error:
        wrong = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise InvalidInput(f"the price book is wrong: {wrong}") from error


@cache
def shipped_books() -> Mapping[str, PriceBook]:
    """Returns the books that come with Easel, by name, read from their files once: every bill asks for one."""
    folder = files("easel.price") / "books"
    read = (read_book(file.read_text("utf-8")) for file in folder.iterdir() if file.name.endswith(".toml"))
    return MappingProxyType({book.name: book for book in read})


def book_named(name: str, folder: Path | None = None) -> PriceBook:
    """A shipped book, or one of the installation's own (`folder`/name.toml), which comes first."""
    if folder is not None and (folder / f"{name}.toml").is_file():
        return read_book((folder / f"{name}.toml").read_text("utf-8"))
    shipped = shipped_books()
    if name not in shipped:
        raise NotFound(f"no price book {name}; there are {', '.join(sorted(shipped))}")
    return shipped[name]
