"""Pictures of a quote: the predicted runtime over the grid with the excluded cells (ACAI figure 16)."""

from __future__ import annotations

import io
from typing import Literal

import numpy as np

from easel.price.provision import ChosenOffer, Infeasible, Quote, Wish

OUT = "#c8402f"


def draw(
    priced: Quote, wish: Wish, answer: ChosenOffer | Infeasible, form: Literal["png", "svg"] = "png"
) -> bytes:
    """Left: every cell as a point, price over runtime, red where a limit is broken. Right: the same cells
    as a map of vCPU × memory, coloured by runtime, the excluded ones red.
    """
    # Half a second and 40 MB that only a picture needs.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    ok = priced.allowed(wish)
    figure = Figure(figsize=(10.5, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    minutes, cpus, memory = priced.seconds / 60.0, priced.grid.cpus, priced.grid.memory_mb
    left.scatter(minutes[~ok], priced.cost[~ok], s=9, c=OUT, label="excluded")
    left.scatter(minutes[ok], priced.cost[ok], s=9, c="#2f6fa8", label="within the limits")
    left.set(xlabel="predicted runtime, minutes", ylabel="predicted cost", xscale="log")
    if wish.max_seconds is not None:
        left.axvline(wish.max_seconds / 60.0, linestyle="--", color="grey")
    if wish.max_cost is not None:
        left.axhline(wish.max_cost, linestyle="--", color="grey")
    points = right.scatter(cpus[ok], memory[ok], s=26, c=minutes[ok], cmap="viridis_r", marker="s")
    right.scatter(cpus[~ok], memory[~ok], s=26, c=OUT, marker="s", alpha=0.55)
    right.set(xlabel="vCPU", ylabel="memory, MB")
    if ok.any():
        figure.colorbar(points, ax=right, label="minutes")
    if isinstance(answer, ChosenOffer):
        shape = answer.offer.shape
        mark = {"s": 130, "facecolors": "none", "edgecolors": "black", "linewidths": 1.6, "zorder": 3}
        left.scatter([answer.offer.seconds / 60.0], [answer.offer.cost], label="chosen", **mark)
        right.scatter([shape.cpus], [shape.memory_mb], **mark)
    left.legend()
    left.set_title(_title(wish), fontsize=9)
    right.set_title(f"{int(np.sum(~ok))} of {len(ok)} sizes excluded", fontsize=9)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, dpi=120)
    return buffer.getvalue()


def _title(wish: Wish) -> str:
    limits = []
    if wish.max_seconds is not None:
        limits.append(f"at most {wish.max_seconds / 60:.1f} min")
    if wish.max_cost is not None:
        limits.append(f"at most {wish.max_cost:.4f}")
    sure = f" with {wish.confidence:.0%} confidence" if wish.confidence else ""
    return f"{wish.aim} {' and '.join(limits)}{sure}".strip()
