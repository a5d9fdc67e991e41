"""Apps over the wire."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from easel.declare.styles import ColumnStyle
from easel.wire.app_report import Findings
from easel.wire.model import Answer, AwareDatetime, BeforeValidator, Field, Request
from easel.wire.terms import Terms

ProgramText = Annotated[
    str,
    Field(
        max_length=1_000_000,
        examples=["input: image 28 x 28\noutput: [cat, dog]"],
        description="The paper's notation, YAML or JSON",
    ),
]
Fit = Literal["stretch", "pad", "crop"]
Rates = Annotated[
    Literal["candidates", "trial"], BeforeValidator(lambda given: "candidates" if given == "pool" else given)
]
"""`pool` is how version 0.1 said `candidates`: accepted until version 0.3."""
Value = Annotated[
    Any,
    Field(
        description='Plain JSON; an array as {"$array": base64, "kind": "<f4", "shape": […]}, a picture as '
        '{"$picture": base64 of a JPEG or PNG} or {"$file": path in the lake}, with "fit": stretch, pad or crop'
    ),
]


class DeclareApp(Request):
    name: Annotated[str, Field(max_length=64, examples=["flowers"])]
    program: ProgramText
    metric: Annotated[str | None, Field(max_length=2000, description="Without it the task's usual one")] = (
        None
    )
    rates: Annotated[
        Rates,
        Field(description="Learning rates as candidates of their own or a grid inside each trial"),
    ] = "candidates"


class ChangeApp(Request):
    """Another metric, a wider program, or both."""

    metric: Annotated[
        str | None, Field(max_length=2000, description="Models go on serving by their scores in it")
    ] = None
    program: Annotated[
        ProgramText | None,
        Field(description="The same fields; values may become optional, classes may be added"),
    ] = None


class MatchProgram(Request):
    program: ProgramText
    examples: Annotated[int, Field(ge=1, le=10**9, description="For the costs")] = 1_000


class CandidateView(Answer):
    name: str
    family: str
    settings: dict[str, str | float | int]
    cost_s: Annotated[float, Field(description="Estimated seconds on one core")]
    promise: float


class Matched(Answer):
    """`program` in the paper's notation; the first metric is the usual one."""

    program: str
    template: str
    task: str
    metrics: list[str]
    candidates: list[CandidateView]


class ProposeProgram(Request):
    """A table's first rows as text cells, or the pictures of a folder by their path `class/file.png`."""

    header: Annotated[list[str], Field(max_length=10_000, default_factory=list)]
    rows: Annotated[list[list[str]], Field(max_length=20_000, default_factory=list)]
    pictures: Annotated[
        dict[str, list[int] | None],
        Field(max_length=200_000, default_factory=dict, description="Height, width, channels where known"),
    ]
    target: Annotated[str | None, Field(max_length=1_000, description="The column to predict")] = None


class Proposed(Answer):
    program: str
    target: str
    reasons: list[str]


class Pair(Request):
    input: Value
    output: Value


ColumnStyles = Annotated[
    dict[str, ColumnStyle],
    Field(max_length=10_000, examples=[{"input.age": {"decimal": ",", "unit": "kg", "order": "dmy"}}]),
]
"""By `input.NAME` or `output.NAME`: the decimal mark, the unit, or the order of day and month (`dmy`, `mdy`)."""


class FeedPairs(Request):
    pairs: Annotated[list[Pair], Field(max_length=50_000)]
    skip_bad: Annotated[
        bool, Field(description="Leave out pairs that do not fit, rather than refuse all")
    ] = False
    styles: ColumnStyles = Field(
        default_factory=dict,
        description="How the file that they are from writes numbers and dates, if it told",
    )
    first: Annotated[
        int, Field(ge=1, description="The number of the first pair, where a feed comes in parts")
    ] = 1


class FeedFiles(Request):
    """What was uploaded to the lake: a folder of pictures, or .npz, x.npy with y.npy, .csv, .parquet, .jsonl.
    `upload:upl_…` means what that upload brought.
    """

    reference: Annotated[str, Field(max_length=4_096, examples=["/apps/flowers/uploads/"])]
    fit: Fit = "stretch"
    skip_bad: bool = False
    more: Annotated[bool, Field(description="Another part follows: learn when it is there")] = False


