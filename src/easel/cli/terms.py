"""`easel apps set`, `easel studies set`: what people say about their own; `easel why`; an admin's limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from easel.cli.connect import connect
from easel.cli.output import AsJson, InProject, say, show_one, show_text, time_of_day
from easel.errors import InvalidInput

if TYPE_CHECKING:
    from easel.sdk.client import Client
    from easel.wire.app import App
    from easel.wire.terms import Terms

why_app = typer.Typer()
NONE = "none"
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

Weight = Annotated[float | None, typer.Option(help="How much its gain counts against others'; 1 is usual")]
Deadline = Annotated[
    str | None,
    typer.Option(help='Nothing runs after it: "fri 18:00", "18:00", "2h", 2026-11-20T18:00, or none'),
]
BudgetAmount = Annotated[str | None, typer.Option(help="The most its trials may cost in all, or none")]
Until = Annotated[str | None, typer.Option(help="The score that is enough, or none")]
Pause = Annotated[bool | None, typer.Option("--pause/--resume", help="Start nothing more, or go on")]


def asked(
    weight: float | None, deadline: str | None, budget: str | None, until: str | None, pause: bool | None
) -> dict[str, Any]:
    """The options that were given, as the SDK takes them."""
    found: dict[str, Any] = {}
    if weight is not None:
        found["weight"] = weight
    if deadline is not None:
        now = datetime.now(UTC).astimezone()
        found["deadline"] = None if deadline.lower() == NONE else moment(deadline, now)
    for name, text in (("budget", budget), ("until", until)):
        if text is not None:
            found[name] = None if text.lower() == NONE else _number(name, text)
    if pause is not None:
        found["paused"] = pause
    if not found:
        raise InvalidInput("say what to change: --weight, --deadline, --budget, --until, --pause or --resume")
    return found


def _number(name: str, text: str) -> float:
    try:
        return float(text.lstrip("$"))
    except ValueError:
        raise InvalidInput(f"--{name} takes a number or none, not {text!r}") from None


def moment(text: str, now: datetime) -> datetime:
    """A time to come, in the zone of `now`: a day and a time, a time, a duration such as 90m, or an ISO date."""
    words = text.strip().lower().split()
    try:
        if len(words) == 1 and words[0][-1] in "mhd" and words[0][:-1].replace(".", "", 1).isdigit():
            unit = {"m": 60.0, "h": 3600.0, "d": 86400.0}[words[0][-1]]
            return now + timedelta(seconds=float(words[0][:-1]) * unit)
        if words[0][:3] in DAYS and len(words) <= 2 and not words[0][:1].isdigit():
            hour, minute = _time(words[1] if len(words) == 2 else "18:00")
            ahead = (DAYS.index(words[0][:3]) - now.weekday()) % 7
            found = now.replace(hour=hour, minute=minute, second=0, microsecond=0) + timedelta(days=ahead)
            return found if found > now else found + timedelta(days=7)
        if len(words) == 1 and ":" in words[0] and "-" not in words[0]:
            hour, minute = _time(words[0])
            found = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
            return found if found > now else found + timedelta(days=1)
        found = datetime.fromisoformat(text.strip())
        return found if found.tzinfo is not None else found.replace(tzinfo=now.tzinfo)
    except (ValueError, IndexError):
        raise InvalidInput(
            f'{text!r} is no time: write "fri 18:00", "18:00", "2h" or 2026-11-20T18:00'
        ) from None


def _time(text: str) -> tuple[int, int]:
    hour, _, minute = text.partition(":")
    return int(hour), int(minute or 0)


def tell(name: str, terms: Terms, client: Client) -> None:
    """What holds now, in one line."""
    say(f"{name}: {in_words(terms, client.currency())}")


def in_words(terms: Terms, currency: str = "") -> str:
    """Returns how much it matters, until when, for how much money and what is enough, in one line."""
    parts = [f"weight {terms.weight:g}"]
    if terms.deadline is not None:
        parts.append(f"until {terms.deadline.astimezone():%a %d %b %H:%M}")
    if terms.budget is not None:
        parts.append(f"budget {terms.budget:g} {currency}".rstrip())
    if terms.until is not None:
        parts.append(f"enough at {terms.until:g}")
    if terms.paused:
        parts.append("paused")
    return ", ".join(parts)


def at(moment: datetime) -> str:
    """A moment on the clock of whoever reads it."""
    return time_of_day((moment - datetime.now(UTC)).total_seconds())


def answering(app: App) -> str:
    """A line about an app whose model somebody chose, by pinning or rolling back; nothing where the best answers."""
    if not app.pinned or app.best is None or app.best.model == app.pinned:
        return ""
    return (
        f"{app.pinned} answers because it was pinned or rolled back to; the best so far is {app.best.model} "
        f"({app.best.candidate}): easel apps rollback {app.name} --forward\n"
    )


@why_app.command()
def why(
    what: Annotated[str, typer.Argument(help="The name of an app or a study, or the id of a job")],
    details: Annotated[bool, typer.Option("--details", help="The numbers behind it, too")] = False,
    project: InProject = None,
    as_json: AsJson = False,
) -> None:
    """What an app, a study or a job does or waits for, since when, and what would change it."""
    with connect(project) as client:
        found = client.why(what)
        if as_json:
            show_one(found, as_json)
            return
        show_text(f"{found.name} {found.sentence}." if found.kind != "job" else f"{found.sentence}.")
        if found.starts_at is not None:
            by = "" if found.starts_by is None else f", by {at(found.starts_by)} with 90 % probability"
            show_text(f"It starts about {at(found.starts_at)}{by}.")
            if found.ends_by is not None:
                show_text(f"It ends by {at(found.ends_by)} with 90 % probability.")
        if found.next:
            show_text(f"Next: {found.next}")
        if found.kind == "app":
            print(answering(client.apps.get(what)), end="")
        if details and found.details:
            show_text(found.details)
