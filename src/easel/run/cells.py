"""What a notebook's cells left, as its runner wrote it down beside user code: read by the agent, never trusted."""

from __future__ import annotations

import json
import os
import stat
import zlib
from dataclasses import dataclass
from pathlib import Path

from easel.errors import InvalidInput
from easel.run.entries import CellRun, EntryBody, ProgressMade
from easel.run.log_writer import MASK
from easel.run.notebook_runner import CELLS
from easel.run.result import plain_json

MOST_LINE = 4 << 20
MOST_ALL = 64 << 20
STATES = frozenset({"begun", "running", "done", "failed", "skipped"})
_OVER = frozenset({"done", "failed", "skipped"})


@dataclass(slots=True)
class CellReader:
    """Reads on where it stopped. `said` is what the cell that failed said, with its number among code cells."""

    folder: Path
    secrets: tuple[bytes, ...] = ()
    """What is masked, as in logs."""
    offset: int = 0
    codes: tuple[int, ...] = ()
    said: str | None = None

    def more(self) -> list[EntryBody]:
        """Entries for what came since; a line that says nothing sensible says nothing."""
        found: list[EntryBody] = []
        for line in self._lines():
            for secret in self.secrets:
                line = line.replace(secret, MASK)
            entry = self._entry(line)
            if entry is None:
                continue
            found.append(entry)
            if entry.state in _OVER and entry.cell in self.codes:
                found.append(ProgressMade((self.codes.index(entry.cell) + 1) / len(self.codes)))
        return found

    def _entry(self, line: bytes) -> CellRun | None:
        try:
            record = plain_json(json.loads(line))
            cell, state, body = int(record["cell"]), str(record["state"]), record["body"]
            if state not in STATES or not isinstance(body, dict) or not -1 <= cell < 100_000:
                return None
            if cell == -1:
                cells = list(enumerate(body["cells"]))
                self.codes = tuple(n for n, each in cells if each.get("cell_type") == "code")
            if state == "failed" and cell in self.codes:
                self.said = f"cell {self.codes.index(cell) + 1}: {str(record.get('said'))[:300]}"
            return CellRun(cell, state, zlib.compress(json.dumps(body).encode(), 1))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError, InvalidInput):
            return None

    def _lines(self) -> list[bytes]:
        try:
            fd = os.open(self.folder / CELLS, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return []
        with os.fdopen(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode) or self.offset >= MOST_ALL:
                return []
            file.seek(self.offset)
            data = file.read(MOST_LINE)
        end = data.rfind(b"\n") + 1
        if end == 0 and len(data) == MOST_LINE:
            self.offset = MOST_ALL  # nobody of ours writes such a line
        self.offset += end
        return data[:end].splitlines()
