"""Jobs: what is asked for, how far they are, what they print and measure."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated, Any, Literal

from easel.declare.resources import MAX_GPUS, MAX_MEMORY_MB, MAX_VCPU
from easel.declare.resources import Resources as DeclaredResources
from easel.wire.fields import Label, Slug, Tags
from easel.wire.model import Answer, Field, Json, Moment, Request

if TYPE_CHECKING:
    from easel.declare import job as declare

Plain = Annotated[str, Field(max_length=10_000, pattern=r"^[^\x00]*$")]
Reference = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1000,
        pattern=r"^[^\x00]+$",
        description="A file set, `name` or `name:version`",
        examples=["shakespeare.works:5"],
    ),
]


class Command(Request):
    kind: Literal["command"] = "command"
    argv: Annotated[
        list[Annotated[str, Field(max_length=100_000)]],
        Field(min_length=1, max_length=2000, examples=[["python", "train.py", "--epochs", "5"]]),
    ]


class EntryPoint(Request):
    """A function of your own code, called with these arguments."""

    kind: Literal["entry"]
    target: Annotated[str, Field(max_length=200, examples=["train:main"])]
    arguments: Json = Field(default_factory=dict)


class Notebook(Request):
    """A notebook of your own code, run cell by cell."""

    kind: Literal["notebook"]
    path: Annotated[str, Field(max_length=1000, examples=["train.ipynb"])]
    parameters: Json = Field(
        default_factory=dict, description="Override what the cell tagged `parameters` assigns"
    )
    first: Annotated[int, Field(ge=1, le=100_000, description="The code cell to begin with")] = 1


class Resources(Request):
    vcpu: Annotated[float, Field(ge=0.5, le=MAX_VCPU, multiple_of=0.5)] = 1.0
    memory_mb: Annotated[int, Field(ge=16, le=MAX_MEMORY_MB)] = 1024
    gpus: Annotated[float, Field(ge=0, le=MAX_GPUS, description="Whole, or a share of one below 1")] = 0.0


class Environment(Request):
    python: Annotated[
        Plain | None,
        Field(description="A version (3.12), or an interpreter or virtual environment on the device"),
    ] = None
    image: Annotated[Plain | None, Field(description="A container image, where devices run images")] = None
    variables: dict[str, Plain] = Field(default_factory=dict, max_length=500)
    secrets: dict[str, Slug] = Field(
        default_factory=dict, max_length=100, description="Variable to the name of a secret of the project"
    )
    network: Annotated[bool, Field(description="Whether the command may use the network")] = False
    requirements: Annotated[
        Plain | None,
        Field(description="A file of the code that names packages: requirements.txt, environment.yml"),
    ] = None


class CodeOrigin(Request):
    """Where the code came from: for the record."""

    folder: Plain = ""
    commit: Annotated[str, Field(max_length=64, pattern=r"^[0-9a-f]*$")] = ""
    branch: Plain = ""
    remote: Plain = ""
    changed: Annotated[bool, Field(description="Whether something was not committed")] = False
    executable: Annotated[
        list[Annotated[str, Field(max_length=1000)]],
        Field(max_length=1000, description="Paths of the code that are programs"),
    ] = Field(default_factory=list)


class RetryRule(Request):
    lost: Annotated[int, Field(ge=0, le=100, description="Repeats after a fault of the platform")] = 1
    failed: Annotated[int, Field(ge=0, le=100, description="Repeats after a failure of the job")] = 0


class JobFields(Request):
    """What to run and on what."""

    name: Label = "job"
    run: Annotated[Command | EntryPoint | Notebook, Field(discriminator="kind")]
    code: Annotated[Reference | None, Field(description="A file set, or one file such as /wordcount.zip")] = (
        None
    )
    input: Reference | None = None
    output_folder: Annotated[str, Field(min_length=1, max_length=500)] = "output"
    output_set: Annotated[Slug | None, Field(description="File set that the output becomes")] = None
    environment: Environment = Field(default_factory=Environment)
    resources: Resources = Field(default_factory=Resources)
    retry: RetryRule = Field(default_factory=RetryRule)
    time_limit_s: Annotated[float | None, Field(gt=0, le=366 * 86400)] = None
    tags: dict[Label, float | Plain] = Field(default_factory=dict, max_length=100)
    description: Plain = ""
    workers: Annotated[
        int, Field(ge=1, le=256, description="Devices that run it side by side, each with these resources")
    ] = 1
    wants: Annotated[
        dict[Label, Label], Field(max_length=16, description="Labels that its device must have: gpu=A100")
    ] = Field(default_factory=dict)
    origin: CodeOrigin | None = None
    port: Annotated[
        int | None,
        Field(ge=1024, le=65535, description="Of an interactive session: where its program serves pages"),
    ] = None
    preemptible: Annotated[
        bool,
        Field(
            description="It may be stopped for somebody with a better claim, and is tried again with what it left in"
            " EASEL_CHECKPOINT"
        ),
    ] = False

    def spec(self) -> declare.JobSpec:
        from easel.declare import job as declare

        run: declare.Runnable
        if isinstance(self.run, Command):
            run = declare.Command(tuple(self.run.argv))
        elif isinstance(self.run, Notebook):
            run = declare.Notebook(self.run.path, self.run.parameters, self.run.first)
        else:
            run = declare.EntryPoint(self.run.target, self.run.arguments)
        return declare.JobSpec(
            name=self.name,
            run=run,
            code=self.code,
            input=self.input,
            output_folder=self.output_folder,
            output_set=self.output_set,
            environment=declare.Environment(**self.environment.model_dump()),
            resources=DeclaredResources(**self.resources.model_dump()),
            retry=declare.RetryRule(**self.retry.model_dump()),
            time_limit_s=self.time_limit_s,
            tags=dict(self.tags),
            description=self.description,
            workers=self.workers,
            wants=dict(self.wants),
            origin=_origin(self.origin),
            port=self.port,
            preemptible=self.preemptible,
        )


def _origin(given: CodeOrigin | None) -> declare.CodeOrigin | None:
    if given is None:
        return None
    from easel.declare import job as declare

    values = given.model_dump()
    return declare.CodeOrigin(**values | {"executable": tuple(values["executable"])})


class SubmitJob(JobFields):
    code_digest: Annotated[
        str | None,
        Field(
            pattern=r"^[0-9a-f]{64}$",
            description="The digest of the set that `code` names; where that holds something else, it is not found",
            examples=["0" * 64],
        ),
    ] = None
    after: Annotated[
        list[Annotated[str, Field(max_length=60)]],
        Field(max_length=1000, description="Jobs that must finish first; where one fails, this one does"),
    ] = Field(default_factory=list)


def job_fields(fields: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields of a YAML file as the API takes them: what is to be done becomes `run`.

    That is `command` (text or list), `entry` and `arguments`, or `notebook` and `parameters`.
    """
    if "command" in fields:
        command = fields.pop("command")
        argv = shlex.split(command) if isinstance(command, str) else list(command)
        fields["run"] = {"kind": "command", "argv": [str(part) for part in argv]}
    if "entry" in fields:
        target, arguments = fields.pop("entry"), fields.pop("arguments", {})
        fields["run"] = {"kind": "entry", "target": target, "arguments": arguments}
    if "notebook" in fields:
        path, parameters = fields.pop("notebook"), fields.pop("parameters", {})
        fields["run"] = {"kind": "notebook", "path": path, "parameters": parameters}
    return fields


