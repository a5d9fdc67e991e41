"""Apps, the examples they were fed, and their trials."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
)

from easel.store.schema.metadata import BigSerial, Moment, metadata

apps = Table(
    "apps",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("project_id", String(40), nullable=False),
    Column("user_id", String(40), nullable=False),
    Column("name", String(64), nullable=False),
    Column("program", Text, nullable=False),
    Column("metric", Text),
    Column("created_at", Moment, nullable=False),
    # The newest version of the file set that holds the examples; none before the first feed.
    Column("examples_set", Text),
    # What the candidates and their costs depend on, as of the newest feed.
    Column("summary", JSON),
    # The model that answers whatever is found later; none: the best so far does.
    Column("pinned", Text),
    # The newest job that looked for wrong labels.
    Column("suspects_job", String(40)),
    # Learning rates are tried inside a trial, as the paper does, in place of candidates of their own.
    Column("rates_inside", Boolean, nullable=False, server_default=false()),
    # The file of word vectors among its files, and how many numbers a word has.
    Column("vectors", Text),
    Column("vector_size", Integer, nullable=False, server_default="0"),
    Column("more_until", Moment),
    # The sum of the digests of the examples that are switched on: equal for apps with the same examples.
    Column("examples_key", String(32)),
    # How its columns write numbers and dates, as far as what was fed tells.
    Column("styles", JSON),
    UniqueConstraint("project_id", "name"),
)

# The pair itself is in the lake; here is what a query needs: its name, its fold for good, and whether it counts.
app_examples = Table(
    "app_examples",
    metadata,
    Column("seq", BigSerial, primary_key=True, autoincrement=True),
    Column("app_id", String(40), nullable=False),
    Column("digest", String(32), nullable=False),
    Column("stratum", Text, nullable=False),
    Column("fold", Integer, nullable=False),
    Column("on", Boolean, nullable=False),
    Column("fed_at", Moment, nullable=False),
    # What a list shows of the input and of the output.
    Column("preview", Text),
    Column("answer", Text),
    # The line that holds the pair: a file of the lake and a range of its bytes.
    Column("shard", Text),
    Column("start", BigInteger),
    Column("length", BigInteger),
    # Alike for inputs that are nearly the same, which share a fold; none where there is too little to tell.
    Column("near", String(32)),
    UniqueConstraint("app_id", "digest"),
    Index("app_examples_near", "app_id", "near"),
)

# Every switch of examples, so that each can be undone.
app_refinements = Table(
    "app_refinements",
    metadata,
    Column("seq", BigSerial, primary_key=True, autoincrement=True),
    Column("app_id", String(40), nullable=False),
    Column("actor", String(40), nullable=False),
    Column("on", Boolean, nullable=False),
    Column("digests", JSON, nullable=False),
    Column("undone", Boolean, nullable=False),
    Column("at", Moment, nullable=False),
)

# A decision of the policy and, through its job, what came of it. One job may be the trial of several apps.
app_trials = Table(
    "app_trials",
    metadata,
    Column("seq", BigSerial, primary_key=True, autoincrement=True),
    Column("app_id", String(40), nullable=False),
    Column("job_id", String(40), nullable=False),
    Column("candidate", JSON, nullable=False),
    Column("decision", JSON, nullable=False),
    Column("started_at", Moment, nullable=False),
    Column("examples", Integer, nullable=False),
    Column("ended", Boolean, nullable=False),
    Column("quality", Float(53)),
    # One standard deviation of the quality by sampling, and what always giving the same answer scores.
    Column("error", Float(53)),
    Column("baseline", Float(53)),
    # By how much the best of those that this trial combined scored too high, being chosen by the same examples.
    Column("luck", Float(53)),
    Column("seconds", Float(53)),
    Column("model_set", Text),
    Column("ended_at", Moment),
    # The candidate's name and the score for which the policy chose it: read without the JSON at every start.
    Column("name", Text, nullable=False, server_default=""),
    Column("score", Float(53)),
    Column("spent_micros", BigInteger),
    # Among how many apps its cost was divided.
    Column("shared", Integer, nullable=False, server_default="1"),
    # How far its slice brought the trial, and its device's time for a second of the reference device.
    Column("share", Float(53), nullable=False, server_default="1"),
    Column("scale", Float(53), nullable=False, server_default="1"),
    UniqueConstraint("job_id", "app_id"),
    Index("ix_app_trials_app_id", "app_id"),
)

# The newest job that looked into a model (`kind` model, `subject` its set) or into the examples (checks).
app_reports = Table(
    "app_reports",
    metadata,
    Column("app_id", String(40), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("subject", String(400), primary_key=True),
    Column("job_id", String(40), nullable=False),
    Column("at", Moment, nullable=False),
)
