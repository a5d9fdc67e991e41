"""What is asked of a model after its first score, over the wire."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from easel.wire.model import Answer, Request


class ScoreFiles(Request):
    """A file or folder of the lake, or a file set `rows:3`: tables, JSON lines, Parquet, npy or pictures."""

    reference: Annotated[str, Field(max_length=4_096, examples=["rows:3", "/new/rows.csv"])]


class Scoring(Answer):
    """The job whose output set holds the answers, and the model version that gives all of them."""

    job: str
    model: str
    candidate: str
