"""What the commands about apps share: how an app is named, and how its score and its state are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from easel.cli.complete import COMPLETERS
from easel.cli.plain import ago
from easel.cli.terms import in_words

if TYPE_CHECKING:
    from easel.wire import app as wire

MOST_LEFT_OUT = 10
BITS = "Programs that do better: one kind of answer (classes, or numbers) from a table, pictures, a text or a series."
AppName = Annotated[
    str, typer.Argument(metavar="APP", help="The app's name", autocompletion=COMPLETERS["app"])
]


def score_of(best: wire.BestModel) -> str:
    """`0.672 (0.631 to 0.713)`: the score without the luck of the choice, and where a test on new examples falls."""
    if best.low is None or best.high is None or best.low == best.high:
        return f"{best.score():.4f}"
    return f"{best.score():.3f} ({best.low:.3f} to {best.high:.3f})"


def is_no_better(best: wire.BestModel) -> bool:
    """Whether always giving the same answer is known to score as well, as far as the score can tell."""
    return best.baseline is not None and best.score() - best.baseline <= 1.645 * (best.error or 0.0)


def against_baseline(best: wire.BestModel) -> str | None:
    """Whether the model is any better than always giving the same answer; nothing where that is not known."""
    if best.baseline is None:
        return None
    if is_no_better(best):
        return f"no better than always giving the same answer, which scores {best.baseline:.3f}"
    return f"always giving the same answer scores {best.baseline:.3f}"


def who_answered(found: wire.Answers, serving: wire.BestModel | None) -> str:
    """Returns which model answered, with the score that every page shows of it, and a warning where it is no good."""
    if serving is None:  # a token that may ask and not look
        return f"{found.candidate} ({found.model}), validation score {found.quality:.4f}"
    if serving.model != found.model:  # two scores of one model would only puzzle
        now = f"by now {serving.model} answers, validation score {score_of(serving)}"
        return f"{found.candidate} ({found.model}); {now}"
    known = f": {against_baseline(serving)}" if is_no_better(serving) else ""
    return f"{found.candidate} ({found.model}), validation score {score_of(serving)}{known}"


def about_template(template: str) -> str | None:
    """Returns the warning that a program fits no template of its own; nothing where it does."""
    if not template.startswith("general"):
        return None
    return f"No template fits this program, so it is learned bit by bit, which seldom becomes good. {BITS}"


def notes_of(fed: wire.Fed) -> list[str]:
    """Returns what was remarked on at a feed, one line each: what was left out, then what is odd."""
    left_out = [f"left out: {'' if one.file else f'pair {one.pair}: '}{one.why}" for one in fed.refused]
    return [*first_of(left_out, MOST_LEFT_OUT), *(f"note: {note}" for note in fed.notes)]


def first_of(lines: list[str], most: int) -> list[str]:
    """Returns the first of many lines, and how many more there are."""
    return lines if len(lines) <= most else [*lines[:most], f"and {len(lines) - most} more like these"]


def facts_of(app: wire.App) -> list[tuple[str, Any]]:
    """Returns what is known of the app, without what is not there; `--json` has everything."""
    off = f" ({app.switched_off} switched off)" if app.switched_off else ""
    improved = f" ({ago(app.last_improvement_at)})" if app.last_improvement_at else ""
    facts: list[tuple[str, Any]] = [
        ("app", app.name),
        ("learns", f"{app.template}, measured by {app.metric}"),
        ("program", app.program),
        ("examples", f"{app.examples}{off}"),
        ("lacks", app.lacks),
        ("best", app.best and f"{score_of(app.best)} by {app.best.candidate}{improved}"),
        ("beside", app.best and against_baseline(app.best)),
        ("answers", app.serving and app.serving.model + (" (pinned)" if app.pinned else "")),
        ("trials", app.trials),
        ("status", app.waiting),
        ("next", app.next and app.next.why),
        ("terms", in_words(app.terms)),
        ("examples in", app.folder),
    ]
    return [(name, value) for name, value in facts if value not in (None, "")]


def sentence_of(app: wire.App) -> str:
    """Returns what the app does and what comes next, for windows without room for columns."""
    known = None if app.best is None else against_baseline(app.best)
    beside = f"; {known}" if known else ""
    following = f" Next: {app.next.why}" if app.next else ""
    return f"{app.name} ({app.template}{beside}) {app.waiting}.{following}"
