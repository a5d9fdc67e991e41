"""A short document as blocks, written as Markdown or as one HTML page that fetches nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;margin:1rem 0}th,td{border:1px solid #ccc;padding:.25rem .6rem;text-align:left}"
    "code{background:#f3f3f3;padding:.1rem .3rem;overflow-wrap:anywhere}h2{margin-top:2rem}"
)


@dataclass(frozen=True, slots=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Paragraph:
    text: str


@dataclass(frozen=True, slots=True)
class TableBlock:
    """A table: `titles` above, one sequence of cells for each row."""

    titles: Sequence[str]
    rows: Sequence[Sequence[object]]


@dataclass(frozen=True, slots=True)
class CodeBlock:
    text: str


Block = Heading | Paragraph | TableBlock | CodeBlock


def as_markdown(blocks: Sequence[Block]) -> str:
    """The document as Markdown; what people wrote cannot become markup."""
    parts = []
    for one in blocks:
        match one:
            case Heading(text, level):
                parts.append(f"{'#' * level} {_plain(text)}")
            case Paragraph(text):
                parts.append(_plain(text))
            case TableBlock(titles, rows):
                lines = [
                    [_cell(t) for t in titles],
                    ["---"] * len(titles),
                    *[[_cell(c) for c in r] for r in rows],
                ]
                parts.append("\n".join(f"| {' | '.join(line)} |" for line in lines))
            case CodeBlock(text):
                fence = "```"
                while fence in text:
                    fence += "`"
                parts.append(f"{fence}\n{text}\n{fence}")
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    """Marks that Markdown or HTML would read are written so that they show."""
    made = escape(" ".join(str(text).split()), quote=False)
    for mark in "\\`*_[]#":
        made = made.replace(mark, f"\\{mark}")
    return made


def _cell(value: object) -> str:
    return _plain(str(value)).replace("|", "\\|")


def as_html(title: str, blocks: Sequence[Block]) -> str:
    """The document as one HTML page."""
    parts = []
    for one in blocks:
        match one:
            case Heading(text, level):
                parts.append(f"<h{level}>{escape(text)}</h{level}>")
            case Paragraph(text):
                parts.append(f"<p>{escape(text)}</p>")
            case TableBlock(titles, rows):
                head = "".join(f"<th>{escape(str(t))}</th>" for t in titles)
                body = "".join(
                    f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows
                )
                parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>")
            case CodeBlock(text):
                parts.append(f"<pre><code>{escape(text)}</code></pre>")
    inside = "\n".join(parts)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style></head><body>\n{inside}\n</body></html>\n"
    )
