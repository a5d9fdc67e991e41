"""Prints branch coverage by package, from the report that `coverage json` wrote."""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from pathlib import Path

GOAL = 92.0


def by_package(report: dict[str, dict[str, dict[str, dict[str, int]]]]) -> dict[str, tuple[int, int]]:
    """Returns (branches taken, branches) of each package under src/easel."""
    taken: dict[str, int] = defaultdict(int)
    total: dict[str, int] = defaultdict(int)
    for name, file in report["files"].items():
        parts = Path(name).parts
        inside = parts[parts.index("easel") + 1 :]
        package = inside[0] if len(inside) > 1 else "easel"
        taken[package] += file["summary"]["covered_branches"]
        total[package] += file["summary"]["num_branches"]
    return {package: (taken[package], total[package]) for package in sorted(total)}


def main(report: Path) -> int:
    """Prints the table; 1 where the whole misses its goal."""
    packages = by_package(json.loads(report.read_text()))
    print("| package | branches | taken |\n|---|---:|---:|")
    for package, (taken, total) in packages.items():
        print(f"| `{package}` | {total} | {100 * taken / max(total, 1):.1f} % |")
    taken, total = (sum(one[at] for one in packages.values()) for at in (0, 1))
    share = 100 * taken / max(total, 1)
    print(f"| **all** | {total} | **{share:.1f} %** |")
    return 0 if share >= GOAL else 1


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("report", type=Path, help="what `coverage json` wrote")
    sys.exit(main(asked.parse_args().report))
