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
GAVE_WAY = "gave way"
"""What a trial says that was asked to stop at its next checkpoint."""
OUT_OF_TIME = "out of time"
CAN_GO_ON = frozenset({SLICE_ENDED, GAVE_WAY, OUT_OF_TIME})