class GiveVectors(Request):
    """A GloVe file in the lake: on each line a word and its numbers."""

    reference: Annotated[str, Field(max_length=4_096, examples=["/glove/glove.6B.50d.txt"])]


class Refused(Answer):
    pair: int
    why: str
    file: str | None = None


class Fed(Answer):
    new: int
    known: int
    total: int
    refused: Annotated[list[Refused], Field(default_factory=list)]
    notes: Annotated[list[str], Field(default_factory=list, description="What is odd about what was fed")]


class Refine(Request):
    """Switch these examples, or those that pass all filters; `undo` takes back the newest switch."""

    digests: Annotated[list[str], Field(max_length=50_000, default_factory=list)]
    filter: Annotated[
        list[str],
        Field(
            max_length=20,
            default_factory=list,
            description="field:operator:value on class, on, fold, fed_at, answer, preview, digest",
            examples=[["class:eq:cat", "fed_at:lt:2026-01-01T00:00:00Z"]],
        ),
    ]
    on: bool = False
    undo: bool = False


class Refined(Answer):
    changed: list[str]


class FedExample(Answer):
    digest: str
    stratum: Annotated[str, Field(description="Its class; empty where there are no classes")]
    fold: int
    on: bool
    fed_at: AwareDatetime
    preview: str | None = None
    answer: str | None = None


class CurveLine(Answer):
    name: str
    values: list[float | None]


class ExampleCurve(Answer):
    """What to draw of a series: lines of at most 120 points, with the lowest and highest values among them."""

    steps: Annotated[int, Field(description="How many steps the whole series has")]
    lines: list[CurveLine]


class ExampleContent(Answer):
    example: FedExample
    input: Value
    output: Value


class Suspicion(Answer):
    """`loss` under a model that was trained without the example: larger is stranger."""

    example: FedExample
    loss: float


class Suspects(Answer):
    """`judged` examples have a loss. `job` judges all of them, once it is asked for."""

    items: list[Suspicion]
    judged: int
    job: str | None
    state: str | None


class Infer(Request):
    objects: Annotated[list[Value], Field(max_length=10_000)]
    skip_bad: Annotated[
        bool, Field(description="Answer objects that do not fit with their error, rather than refuse all")
    ] = False
    first: Annotated[
        int, Field(ge=1, description="The number of the first object, where many are asked in parts")
    ] = 1


class Answers(Answer):
    answers: list[dict[str, Any]]
    candidate: str
    model: Annotated[str, Field(description="The file set, name:version, that holds it")]
    quality: Annotated[float, Field(description="Its validation score")]
    pinned: bool = False
    notes: Annotated[
        list[str], Field(default_factory=list, description="What was missing or new, and how it was taken")
    ]


class RollBack(Request):
    forward: Annotated[bool, Field(description="To the model after the present one, not before it")] = False


class PinModel(Request):
    model: Annotated[str, Field(max_length=200, examples=["flowers-model:3"])]


class BestModel(Answer):
    candidate: str
    model: str
    quality: Annotated[float, Field(description="Its score on held-out examples, by which it was chosen")]
    shown: Annotated[
        float,
        Field(
            default_factory=lambda: math.nan,
            description="That score without the luck of the choice, where it was measured",
        ),
    ]
    error: Annotated[float | None, Field(description="One standard deviation of the score by sampling")] = (
        None
    )
    baseline: Annotated[float | None, Field(description="What always giving the same answer scores")] = None
    luck: Annotated[
        float | None,
        Field(
            description="By how much the best of the candidates scores too high, being chosen by the same examples"
        ),
    ] = None
    low: Annotated[
        float | None,
        Field(
            description="Nine of ten tests on as many new examples as were validated score above this and below `high`"
        ),
    ] = None
    high: Annotated[float | None, Field(description="Never above the best there can be")] = None

    def score(self) -> float:
        """Returns what is shown of it; servers of 0.2 tell only the score by which it was chosen."""
        return self.quality if math.isnan(self.shown) else self.shown


