"""What the commands about apps share: how an app is named, and how its score is told."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from easel.cli.complete import COMPLETERS

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
