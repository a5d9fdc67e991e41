"""How a request to a model is written, and its answer: Easel's own form, or the Open Inference Protocol's."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from easel.declare.program import Program
from easel.declare.styles import Styles
from easel.errors import InvalidInput
from easel.match.answer import Question, read_question
from easel.serve.tensors import read_tensors, write_tensors
from easel.wire.app import Infer

OWN, OPEN = "easel", "open"
READY = "ready"
"""No question: the model is to be held, so that whoever asks it next need not wait until it is."""


class Unreadable(InvalidInput):
    """A body that is no JSON."""

    kind = "unreadable"


def parsed(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        told = [{"where": "body", "message": f"JSON decode error: {str(error)[:200]}"}]
        raise Unreadable(f"body: {told[0]['message']}", errors=told) from None


def checked(body: bytes) -> Infer:
    """A request in our own form, or what is wrong in it, as the API says it everywhere."""
    try:
        return Infer.model_validate(parsed(body))
    except ValidationError as error:
        told = [
            {"where": ".".join(str(part) for part in ("body", *each["loc"])), "message": each["msg"]}
            for each in error.errors()
        ]
        summary = "; ".join(f"{each['where']}: {each['message']}" for each in told[:3])
        raise InvalidInput(summary, errors=told) from None


def read_request(form: str, program: Program, body: bytes, styles: Styles | None = None) -> Question:
    """The question of a request; `styles`: how the app's examples write numbers and dates."""
    if form == OPEN:
        return read_question(program, read_tensors(program, parsed(body)), styles=styles)
    asked = checked(body)
    return read_question(
        program, asked.objects, skip_bad=asked.skip_bad, styles=styles, first_number=asked.first
    )


def write_answer(
    form: str, program: Program, body: bytes, answers: Sequence[dict[str, Any]], notes: Sequence[str]
) -> bytes:
    """The part of an answer that the model gives; the server adds which model it was."""
    if form == OPEN:
        asked = parsed(body)
        told: dict[str, Any] = {"outputs": write_tensors(program, asked, answers)}
        if asked.get("id") is not None:
            told["id"] = str(asked["id"])
        if notes:
            told["parameters"] = {"notes": "; ".join(notes)}
        return _json(told)[:-1]
    return b'{"answers":%s,"notes":%s' % (_json(answers), _json(notes))


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
