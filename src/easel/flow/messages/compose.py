"""What messages say, and how each way wants it written."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.policy import SMTP

from easel.flow.words.numbers import money
from easel.records.message import QueuedMessage

_WHOLE_LINES = SMTP.clone(max_line_length=998)
"""A link that were folded in a header would be no link any more."""


@dataclass(frozen=True, slots=True)
class Note:
    """One sentence about one event, and the page about it."""

    title: str
    detail: str
    link: str | None


def note(message: QueuedMessage, public_url: str, currency: str) -> Note:
    body = message.body
    name = str(body.get("name") or message.subject)
    where = f" in {message.project}" if message.project else ""
    reason = str(body.get("reason") or "")
    match message.kind:
        case "job.finished":
            title, page = f"Job {name}{where} has finished", "jobs"
        case "job.failed":
            title, page = f"Job {name}{where} failed", "jobs"
        case "job.killed":
            title, page = f"Job {name}{where} was killed", "jobs"
        case "app.improved":
            title, page = f"App {name}{where} has a better model", "apps"
            reason = _improvement(body.get("quality"), body.get("before")) or reason
        case "app.done":
            title, page = f"App {name}{where} is done", "apps"
        case "study.finished":
            title, page = f"Study {name}{where} is over", "studies"
        case "budget.warned":
            spent, limit = body.get("spent_micros"), body.get("limit_micros")
            title, page = f"{float(body.get('share', 1.0)):.0%} of the budget{where} is spent", "spending"
            if isinstance(spent, int) and isinstance(limit, int):
                reason = f"{money(spent / 1e6, currency)} of {money(limit / 1e6, currency)}"
        case "device.lost":
            title, page = f"Device {message.subject} is lost", ""
        case "backup.failed":
            title, page = f"The backup to {message.subject} failed", ""
        case _:
            title, page = "A message from Easel, as you asked for", ""
    link = None
    if public_url and message.project and page:
        last = "" if page == "spending" else f"/{message.subject if page != 'apps' else name}"
        link = f"{public_url.rstrip('/')}/p/{message.project}/{page}{last}"
    return Note(title, reason, link)


def _improvement(quality: object, before: object) -> str:
    if not isinstance(quality, int | float):
        return ""
    return f"score {quality:.4g}" + (f", {before:.4g} before" if isinstance(before, int | float) else "")


def text_of(notes: Sequence[Note]) -> str:
    return "\n\n".join(
        "\n".join(part for part in (each.title, each.detail, each.link) if part) for each in notes
    )


def headline(notes: Sequence[Note]) -> str:
    return notes[0].title if len(notes) == 1 else f"{len(notes)} messages from Easel"


def mail(sender: str, to: str, notes: Sequence[Note], unsubscribe: str, message_id: str) -> EmailMessage:
    """Returns the mail, with the headers of RFC 8058 by which a mail program unsubscribes with one click."""
    made = EmailMessage(policy=_WHOLE_LINES)
    made["From"], made["To"] = sender, to
    made["Subject"] = f"[Easel] {headline(notes)}".replace("\n", " ").replace("\r", " ")
    made["Message-ID"] = message_id
    made["Auto-Submitted"] = "auto-generated"
    foot = ""
    if unsubscribe:
        made["List-Unsubscribe"] = f"<{unsubscribe}>"
        made["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"
        foot = f"\n\n--\nNo more of these: {unsubscribe}\n"
    made.set_content(text_of(notes) + foot)
    return made


def slack(notes: Sequence[Note]) -> bytes:
    def escaped(text: str) -> str:
        return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")

    lines = [
        f"*<{each.link}|{escaped(each.title)}>*" if each.link else f"*{escaped(each.title)}*"
        for each in notes
    ]
    told = [
        f"{line}\n{escaped(each.detail)}" if each.detail else line
        for line, each in zip(lines, notes, strict=True)
    ]
    return json.dumps({"text": "\n".join(told)}).encode()


def matrix(notes: Sequence[Note]) -> bytes:
    return json.dumps({"msgtype": "m.text", "body": text_of(notes)}).encode()


def webhook(messages: Sequence[QueuedMessage], notes: Sequence[Note]) -> bytes:
    items = [
        {
            "id": message.id,
            "kind": message.kind,
            "subject": message.subject,
            "project": message.project,
            "at": message.at.isoformat(),
            "title": each.title,
            "detail": each.detail,
            "link": each.link,
        }
        for message, each in zip(messages, notes, strict=True)
    ]
    return json.dumps({"messages": items}).encode()


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """`t=…,v1=…`: HMAC-SHA256 of `timestamp.body`, so that a receiver knows who wrote it and when."""
    signed = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={signed}"
