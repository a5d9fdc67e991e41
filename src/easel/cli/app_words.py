"""What the commands about apps share: how an app is named, and how its score and its state are told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from easel.cli.complete import COMPLETERS
from easel.cli.plain import ago
from easel.cli.terms import in_words

if TYPE_CHECKING:
    from easel.wire import app as wire

AppName = Annotated[
    str, typer.Argument(metavar="APP", help="The app's name", autocompletion=COMPLETERS["app"])
]


def score_of(best: wire.BestModel) -> str:
    """`0.672 (0.631 to 0.713)`: the score without the luck of the choice, and where a test on new examples falls."""
    if best.low is None or best.high is None or best.low == best.high:
        return f"{best.score():.4f}"
    return f"{best.score():.3f} ({best.low:.3f} to {best.high:.3f})"


def against_baseline(best: wire.BestModel) -> str | None:
    """Whether the model is any better than always giving the same answer; nothing where that is not known."""
    if best.baseline is None:
        return None
    if best.score() - best.baseline > 1.645 * (best.error or 0.0):
        return f"always giving the same answer scores {best.baseline:.3f}"
    return f"no better than always giving the same answer, which scores {best.baseline:.3f}"


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
