"""`easel simulate`: what larger pools would bring and cost, or a history replayed under other policies and sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table as Printed

from easel.cli.output import AsJson, console, say
from easel.declare.counted import counted
from easel.errors import InvalidInput

app = typer.Typer()

History = Annotated[
    Path | None,
    typer.Option(
        "--history",
        help="CSV with tenant, candidate, quality and cost, one line per finished trial; without it the server's own "
        "history answers",
    ),
]
Policies = Annotated[list[str] | None, typer.Option("--policy", help="Which policy; may be repeated")]
Devices = Annotated[
    list[int] | None, typer.Option("--devices", "-d", help="How many devices; may be repeated")
]
Serve = Annotated[int, typer.Option(help="Tenants served at once; the others are what was known before")]
Share = Annotated[float, typer.Option(help="Horizon: this share of everything on one device")]
Repetitions = Annotated[int, typer.Option(help="Draws of the tenants to serve")]
Target = Annotated[float, typer.Option(help="Report when the mean loss is this low")]
Failures = Annotated[float, typer.Option(help="Chance that a trial fails")]
Noise = Annotated[float, typer.Option(help="Spread of the real cost around the predicted (log scale)")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same answer")]
More = Annotated[
    list[int] | None, typer.Option(help="Without --history: a pool with so many units more; may be repeated")
]
Days = Annotated[float, typer.Option(help="Without --history: how much of the server's history counts")]
PerHour = Annotated[
    float | None,
    typer.Option(help="Without --history: what a unit more costs in an hour; else by the price book"),
]
Picture = Annotated[Path | None, typer.Option("--picture", help="Draw the curves to this file")]


@app.command()
def simulate(
    history: History = None,
    more: More = None,
    days: Days = 90.0,
    per_hour: PerHour = None,
    policy: Policies = None,
    devices: Devices = None,
    serve: Serve = 10,
    share: Share = 0.1,
    repetitions: Repetitions = 10,
    target: Target = 0.02,
    failures: Failures = 0.0,
    cost_noise: Noise = 0.0,
    seed: Seed = 0,
    picture: Picture = None,
    as_json: AsJson = False,
) -> None:
    """What larger pools would bring and cost, by the server's own history, with a recommendation (for platform admins).

    With --history: the mean accuracy loss over time for each policy and pool size.
    """
    if history is None:
        _advise(more or [1, 2, 4], days, per_hour, as_json)
        return
    # the mathematics is imported only when it is used
    from easel.schedule.replay import ReplaySettings, draw, replay
    from easel.schedule.table import read_table

    if not history.is_file():
        raise InvalidInput(f"no file {history}: export one with tenant, candidate, quality and cost")
    plan = ReplaySettings(
        tuple(policy or ["easel"]),
        tuple(devices or [1]),
        serve,
        share,
        repetitions,
        seed,
        failures,
        cost_noise,
    )
    found = replay(read_table(history), plan)
    rows = [
        {
            "policy": r.policy,
            "devices": r.devices,
            "mean_loss": round(r.area, 6),
            "final_loss": round(float(r.curve.loss[-1]), 6),
            "time_to_target": None if (t := r.curve.reaches(target)) == float("inf") else round(t, 6),
        }
        for r in found
    ]
    if picture is not None:
        draw(found, picture)
        say(f"Drew {picture}")
    if as_json:
        print(json.dumps({"horizon": found[0].horizon, "target": target, "runs": rows}, indent=2))
        return
    printed = Printed(box=None, header_style="bold", pad_edge=False)
    for title in ("policy", "devices", "mean loss", "loss at the end", f"time to {target:g}"):
        printed.add_column(title)
    for row in rows:
        time = row["time_to_target"]
        printed.add_row(
            str(row["policy"]),
            str(row["devices"]),
            f"{row['mean_loss']:.4f}",
            f"{row['final_loss']:.4f}",
            "not reached" if time is None else f"{time:.4g}",
        )
    console().print(printed)


def _advise(more: list[int], days: float, per_hour: float | None, as_json: bool) -> None:
    from easel.cli.connect import connect
    from easel.cli.plain import money

    with connect() as client:
        found = client.pool_sizes(more, days=days, per_hour=per_hour)
    if as_json:
        print(found.model_dump_json(indent=2))
        return
    printed = Printed(box=None, header_style="bold", pad_edge=False)
    for title in (
        f"{found.unit}s",
        "waiting (mean)",
        "nine of ten within",
        "fit nowhere",
        "best model",
        "a month",
    ):
        printed.add_column(title)
    for size in found.sizes:
        printed.add_row(
            str(found.units + size.more),
            _seconds(size.waiting.mean_s),
            _seconds(size.waiting.most_s),
            str(size.waiting.never),
            "–" if size.to_best_s is None else f"after {_seconds(size.to_best_s)}",
            "today's" if size.more == 0 else f"+ {money(size.per_month, found.currency)}",
        )
    console().print(printed)
    say(
        f"By {counted(found.jobs, 'job')} and {counted(found.trials, 'trial')} of apps "
        f"of the last {counted(found.days, 'day')}."
    )
    print(found.words)


def _seconds(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )
