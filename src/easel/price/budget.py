"""Budgets: when to warn, when to refuse, when to stop. Deciding only; the caller reads the facts and acts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from easel.errors import InvalidInput


class Period(StrEnum):
    MONTH = "month"
    TOTAL = "total"

    def start(self, now: datetime) -> datetime | None:
        """When the current period began; nothing for a budget that never starts again."""
        now = now.astimezone(UTC)
        return datetime(now.year, now.month, 1, tzinfo=UTC) if self is Period.MONTH else None


@dataclass(frozen=True)
class Budget:
    """A limit in millionths of the currency. `warn_at` are shares of it; with `hard_stop` reaching it stops
    jobs.
    """

    limit_micros: int
    period: Period = Period.MONTH
    warn_at: tuple[float, ...] = (0.5, 0.8, 1.0)
    hard_stop: bool = True

    def __post_init__(self) -> None:
        if self.limit_micros < 0:
            raise InvalidInput("a budget cannot be negative; remove it instead")
        if any(not 0 < share <= 10 for share in self.warn_at):
            raise InvalidInput("warn at shares of the budget, such as 0.5 and 0.8")


@dataclass(frozen=True)
class RunningSpend:
    """A running job: what it has run up so far in this period, and what it was expected to cost in all.

    `soon_micros` is what it runs up until a stop that is asked for now takes effect.
    """

    job: str
    accrued_micros: int
    expected_micros: int = 0
    soon_micros: int = 0

    @property
    def outstanding_micros(self) -> int:
        """Still to come; a job that outlived its estimate is expected to end any moment."""
        return max(self.expected_micros - self.accrued_micros, 0)


@dataclass(frozen=True)
class Spending:
    """`billed_micros` of ended jobs in the period, the jobs that run, and what was promised to those that wait."""

    billed_micros: int
    running: tuple[RunningSpend, ...] = ()
    waiting_micros: int = 0
    launching: tuple[RunningSpend, ...] = ()
    """What a device was given and has not begun: it may any moment, and then it must still be possible to stop it."""

    @property
    def so_far(self) -> int:
        return self.billed_micros + sum(job.accrued_micros for job in self.running)

    @property
    def committed(self) -> int:
        return self.so_far + self.waiting_micros + sum(job.outstanding_micros for job in self.running)

    @property
    def soon(self) -> int:
        """What will have been spent when jobs that are told now to stop have stopped."""
        return self.so_far + sum(job.soon_micros for job in self.running)

    @property
    def reserved(self) -> int:
        """What jobs that are about to begin use at least, until they are stopped."""
        return sum(job.soon_micros for job in self.launching)


@dataclass(frozen=True)
class Admit:
    pass


@dataclass(frozen=True)
class Refuse:
    why: str


@dataclass(frozen=True)
class Warn:
    """Spending passed this share of the budget for the first time."""

    share: float
    spent_micros: int


@dataclass(frozen=True)
class Stop:
    """The budget is spent: these running jobs are to be killed, the dearest first."""

    jobs: tuple[str, ...]
    why: str


def admit(
    budget: Budget | None,
    spending: Spending,
    estimate_micros: int = 0,
    reserve_micros: int = 0,
    currency: str = "",
) -> Admit | Refuse:
    """May a job that is expected to cost `estimate_micros` start? What runs already counts with its full
    estimate.

    A soft budget only warns. A job without an estimate is let in while more is left than `reserve_micros`, which a job
    uses in the time that stopping it takes.
    """
    if budget is None or not budget.hard_stop:
        return Admit()
    left = budget.limit_micros - spending.committed
    if estimate_micros > left or (left <= reserve_micros and not estimate_micros):
        return Refuse(
            f"the {budget.period} budget of {money(budget.limit_micros, currency)} has"
            f" {money(max(left, 0), currency)} left after running jobs;"
            f" {_expected(estimate_micros, currency)}."
            " Wait for jobs to end, choose a cheaper size, or ask a project admin to raise the budget"
        )
    return Admit()


def _expected(estimate_micros: int, currency: str) -> str:
    if not estimate_micros:
        return "what this job will cost is not known"
    return f"this job is expected to cost {money(estimate_micros, currency)}"


def headroom(budget: Budget, spending: Spending) -> int:
    """What jobs that begin now may use until they are stopped, all of them together; a hard budget is not passed then.

    Jobs take a moment to stop, and what those use in it that run or are about to begin must still fit.
    """
    return max(budget.limit_micros - spending.soon - spending.reserved - 1, 0)


def watch(
    budget: Budget | None, spending: Spending, warned: Sequence[float] = (), currency: str = ""
) -> list[Warn | Stop]:
    """What to do about running jobs now. `warned` are the shares that were announced already in this
    period.
    """
    if budget is None:
        return []
    acts: list[Warn | Stop] = [
        Warn(share, spending.so_far)
        for share in sorted(budget.warn_at)
        if share not in warned and spending.so_far >= share * budget.limit_micros
    ]
    if budget.hard_stop and spending.running and spending.soon >= budget.limit_micros:
        stopped = sorted(spending.running, key=lambda job: (-job.accrued_micros, job.job))
        why = f"the {budget.period} budget of {money(budget.limit_micros, currency)} is spent"
        acts.append(Stop(tuple(job.job for job in stopped), why))
    return acts


def put_back(budget: Budget, spending: Spending) -> list[str]:
    """Returns the jobs that a device was given, has not begun and may not begin now: a hard budget would be passed
    before they could be stopped. The last go first, and only as many as must; they wait in their queues again.
    """
    found: list[str] = []
    reserved = spending.reserved
    for job in reversed(spending.launching if budget.hard_stop else ()):
        if spending.soon + reserved < budget.limit_micros:
            break
        found.append(job.job)
        reserved -= job.soon_micros
    return found


def money(micros: int, currency: str = "") -> str:
    """`1.25 EUR`, with as many digits as small amounts need."""
    amount = micros / 1_000_000
    digits = f"{amount:.2f}" if amount == 0 or amount >= 1 else f"{amount:.6f}".rstrip("0")
    return f"{digits} {currency}".strip()