class Usage(Answer):
    cpu_seconds: float
    peak_memory_mb: float
    wall_seconds: float
    peak_gpu_memory_mb: float = 0.0


class Job(Answer):
    id: str
    name: str
    state: Annotated[
        str,
        Field(description="queued, launching, downloading, running, uploading, finished, failed or killed"),
    ]
    user_id: str
    kind: str
    spec: Json
    attempt: int
    kill_requested: bool
    exit_code: int | None
    end_reason: Annotated[
        str | None,
        Field(description="Why it ended, for programs: exit-code, time-limit, killed, device-lost, …"),
    ] = None
    reason: str | None
    result: Json | None
    usage: Usage | None
    progress: float | None
    code_set: Annotated[str | None, Field(description="The very version of the code that it runs")] = None
    input_set: str | None
    output_set: str | None
    parent_id: str | None
    pipeline_id: str | None
    device: str | None
    waiting: Annotated[
        str | None, Field(description="Why it has not begun; told of one job, not in lists")
    ] = None
    user: Annotated[str | None, Field(description="Its owner's name; told in lists and of one job")] = None
    last_line: Annotated[
        str | None, Field(description="The last line of a failed job's log; told of one job, not in lists")
    ] = None
    submitted_at: Moment
    started_at: Moment | None
    ended_at: Moment | None

    @property
    def over(self) -> bool:
        return self.state in ("finished", "failed", "killed")


