"""Tenants with their terms, the count of starts, what every trial came to, and trials that several apps share."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

BigSerial = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    op.create_table(
        "tenants",
        sa.Column("id", sa.String(40), nullable=False),
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("weight", sa.Float(53), nullable=False, server_default="1"),
        sa.Column("deadline", sa.BigInteger),
        sa.Column("budget_micros", sa.BigInteger),
        sa.Column("until", sa.Float(53)),
        sa.Column("paused_at", sa.BigInteger),
        sa.Column("paused_by", sa.String(40)),
        sa.Column("asked", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("served_at", sa.Integer),
        sa.PrimaryKeyConstraint("id", name="pk_tenants"),
    )
    op.create_table(
        "pool_turns",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=False),
        sa.Column("turn", sa.Integer, nullable=False),
        sa.Column("as_of", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pool_turns"),
    )
    op.create_table(
        "tenant_limits",
        sa.Column("project_id", sa.String(40), nullable=False),
        sa.Column("max_weight", sa.Float(53)),
        sa.Column("max_budget_micros", sa.BigInteger),
        sa.PrimaryKeyConstraint("project_id", name="pk_tenant_limits"),
    )
    op.create_table(
        "trial_history",
        sa.Column("seq", BigSerial, autoincrement=True, nullable=False),
        sa.Column("app_id", sa.String(40), nullable=False),
        sa.Column("metric", sa.String(40), nullable=False),
        sa.Column("candidate", sa.Text, nullable=False),
        sa.Column("family", sa.String(60), nullable=False),
        sa.Column("promise", sa.Float(53), nullable=False),
        sa.Column("guess_s", sa.Float(53), nullable=False),
        sa.Column("quality", sa.Float(53)),
        sa.Column("seconds", sa.Float(53), nullable=False),
        sa.Column("peak_mb", sa.Float(53)),
        sa.Column("examples", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_trial_history"),
        sqlite_autoincrement=True,
    )
    op.add_column("apps", sa.Column("examples_key", sa.String(32)))
    _allow_shared_trials()
    op.add_column("app_trials", sa.Column("name", sa.Text, nullable=False, server_default=""))
    op.add_column("app_trials", sa.Column("score", sa.Float(53)))
    op.add_column("app_trials", sa.Column("spent_micros", sa.BigInteger))
    op.add_column("app_trials", sa.Column("shared", sa.Integer, nullable=False, server_default="1"))
    _fill(op.get_bind())


def _allow_shared_trials() -> None:
    """One job may now stand for a trial of several apps: unique is the pair, not the job."""
    bind = op.get_bind()
    if bind.dialect.name == "postgresql":
        op.drop_constraint("uq_app_trials_job_id", "app_trials", type_="unique")
        op.create_unique_constraint("uq_app_trials_job_id_app_id", "app_trials", ["job_id", "app_id"])
        return
    op.drop_index("ix_app_trials_app_id", "app_trials")
    op.rename_table("app_trials", "app_trials_before")
    op.create_table(
        "app_trials",
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("app_id", sa.String(40), nullable=False),
        sa.Column("job_id", sa.String(40), nullable=False),
        sa.Column("candidate", sa.JSON, nullable=False),
        sa.Column("decision", sa.JSON, nullable=False),
        sa.Column("started_at", sa.BigInteger, nullable=False),
        sa.Column("examples", sa.Integer, nullable=False),
        sa.Column("ended", sa.Boolean, nullable=False),
        sa.Column("quality", sa.Float(53)),
        sa.Column("seconds", sa.Float(53)),
        sa.Column("model_set", sa.Text),
        sa.Column("ended_at", sa.BigInteger),
        sa.UniqueConstraint("job_id", "app_id", name="uq_app_trials_job_id_app_id"),
    )
    op.execute(
        "INSERT INTO app_trials (seq, app_id, job_id, candidate, decision, started_at, examples, ended, quality, "
        "seconds, model_set, ended_at) SELECT seq, app_id, job_id, candidate, decision, started_at, examples, ended, "
        "quality, seconds, model_set, ended_at FROM app_trials_before"
    )
    op.drop_table("app_trials_before")
    op.create_index("ix_app_trials_app_id", "app_trials", ["app_id"])


def _fill(bind: sa.Connection) -> None:
    """Names and scores of earlier trials, and their results as history, in the order in which they ended."""
    trials = sa.table(
        "app_trials", *(sa.column(name) for name in ("seq", "name", "score", "candidate", "decision"))
    )
    rows = bind.execute(
        sa.text(
            "SELECT t.seq, t.app_id, t.candidate, t.decision, t.ended, t.quality, t.seconds, t.examples, "
            "t.ended_at, t.started_at, a.metric FROM app_trials t JOIN apps a ON a.id = t.app_id ORDER BY t.seq"
        )
    ).all()
    ended = []
    for row in rows:
        candidate, decision = _json(row.candidate), _json(row.decision)
        name = _name(candidate)
        score = float(decision.get("reasons", {}).get("acquisition", 0.0))
        bind.execute(sa.update(trials).where(trials.c.seq == row.seq).values(name=name, score=score))
        if row.ended:
            ended.append((row.ended_at or row.started_at, row.seq, row, candidate, name))
    history = sa.table(
        "trial_history",
        *(
            sa.column(name)
            for name in (
                "app_id",
                "metric",
                "candidate",
                "family",
                "promise",
                "guess_s",
                "quality",
                "seconds",
                "examples",
            )
        ),
    )
    for _, _, row, candidate, name in sorted(ended, key=lambda one: one[:2]):
        bind.execute(
            sa.insert(history).values(
                app_id=row.app_id,
                metric=row.metric or "",
                candidate=name,
                family=candidate["family"],
                promise=float(candidate.get("promise", 0.5)),
                guess_s=float(candidate.get("cost_s", 1.0)),
                quality=row.quality,
                seconds=row.seconds or 0.0,
                examples=row.examples,
            )
        )


def _json(value: Any) -> dict[str, Any]:
    return dict(json.loads(value) if isinstance(value, str) else value)


def _name(candidate: dict[str, Any]) -> str:
    """As `Candidate.name` said when this was written."""
    inside = ", ".join(
        f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in sorted(candidate["settings"].items())
    )
    return f"{candidate['family']}({inside})" if inside else str(candidate["family"])
