"""Folds the fragments of a changelog into it, grouped by kind. `scripts/changelog` calls it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

KINDS = ("Added", "Changed", "Fixed")


def entries(text: str) -> dict[str, list[str]]:
    """Returns the entries of a fragment by kind; refuses other headings than `KINDS`, and text outside an entry."""
    found: dict[str, list[str]] = {}
    kind = None
    for line in text.splitlines():
        if heading := re.fullmatch(r"#+ (.*)", line):
            kind = heading[1].strip()
            if kind not in KINDS:
                raise ValueError(f"{line!r}: write ### {', ### '.join(KINDS)}")
        elif line.startswith("- "):
            if kind is None:
                raise ValueError(f"{line[:60]!r} stands under no heading: write ### {KINDS[0]} above it")
            found.setdefault(kind, []).append(line)
        elif line.startswith("  ") and kind and found.get(kind):
            found[kind][-1] += f"\n{line}"
        elif line.strip():
            raise ValueError(f"{line[:60]!r} is part of no entry: begin it with '- ', or indent it")
    return found


def fold(changelog: str, fragments: Iterable[str], version: str, date: str) -> str:
    """Returns the changelog with the fragments' entries under `version`, which comes first.

    A version that is there already gets them added, so that late fragments can be folded in too.
    """
    parts = re.split(r"(?m)^(?=## )", changelog)
    head, versions = parts[0], parts[1:]
    merged: dict[str, list[str]] = {kind: [] for kind in KINDS}
    if versions and versions[0].startswith(f"## {version} "):
        for kind, some in entries(versions.pop(0).partition("\n")[2]).items():
            merged[kind] += some
    for fragment in fragments:
        for kind, some in entries(fragment).items():
            merged[kind] += some
    groups = [f"### {kind}\n" + "\n".join(some) + "\n" for kind, some in merged.items() if some]
    if not groups:
        raise ValueError("there is nothing to fold: CHANGELOG.d has no entries")
    return head + f"## {version} — {date}\n\n" + "\n".join(groups) + "\n" + "".join(versions)


def main(arguments: list[str]) -> int:
    """Folds and removes the fragments; 2 where nothing was asked for, or a fragment is not as it must be."""
    if not arguments or arguments[0].startswith("-"):
        sys.stderr.write("say which version: scripts/changelog 0.2.0 [2026-11-17]\n")
        return 2
    version, date = (*arguments, datetime.now(UTC).date().isoformat())[:2]
    changelog = Path("CHANGELOG.md")
    fragments = sorted(Path("CHANGELOG.d").glob("*.md"))
    try:
        text = fold(changelog.read_text(), [path.read_text() for path in fragments], version, date)
    except ValueError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    changelog.write_text(text)
    for path in fragments:
        path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
