"""Money spent on exploring against what training as recommended costs: `python draw.py picture.png STUDY …`."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from easel import Client

figure, axes = plt.subplots(figsize=(6.5, 4))
with Client() as client:
    for name in sys.argv[2:]:
        points = sorted(
            (p for p in client.studies.points(name) if p.told is not None), key=lambda p: p.told or 0
        )
        spent, money, cost = 0.0, [], []
        for point in points:
            spent += point.values["cost"] or 0.0
            best = point.best
            if best is not None and best.observed is not None:
                money.append(spent)
                cost.append(best.observed["cost"])
        axes.step(money, cost, where="post", label=client.studies.get(name).strategy)
axes.set(yscale="log", xlabel="spent on exploring ($)", ylabel="cost of training as recommended ($)")
axes.legend()
figure.tight_layout()
figure.savefig(sys.argv[1], dpi=110)
