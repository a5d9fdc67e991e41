"""What to charge whom for a month, as a table, CSV or PDF."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from easel.errors import Misconfigured
from easel.flow.words.numbers import money
from easel.ids import ProjectId
from easel.store import billing, identity
from easel.store.engine import Tx

MICROS = 1_000_000
TITLES = ("project", "person", "jobs", "hours", "GPU-hours", "amount", "currency")
OF_IDLE = ("held GPU-hours", "running jobs")
"""What a report on idle GPUs says besides."""
_WIDTHS = (48, 48, 16, 22, 22, 34)


@dataclass(frozen=True, slots=True)
class ChargeLine:
    project: str
    user: str
    jobs: int
    hours: float
    gpu_hours: float
    amount: float
    currency: str
    held_gpu_hours: float | None = None
    """Of a report on idle GPUs: in how many they were held, idle or not."""
    running_jobs: int | None = None
    """Of a report on idle GPUs: how many of the jobs still run."""


def chargeback(tx: Tx, month: str) -> list[ChargeLine]:
    """Returns sums by project and person, the dearest first."""
    found = billing.charges(tx, month)
    people = identity.names_of(tx, list({each.user_id for each in found}))
    projects = {key: identity.find_project(tx, ProjectId(key)) for key in {each.project_id for each in found}}
    return [
        ChargeLine(
            getattr(projects[each.project_id], "name", each.project_id),
            people.get(each.user_id, each.user_id),
            each.jobs,
            each.hours,
            each.gpu_hours,
            each.micros / MICROS,
            each.currency,
        )
        for each in found
    ]


def totals_of(lines: Sequence[ChargeLine]) -> dict[str, float]:
    """The sum in each currency."""
    found: dict[str, float] = {}
    for line in lines:
        found[line.currency] = found.get(line.currency, 0.0) + line.amount
    return found


def as_csv(lines: Sequence[ChargeLine], *, idle_gpus: bool = False) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(TITLES + OF_IDLE if idle_gpus else TITLES)
    for line in lines:
        hours = (f"{line.hours:.4f}", f"{line.gpu_hours:.4f}")
        row = [_safe(line.project), _safe(line.user), line.jobs, *hours, f"{line.amount:.6f}", line.currency]
        writer.writerow([*row, f"{line.held_gpu_hours:.4f}", line.running_jobs] if idle_gpus else row)
    return out.getvalue()


def _safe(text: str) -> str:
    """Text that a spreadsheet does not take for a formula."""
    return f"'{text}" if text[:1] in "=+-@\t\r" else text


def as_pdf(lines: Sequence[ChargeLine], month: str, *, idle_gpus: bool = False) -> bytes:
    """A page that can be filed: the table, and the sum in each currency."""
    try:
        from fpdf import FPDF
    except ModuleNotFoundError as error:
        raise Misconfigured(
            f"PDF needs {error.name}: pip install 'easel-ml[reports]', or ask for CSV"
        ) from error
    title = f"GPUs held idle in {month}" if idle_gpus else f"Charges for {month}"
    page = FPDF()
    page.set_title(f"Easel: {title}")
    page.add_page()
    page.set_font("Helvetica", "B", 16)
    page.cell(0, 12, title, new_x="LMARGIN", new_y="NEXT")
    page.set_font("Helvetica", "B", 9)
    for title, width in zip(TITLES[:-1], _WIDTHS, strict=True):
        page.cell(width, 7, title, border="B", align="L" if width > 40 else "R")
    page.ln()
    page.set_font("Helvetica", "", 9)
    for line in lines:
        numbers = (
            str(line.jobs),
            f"{line.hours:,.2f}",
            f"{line.gpu_hours:,.2f}",
            _money(line.amount, line.currency),
        )
        for text, width in zip((line.project, line.user, *numbers), _WIDTHS, strict=True):
            page.cell(width, 6, _latin(text)[:40], align="L" if width > 40 else "R")
        page.ln()
    page.set_font("Helvetica", "B", 9)
    for currency, amount in totals_of(lines).items():
        page.cell(sum(_WIDTHS[:-1]), 8, "together", border="T")
        page.cell(_WIDTHS[-1], 8, _latin(_money(amount, currency)), border="T", align="R")
        page.ln()
    return bytes(page.output())


def _money(amount: float, currency: str) -> str:
    """Writes an amount with the currency's code: the fonts that every PDF reader has do not have every sign."""
    shown = money(amount, currency)
    return shown if shown.isascii() else f"{amount:,.2f} {currency}"


def _latin(text: str) -> str:
    return text.encode("latin-1", "replace").decode("latin-1")
