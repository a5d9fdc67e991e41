"""The kinds of programs and what they ask for: what families of models are matched by."""

from __future__ import annotations

from enum import Enum


class Task(Enum):
    """What is asked for; decides loss, metric and the shape of an answer."""

    CLASSIFY = "classification"
    REGRESS = "regression"
    RECOVER = "recovery"
    TRANSLATE = "translation"
    REBUILD = "reconstruction"


class TemplateKind(Enum):
    """What goes in; decides the encoder."""

    IMAGE = "image"
    SERIES = "time-series"
    TREE = "tree"
    TEXT = "text"
    TABLE = "table"
    MULTI_OUTPUT = "multi-output"
    GENERAL = "general"


SLICE_ENDED = "end of the slice"
"""What a trial says that stopped at the end of a slice and can be gone on with."""
