"""Studies over the wire, and a study's YAML file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from easel.declare.study_limits import FRACTION, MAX_WORKERS
from easel.declare.unicode import check_unicode
from easel.declare.yaml_text import load_yaml
from easel.errors import InvalidInput
from easel.wire.fields import Slug
from easel.wire.job import JobFields, job_fields
from easel.wire.model import Answer, Field, Json, Moment, Request, ValidationError
from easel.wire.terms import Terms

if TYPE_CHECKING:
    from easel.declare.study import StudySpec


class DataFields(Request):
    """How the platform subsamples the input for points below full data."""

    dimension: Annotated[
        str, Field(max_length=100, description="The fidelity that is the share of the data")
    ] = FRACTION
    keep: Annotated[
        list[Annotated[str, Field(max_length=500)]],
        Field(max_length=100, description="Files that always come whole", examples=[["/data/test/*"]]),
    ] = Field(default_factory=list)
    label: Annotated[
        str | None,
        Field(max_length=200, description="Draw rows of tables, alike from each value of this column"),
    ] = None


class CreateStudy(Request):
    name: Slug
    job: Annotated[JobFields, Field(description="`{name}` in its command stands for the point's value")]
    space: Annotated[
        Json, Field(examples=[{"dimensions": [{"name": "rate", "type": "float", "low": 0, "high": 1}]}])
    ]
    goal: Annotated[
        Json,
        Field(examples=[{"minimise": "cost", "constraints": ["accuracy >= 0.85"], "budget": {"cost": 1}}]),
    ]
    strategy: Annotated[str, Field(max_length=40)] = "auto"
    options: Json = Field(default_factory=dict)
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    workers: Annotated[int, Field(ge=1, le=MAX_WORKERS, description="Points that may run at once")] = 1
    early_stopping: Annotated[bool, Field(description="End runs whose curve is below the others' median")] = (
        True
    )
    data: DataFields = Field(default_factory=DataFields)
    slices: Annotated[
        str | None,
        Field(max_length=100, description="The fidelity along which points go on from their checkpoints"),
    ] = None
    earlier: Annotated[list[Slug], Field(max_length=20, description="Studies to start warm from")] = Field(
        default_factory=list
    )
    start: Annotated[bool, Field(description="Begin at once")] = True

    def spec(self) -> StudySpec:
        from easel.declare.goal import parse_goal
        from easel.declare.space import parse_space
        from easel.declare.study import DataPlan, StudySpec

        return StudySpec(
            job=self.job.spec(),
            space=parse_space(self.space),
            goal=parse_goal(self.goal),
            strategy=self.strategy,
            options=self.options,
            seed=self.seed,
            workers=self.workers,
            early_stopping=self.early_stopping,
            data=DataPlan(self.data.dimension, tuple(self.data.keep), self.data.label),
            slices=self.slices,
        )


class StudyFile(Request):
    """A study as YAML text."""

    text: Annotated[str, Field(max_length=1_000_000)]
    start: bool = True


class StartStudy(Request):
    budget: Annotated[
        dict[str, float] | None, Field(max_length=1, description="Another total, such as {cost: 5}")
    ] = None


class VerifyStudy(Request):
    """Nothing to say: the study knows what it recommends."""


class CsvText(Request):
    csv: Annotated[str, Field(max_length=10_000_000)]


class Estimate(Answer):
    """The median, and the central 90 %."""

    median: float
    low: float
    high: float


class Recommendation(Answer):
    """What to deploy now. `probability`: of meeting all constraints; `observed`: where this very point was run."""

    point: Json
    predicted: dict[str, Estimate]
    probability: float | None
    observed: dict[str, float] | None


class BestMeasured(Answer):
    """The best point that was really run; where nothing meets the constraints, the one that comes nearest."""

    number: int
    point: Json
    values: Annotated[dict[str, float | None], Field(description="None for what is no number")]
    job_id: str | None
    output_set: str | None
    missed: Annotated[list[str], Field(description="Constraints that it breaks; none where it is feasible")]


class BudgetUse(Answer):
    kind: Annotated[str, Field(description="cost, time or count")]
    amount: float
    spent: float


class Study(Answer):
    id: str
    name: str
    state: Annotated[str, Field(description="created, running, stopped or finished")]
    reason: str | None
    user_id: str
    strategy: str
    options: Json
    seed: int
    workers: int
    early_stopping: bool
    goal: Json
    space: Json
    job: Json
    data: Json
    budget: BudgetUse
    points: Annotated[dict[str, int], Field(description="How many run, completed, failed, were stopped")]
    best: Recommendation | None
    measured: BestMeasured | None = None
    why: Annotated[str | None, Field(description="Why the pool last served this study")]
    status: Annotated[str, Field(description="running, waits-for-turn, paused, finished, …")]
    waiting: Annotated[
        str, Field(description="What it does or waits for, since when, and what would change it")
    ]
    terms: Annotated[Terms, Field(description="What people said about it")]
    created_at: Moment
    changed_at: Moment


class StudyPoint(Answer):
    """One point. `spent` and `best` are what was used up and recommended once it was measured."""

    number: int
    point: Json
    state: Annotated[str, Field(description="running, completed, failed or stopped")]
    feasible: Annotated[
        bool | None, Field(description="Whether it meets the constraints; None while it runs")
    ]
    job_id: str | None
    values: Annotated[dict[str, float | None], Field(description="None for what is no number")]
    reason: str | None
    chosen: Annotated[
        Json, Field(description="What the strategy predicted there, its score, the runner-up's")
    ]
    why: Annotated[str | None, Field(description="Why the pool served this study then")]
    told: Annotated[int | None, Field(description="The order in which results came")]
    spent: float | None
    best: Recommendation | None
    started_at: Moment
    ended_at: Moment | None


class StudyPoints(Answer):
    items: list[StudyPoint]


class DimensionProfile(Answer):
    """The models along one dimension, the others held at the recommendation."""

    dimension: str
    fixed: Json
    values: list[bool | int | float | str]
    of: dict[str, list[Estimate]]
    probability: list[float]


class Region(Answer):
    """`probability[i][j]` that the constraints hold at `ys[i]`, `xs[j]`, and the objective's median there."""

    x: str
    y: str
    fixed: Json
    xs: list[bool | int | float | str]
    ys: list[bool | int | float | str]
    probability: list[list[float | None]]
    objective: list[list[float | None]]


