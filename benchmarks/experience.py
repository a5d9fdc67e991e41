"""What built-in experience is worth for a set that it does not hold.

    python -m benchmarks.experience [--minutes 2] [--write]

Every public set in turn is an app on an idle core, and all sets of its group (cuts of the same data) are left out of
the experience. The policy is the default; scores and seconds are those on record. `experience`: prior and costs from
the other sets. `live`: the hand-set promises and estimates that a pool without experience has. Told are the score of
the first model that serves as a share of the best of all candidates, and the mean loss over the first minutes.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.papers.compare import write
from easel.declare.parse import parse_program
from easel.flow.apps.beliefs import START_S, PromiseBook
from easel.flow.apps.learned_book import LearnedBook
from easel.flow.experience.file import packaged_experience
from easel.flow.experience.laws import laws_of, with_experienced_costs
from easel.flow.experience.measure import prepare
from easel.flow.experience.sources import Source, sources
from easel.match.candidate import Candidate
from easel.match.propose import propose_candidates
from easel.match.summary import DataSummary, summarise
from easel.records.decision import StartTrial
from easel.schedule.experience import Experience, KnownSet
from easel.schedule.policies import named
from easel.schedule.prior import Prior
from easel.schedule.state import PoolDevice, PoolState, Tenant

TABLES = {
    "table classification": "{input: {[Tensor[4]], []}, output: {[Category], []}}",
    "table regression": "{input: {[Tensor[4]], []}, output: {[Number], []}}",
}
MOSTLY = 0.8
"""Sets on which fewer of the offered candidates are on record are not served."""


@dataclass(frozen=True)
class Served:
    """`first`: score of the first model over the best of all; `area`: mean loss; `soon`: when the first was there.

    `least` is the area if the best model had come with the first start: nobody can have less.
    """

    first: float
    area: float
    soon: float
    least: float


def serve(one: KnownSet, candidates: Sequence[Candidate], prior: Prior, horizon: float) -> Served:
    """The app alone on a core: decided on beliefs, played out with what is on record."""
    tenant = Tenant(
        "app",
        tuple(c.name for c in candidates),
        prior.belief(),
        np.array([max(c.cost_s, START_S) for c in candidates]),
        ceiling=1.0,
    )
    state, policy = PoolState({"app": tenant}, PoolDevice("core")), named("easel")
    top = max(o.score for o in one.outcomes.values() if np.isfinite(o.score))
    now, best, area, first, soon = 0.0, 0.0, 0.0, np.nan, np.inf
    while now < horizon:
        decision = policy.decide(state.on(PoolDevice("core"), now))
        if not isinstance(decision, StartTrial):
            break
        outcome = one.outcomes[decision.candidate]
        took = max(outcome.seconds, START_S)
        area += (top - best) * min(took, horizon - now)
        now += took
        state = state.started(decision).finished(decision, outcome.score, took)
        if np.isfinite(outcome.score):
            if np.isnan(first):
                first, soon = outcome.score / top, now
            best = max(best, outcome.score)
    area += (top - best) * max(horizon - now, 0.0)
    return Served(first, area / horizon, soon, top * START_S / horizon)


def proposed(one: KnownSet, here: Mapping[str, Source]) -> tuple[DataSummary, tuple[Candidate, ...]] | None:
    """What an app with such data would be offered; a table's properties say it, other data must be `here`."""
    if one.template in TABLES:
        p = one.properties
        summary = DataSummary(int(p.rows), int(p.columns), classes=int(p.classes))
        return summary, propose_candidates(parse_program(TABLES[one.template]), summary)
    prepared = prepare(here[one.name]) if one.name in here else None
    if prepared is None:
        return None
    return summarise(prepared.program, prepared.examples), prepared.candidates


def compare(
    one: KnownSet, known: Experience, here: Mapping[str, Source], horizon: float
) -> tuple[Served, Served] | None:
    """With experience and with hand-set beliefs; nothing where too few candidates are on record."""
    found = proposed(one, here)
    if found is None:
        return None
    summary, offered = found
    candidates = tuple(c for c in offered if c.name in one.outcomes)
    if len(candidates) < MOSTLY * len(offered):
        return None
    others = known.without([one.group])
    laws = laws_of(others, classes=summary.classes > 0)
    learned = LearnedBook((), others).prior("app", candidates, summary)
    experienced = serve(one, with_experienced_costs(candidates, summary, laws), learned, horizon)
    live = serve(one, candidates, PromiseBook(()).prior("app", candidates, summary), horizon)
    return experienced, live


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--write", action="store_true", help="write docs/results/experience.md")
    chosen = parser.parse_args()
    known = packaged_experience()
    here = {source.name: source for source in sources()}
    found: dict[str, list[tuple[Served, Served]]] = {}
    for one in known.sets:
        pair = compare(one, known, here, 60.0 * chosen.minutes)
        if pair is not None:
            found.setdefault(one.template, []).append(pair)
    lines = [
        "| template | sets | first model, of the best score | hand-set | first model after (s) | hand-set | mean loss "
        f"over {chosen.minutes:g} min | hand-set | ratio | least possible |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    everything = [pair for pairs in found.values() for pair in pairs]
    for template, pairs in [*found.items(), ("**all**", everything)]:
        ours, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        first, live_first = (float(np.mean([s.first for s in some])) for some in (ours, theirs))
        soon, live_soon = (float(np.mean([s.soon for s in some])) for some in (ours, theirs))
        area, live_area = (float(np.mean([s.area for s in some])) for some in (ours, theirs))
        lines.append(
            f"| {template} | {len(pairs)} | {first:.1%} | {live_first:.1%} | {soon:.2f} | {live_soon:.2f} "
            f"| {area:.5f} | {live_area:.5f} | {area / live_area:.2f} "
            f"| {float(np.mean([s.least for s in ours])):.5f} |"
        )
    print("\n".join(lines))
    if chosen.write:
        write(
            "../experience",
            "What built-in experience is worth",
            "python -m benchmarks.experience --write",
            "Leave-one-set-out: every set is an app on an idle core, and all sets cut from the same data are left out of the "
            "experience. Asked: first model at least 98 % of the best score of any candidate, mean loss over two minutes at "
            "most 0.5 × that of the hand-set prior.\n\n" + "\n".join(lines),
        )


if __name__ == "__main__":
    main()