class JobRow(Answer):
    """A job as a row of a table. Its tags hold what it measured: `loss`, `loss_min`, `loss_max`."""

    job: Job
    tags: Tags
    cost: Annotated[float | None, Field(description="What it was billed so far")]
    currency: str | None


class OfApp(Answer):
    """The job is a trial of this app."""

    app: str
    candidate: str
    quality: float | None
    model: str | None


class OfStudy(Answer):
    """The job is a point of this study."""

    study: str
    number: int
    point: Json


class OfPipeline(Answer):
    """The job is a step of this pipeline, which `pipeline` identifies."""

    pipeline: str
    name: str
    step: str


class JobLinks(Answer):
    """What the job was run for."""

    apps: list[OfApp]
    study: OfStudy | None
    pipeline: OfPipeline | None
    profile: str | None


class LockedEnvironment(Answer):
    """The packages that a job ran with: chosen once for its requirements file, the same on every machine since."""

    name: Annotated[str, Field(description="The hash of what was asked for and what it was locked to")]
    python: str
    packages: Annotated[list[str], Field(description="As a requirements file: name==version")]
    job_id: Annotated[str, Field(description="The job for which they were chosen")]
    made_at: Moment


class KillJob(Request):
    reason: Annotated[str, Field(max_length=500, pattern=r"^[^\x00]*$")] = ""


class RerunJob(Request):
    input: Annotated[Reference | None, Field(description="Another input; without it the very same one")] = (
        None
    )
    from_cell: Annotated[
        int | None, Field(ge=1, le=100_000, description="Of a notebook: the code cell to begin with")
    ] = None


class NotebookCell(Answer):
    """One cell as it stands. `body` is in the notebook format; its outputs are the job's words: trust nothing."""

    number: int
    state: Annotated[str, Field(description="waiting, running, done, failed or skipped")]
    at: Moment | None
    body: Json


class ExecutedNotebook(Answer):
    """A notebook as far as a job has run it. `cells` are those that changed after `since`; `next` is where to go on."""

    path: str
    attempt: int
    total: int
    next: int
    over: bool
    cells: list[NotebookCell]


class JobAttempt(Answer):
    """One attempt that is over. `seconds` is how long it held a device, by its own journal: what is billed."""

    attempt: int
    device: str | None
    started_at: Moment | None
    ended_at: Moment
    seconds: float
    state: Annotated[str, Field(description="What the job was then; queued where it was tried again")]
    end_reason: str | None
    reason: str | None
    exit_code: int | None
    log_lines: int


class JobAttempts(Answer):
    items: list[JobAttempt]


class LogLine(Answer):
    number: int
    stream: str
    at: Moment
    text: str


class LogPage(Answer):
    """`next` is where to go on; the log is complete when the job is over and no lines come."""

    lines: list[LogLine]
    next: int
    attempt: int
    over: bool


class Series(Answer):
    name: str
    points: int


class SeriesList(Answer):
    items: list[Series]


class Point(Answer):
    step: int
    value: float | None
    text: Annotated[str | None, Field(description="nan, inf or -inf where the value is no number")]
    at: Moment


class SeriesPoints(Answer):
    """At most as many points as asked for; of dropped ones the extremes stay."""

    name: str
    total: int
    points: list[Point]


class JobCounts(Answer):
    """How many jobs of the project are in each state, and in all."""

    total: int
    states: dict[str, int]