class DimensionShare(Answer):
    """How much a dimension matters. Dimensions that act together count in each share: they may add up to above 1."""

    dimension: str
    share: Annotated[
        float, Field(description="Of the predicted variation, what stays when every other dimension is held")
    ]


class Importances(Answer):
    """The dimensions of a study by how much they matter for one quantity, the largest first."""

    quantity: str
    items: list[DimensionShare]


class Imported(Answer):
    new: int


def study_fields(text: str) -> CreateStudy:
    """A study file: `job` with `command`, `space` as a list of dimensions or with rates, `goal`, and the rest."""
    import yaml

    try:
        fields = load_yaml(text, _loader(yaml.SafeLoader), _loader(yaml.CSafeLoader), "the study")
    except yaml.YAMLError as error:
        raise InvalidInput(f"the study is not YAML: {error}") from error
    except (ValueError, OverflowError) as error:  # a number or a date that no machine can hold
        raise InvalidInput(f"the study holds a value that cannot be read: {str(error)[:200]}") from None
    check_unicode(fields, "the study")
    if not isinstance(fields, dict):
        raise InvalidInput("a study file has the fields name, job, space and goal")
    missing = [name for name in ("name", "job", "space", "goal") if not fields.get(name)]
    if missing:
        raise InvalidInput(f"the study lacks {', '.join(missing)}; it has name, job, space and goal")
    if isinstance(fields["space"], list):
        fields["space"] = {"dimensions": fields["space"]}
    if isinstance(fields["job"], Mapping):
        fields["job"] = job_fields(dict(fields["job"]))
    try:
        return CreateStudy.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidInput(f"the study is not valid at {place}: {first['msg']}") from error


def _loader(safe: Any) -> Any:
    """YAML 1.1 takes 1e-4, which everybody writes, for text; YAML 1.2 and we take it for a number."""
    made: Any = type("Loader", (safe,), {})
    number = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)[eE][-+]?\d+$")
    made.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+.0123456789"))
    return made