class NextTrial(Answer):
    candidate: str
    why: Annotated[
        str, Field(description="In plain words: its chance to beat the best, and how long it takes")
    ]
    details: Annotated[str, Field(description="The numbers that the policy weighed")]
    chance: Annotated[float, Field(description="Of beating the best so far")]
    gain: Annotated[float, Field(description="By how much, if it does; scores go from 0 to 1")]
    first: Annotated[bool, Field(description="Whether it is the very next trial of the whole pool")]


class App(Answer):
    id: str
    name: str
    program: str
    template: str
    metric: str
    created_at: AwareDatetime
    folder: Annotated[
        str, Field(description="Where the lake keeps its examples; upload pictures below it")
    ] = ""
    pictures: Annotated[bool, Field(description="Whether examples have thumbnails")] = False
    series: Annotated[bool, Field(description="Whether examples have curves")] = False
    examples: int
    switched_off: int
    trials: int
    running: list[str]
    best: BestModel | None
    serving: Annotated[BestModel | None, Field(description="What answers: the pinned model, or the best")] = (
        None
    )
    pinned: str | None = None
    rates: Annotated[Rates, Field(description="Where learning rates are tried")] = "candidates"
    vector_size: Annotated[
        int, Field(description="Numbers of each given word vector; 0: none were given")
    ] = 0
    styles: ColumnStyles = Field(
        default_factory=dict,
        description="How its columns write numbers and dates, as far as what was fed told",
    )
    last_improvement_at: AwareDatetime | None
    why: Annotated[str | None, Field(description="What the policy weighed when it last chose for this app")]
    next: Annotated[NextTrial | None, Field(description="What it would run next, and why")] = None
    lacks: Annotated[str | None, Field(description="What it needs before it can learn")] = None
    status: Annotated[str, Field(description="running, waits-for-turn, paused, exhausted, …")]
    waiting: Annotated[
        str, Field(description="What it does or waits for, since when, and what would change it")
    ]
    terms: Annotated[Terms, Field(description="What people said about it")]


class AppList(Answer):
    items: list[App]


class TrialView(Answer):
    """A decision with its reasons, and what came of it. Costs and times are seconds."""

    job: str
    candidate: str
    state: Literal["running", "done", "failed"]
    quality: float | None
    seconds: float | None
    cost_s: Annotated[float, Field(description="What it was expected to take")]
    expected: Annotated[float, Field(description="The score that was expected of it, from 0 to 1")]
    deviation: float
    examples: int
    model: str | None
    started_at: AwareDatetime
    ended_at: AwareDatetime | None
    why: str
    details: Annotated[str, Field(description="The numbers that the policy weighed")]


class TrialList(Answer):
    items: list[TrialView]


class Improvement(Answer):
    at: AwareDatetime
    quality: float
    candidate: str
    model: str


class TrialProgress(Answer):
    """The best score over time."""

    metric: str
    items: list[Improvement]


class Report(Answer):
    """How the model that answers did on validation.

    `confusion[true][predicted]` counts; `residuals` are pairs of truth and prediction; `curves` hold the
    training and validation loss of each epoch, one curve for each fold.
    """

    candidate: str
    model: str
    metric: str
    quality: float
    classes: Annotated[list[str], Field(default_factory=list)]
    confusion: Annotated[list[list[int]], Field(default_factory=list)]
    residuals: Annotated[list[list[float]], Field(default_factory=list)]
    curves: Annotated[list[list[list[float | None]]], Field(default_factory=list)]
    findings: Annotated[
        Findings | None, Field(description="What matters, where it fails, what would help; once asked for")
    ] = None
    job: Annotated[str | None, Field(description="The job that looks for the findings, once asked for")] = (
        None
    )
    job_state: str | None = None


class Prospect(Answer):
    """What is believed of one candidate: `mean` ± `deviation` of its score, and its cost.

    `low` to `high` are the central 90 % of it, as far as a score can go: from 0 to 1.
    """

    candidate: str
    state: Literal["open", "running", "done", "failed"]
    mean: float
    deviation: float
    low: float
    high: float
    cost_s: float
    quality: float | None


class Prospects(Answer):
    """The posterior over all candidates, best first, and what the policy would run next."""

    next: NextTrial | None
    items: list[Prospect]


class GeneratedFiles(Answer):
    """Generated programs by file name."""

    files: dict[str, str]
