"""`python -m benchmarks.kills --minutes 20 --form sqlite`: what is left of what was acknowledged after many kills.

A run is a series of rounds of two and a half minutes, each with its own seed, installation and accounts. `--resume FILE`
keeps finished rounds in a file: a run that was cut short goes on with the next.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.kills.account import Tally
from benchmarks.kills.forms import FORMS
from benchmarks.kills.rounds import run_round

ROUND_S = 150.0
PAGE = Path(__file__).parents[2] / "docs" / "results" / "kills.md"
HEAD = """# Kills

`kill -9` of servers, controllers, relays, workers, fork servers, agents and sandboxes under load, each started again as a
service manager would; then everything that was acknowledged is looked for, and what is billed is compared with the
attempts' own journals. `python -m benchmarks.kills --minutes N --form FORM --seed S`.
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--form", choices=FORMS, default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resume", type=Path, help="a file in which finished rounds are kept")
    parser.add_argument("--no-trials", action="store_true", help="without the fork server, which needs torch")
    asked = parser.parse_args()
    rounds = _known(asked.resume)
    left = asked.minutes * 60.0 - ROUND_S * len(rounds)
    while left > 0:
        seed = asked.seed + len(rounds)
        tally = run_round(asked.form, min(left, ROUND_S), seed, trials=not asked.no_trials)
        print(table([tally]), flush=True)
        rounds.append(tally)
        left -= ROUND_S
        if asked.resume:
            asked.resume.write_text(json.dumps([each.as_dict() for each in rounds], indent=1))
    text = table(rounds)
    print(text)
    _write(asked.form, asked.seed, asked.minutes, text)
    return 1 if any(each.faults for each in rounds) else 0


def _known(file: Path | None) -> list[Tally]:
    if file is None or not file.exists():
        return []
    return [Tally(**each) for each in json.loads(file.read_text())]


def table(rounds: list[Tally]) -> str:
    kills: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    for each in rounds:
        kills.update(each.kills)
        counts.update(each.counts)
        faults.update({kind: len(found) for kind, found in each.faults.items()})
    journal, billed = sum(each.journal_s for each in rounds), sum(each.billed_s for each in rounds)
    named = ", ".join(f"{kind} {count}" for kind, count in sorted(kills.items()))
    rows = [("kills", f"{sum(kills.values())} ({named})"), ("rounds", str(len(rounds)))]
    rows += [(name, f"{count:,}") for name, count in counts.items()]
    rows.append(("seconds of attempts by their journals, billed", f"{journal:.1f}, {billed:.1f}"))
    rows += [(kind, f"**{count}**") for kind, count in faults.items()]
    if not faults:
        rows.append(("missing, doubled, stuck, wrong or left behind", "0"))
    lines = ["| figure | measured |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
    examples = [f"- {kind}: {found[0]}" for each in rounds for kind, found in each.faults.items()]
    return "\n".join([*lines, *(["", *examples] if examples else [])])


def _write(form: str, seed: int, minutes: float, text: str) -> None:
    """Replace the form's part of the page."""
    parts: dict[str, str] = {}
    if PAGE.exists():
        for part in PAGE.read_text().split("\n## ")[1:]:
            name, _, body = part.partition("\n")
            parts[name.strip()] = body.strip()
    said = f"`--form {form} --minutes {minutes:g} --seed {seed}`, {datetime.now(UTC):%Y-%m-%d}, "
    said += f"Python {platform.python_version()}"
    parts[form] = f"{said}\n\n{text}"
    PAGE.write_text(HEAD + "".join(f"\n## {name}\n{body}\n" for name, body in sorted(parts.items())))


if __name__ == "__main__":
    sys.exit(main())
