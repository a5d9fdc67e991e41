"""What an app, a study or a job is doing or waiting for: one sentence, since when, and what would change it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from easel.declare.counted import counted
from easel.flow.words.candidates import in_words
from easel.flow.words.numbers import clock, duration, money
from easel.records.standing import Obstacle, Standing


def running(
    candidates: Sequence[str], since: datetime, seconds: float, now: datetime, *, sliced: bool = False
) -> str:
    """`seconds` is what the trial that ends last was expected to take, or the slice of it where they are `sliced`."""
    what = " and ".join(in_words(one) for one in candidates[:3])
    more = f" and {counted(len(candidates) - 3, 'other')}" if len(candidates) > 3 else ""
    took = (now - since).total_seconds()
    of_what = " of this slice" if sliced else ""
    left = f"about {duration(seconds - took)} left{of_what}" if took < seconds else "longer than was expected"
    return f"is trying {what}{more} since {clock(since, now)}, {left}"


def waiting_for_turn(first: str | None, since: datetime | None, now: datetime) -> str:
    """`first` is who goes before it, None where nobody does or nobody may be named."""
    who = f": {first} goes first, for its next trial promises more" if first else ""
    when = f", since {clock(since, now)}" if since else ""
    return f"waits for a free device{who}{when}; a place becomes free when a trial ends or a device joins"


def sentence(
    kind: str,
    name: str,
    obstacle: Obstacle,
    since: datetime | None,
    now: datetime,
    currency: str = "USD",
) -> str:
    """Why nothing of `name`, an `app` or a `study`, starts; `since` stands in where the obstacle does not say."""
    facts = obstacle.facts
    moment = obstacle.since or since
    when = f" since {clock(moment, now)}" if moment is not None else ""
    by = f"by {obstacle.by}, " if obstacle.by else ""
    at = f" ({by}{clock(moment, now)})" if moment is not None else ""
    command = "apps" if kind == "app" else "studies"
    match obstacle.kind:
        case Standing.LACKS_EXAMPLES:
            return f"waits for examples: it needs {facts.get('lacks', 'more')}; feed it with: easel feed {name} DATA"
        case Standing.WAITS_FOR_FEED:
            return "waits for the rest of a feed that is on its way; it learns when that is there"
        case Standing.PAUSED:
            return f"paused{at}; go on with: easel {command} set {name} --resume"
        case Standing.TARGET_REACHED:
            until, best = float(facts["until"]), float(facts["best"])
            return (
                f"has what was asked for: {best:.4g} of {until:.4g}{when}; "
                f"ask for more with: easel {command} set {name} --until"
            )
        case Standing.DEADLINE_PASSED:
            return (
                f"its deadline has passed{at}; nothing new starts until there is another: "
                f"easel {command} set {name} --deadline"
            )
        case Standing.OWN_BUDGET_SPENT:
            spent, limit = (money(float(facts[each]), currency) for each in ("spent", "budget"))
            return (
                f"its budget is spent: {spent} of {limit}; raise it with: easel {command} set {name} --budget"
            )
        case Standing.NOTHING_IN_TIME:
            return (
                "nothing that it could try would end before its deadline; "
                f"move it with: easel {command} set {name} --deadline"
            )
        case Standing.NOTHING_AFFORDABLE:
            return (
                "nothing that it could try fits into what is left of its budget; "
                f"raise it with: easel {command} set {name} --budget"
            )
        case Standing.EXHAUSTED:
            tried = int(float(facts.get("tried", 0.0)))
            return f"nothing left to try: {counted(tried, 'candidate')} done{when}; it wakes when it is fed or refined"
        case Standing.LITTLE_TO_GAIN:
            expected = 100 * float(facts["expected"])
            return (
                f"nothing more to gain is expected: {expected:.2g} % for the next hour{when}; "
                f"it wakes when it is fed or refined, or with: easel {command} set {name} --resume"
            )
        case Standing.NO_RIGHTS:
            return (
                "waits: its owner may no longer run anything in this project; an admin may admit them again"
            )
        case Standing.QUEUE_PAUSED:
            return f"waits: its owner's queue is paused{at}; an admin resumes it with: easel queues resume"
        case Standing.QUEUE_FULL:
            most = int(float(facts["limit"]))
            return f"waits: its owner has {most} of {most} jobs running; it goes on when one of them ends"
        case Standing.PROJECT_BUDGET_SPENT:
            whole, used = float(facts.get("limit", 0.0)), float(facts.get("spent", 0.0))
            left, all_of_it = money(max(whole - used, 0.0), currency), money(whole, currency)
            return (
                f"waits: the budget of {facts.get('project', 'the project')} is spent: {left} of {all_of_it} left; "
                "an admin may raise it, or the next period begins"
            )
        case Standing.FITS_NOWHERE:
            return "waits: no device of the pool is large enough for it; a larger one must join"
        case Standing.NO_DEVICE:
            return "waits: no device is connected; start one with: easel worker"
        case Standing.REFUSED:
            return f"waits: {facts.get('why', 'it was refused')}; it is tried again shortly"
        case _:
            return f"waits{when}"


def of_study(state: str, name: str, reason: str | None, since: datetime, now: datetime) -> str:
    """A study that is not running."""
    if state == "created":
        return f"declared and not started; start it with: easel studies run {name}"
    why = f": {reason}" if reason else ""
    verb = "stopped" if state == "stopped" else "finished"
    return f"{verb} ({clock(since, now)}){why}; go on with: easel studies resume {name}"


_CLAIMS = {
    "priority": "has a higher priority",
    "project": "is of a project that has used less of the pool for its weight",
    "own": "has used less of the pool for their weight",
}


def of_queued_job(kind: Standing, ahead: int, needs: int, before: tuple[str, str] | None = None) -> str:
    """A job in its queue whose queue lets jobs through; `before` is who has a better claim, and by what."""
    if kind is Standing.WAITS_FOR_JOBS:
        return f"waits for {counted(needs, 'other job')} to finish"
    if before is not None:
        name, what = before
        return (
            f"waits in the queue: it is the first of its owner's, and {name} goes first, who {_CLAIMS[what]}; "
            "it starts when a device has room after that"
        )
    line = f"{ahead} of its owner's jobs are ahead of it" if ahead else "it is the first of its owner's queue"
    return f"waits in the queue: {line}; it starts when a device has room"


def of_active_job(state: str, device: str | None, since: datetime | None, now: datetime) -> str:
    if state == "launching":
        return f"waits for room on {device or 'a device'}; it starts when enough of what runs there has ended"
    where = f" on {device}" if device else ""
    when = f" since {clock(since, now)}" if since else ""
    return f"{state}{where}{when}"


def of_ended_job(state: str, reason: str | None, ended_at: datetime | None, now: datetime) -> str:
    when = f" ({clock(ended_at, now)})" if ended_at else ""
    return f"{state}{when}" + (f": {reason}" if reason else "")
