"""What is asked of a model after its first score, over the wire."""

from __future__ import annotations

from typing import Annotated, Any

from easel.wire.model import Answer, Field, Request


class ScoreFiles(Request):
    """A file or folder of the lake, or a file set `rows:3`: tables, JSON lines, Parquet, npy or pictures."""

    reference: Annotated[str, Field(max_length=4_096, examples=["rows:3", "/new/rows.csv"])]


class Scoring(Answer):
    """The job whose output set holds the answers, and the model version that gives all of them."""

    job: str
    model: str
    candidate: str


class Importance(Answer):
    column: str
    drop: Annotated[
        float, Field(description="How much lower the score is when its values are dealt out anew")
    ]
    deviation: float


class Contribution(Answer):
    """The mean size of what a column adds to or takes from the answers (exact Shapley values)."""

    column: str
    mean: float
    direction: Annotated[
        float | None,
        Field(description="1 where larger numbers always add, -1 where they always take away; none of words"),
    ] = None


class Because(Answer):
    column: str
    by: Annotated[float, Field(description="What it added to the number, or to the log-odds of the answer")]


class WeakGroup(Answer):
    where: str
    examples: int
    error: float
    elsewhere: float


class WorstExample(Answer):
    digest: str
    truth: Any
    answer: Any
    because: Annotated[list[Because], Field(default_factory=list)]


class CurvePoint(Answer):
    examples: int
    error: float


class Foretold(Answer):
    """The gain in score by twice the examples, and the central 90 % of it."""

    gain: float
    low: float
    high: float


class Reliability(Answer):
    """How sure the model said it was, how often it was right, and for what share of the examples."""

    said: float
    right: float
    share: float


class Findings(Answer):
    """What was found about a model on held-out examples; `told` says it in sentences."""

    told: Annotated[list[str], Field(default_factory=list)]
    judged_by: str
    metric: str
    held_out: int
    score: float
    importance: list[Importance]
    columns_not_looked_at: int = 0
    contributions: Annotated[list[Contribution], Field(default_factory=list)]
    contributions_of: Annotated[str | None, Field(description="What is added up: a number, log-odds")] = None
    no_contributions: Annotated[str | None, Field(description="Why there are no exact Shapley values")] = None
    weak_groups: list[WeakGroup]
    worst_examples: list[WorstExample]
    error_kind: str
    learning_curve: list[CurvePoint]
    twice_the_examples: Foretold | None
    coverage: float | None = None
    meant_to_cover: float | None = None
    calibration_error: float | None = None
    reliability: Annotated[list[Reliability], Field(default_factory=list)]
    classes: Annotated[list[str], Field(default_factory=list)]
    confusion: Annotated[list[list[int]], Field(default_factory=list)]
    residuals: Annotated[list[list[float]], Field(default_factory=list)]


class StartedJob(Answer):
    """The job that looks into it, now or before."""

    job: str


class ExampleCheck(Answer):
    """What one check found, in words, and the examples it is about: `easel refine APP --check KIND --off`."""

    kind: Annotated[
        str,
        Field(
            description="labels, outliers, near-duplicates, contradictions, missing, constant, leak, imbalance, drift"
        ),
    ]
    told: str
    column: str | None = None
    digests: Annotated[list[str], Field(default_factory=list)]
    count: int = 0


class Checks(Answer):
    """What was found about the examples that are switched on; `job` looks, once it is asked for."""

    checks: Annotated[list[ExampleCheck], Field(default_factory=list)]
    examples: int | None = None
    notes: Annotated[list[str], Field(default_factory=list)]
    job: str | None
    state: str | None
