"""card: a model on a page that can be handed to a colleague."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from easel.declare.counted import counted
from easel.flow.apps.best import luck_among, luck_of
from easel.flow.apps.infer import Models, served
from easel.flow.apps.look import candidate_name
from easel.flow.apps.ready import metric_of
from easel.flow.apps.report import findings_of
from easel.flow.lake.upload import Lake
from easel.flow.words.findings import findings_told
from easel.flow.words.pages import Block, CodeBlock, Heading, Paragraph, TableBlock, as_html, as_markdown
from easel.match.metrics import interval
from easel.records.app import App, AppTrial, ExampleCounts
from easel.records.identity import Caller
from easel.store import app_examples, app_trials, jobs

CardForm = Literal["md", "html"]
MOST_ROWS = 30
MOST_CLASSES = 12


@dataclass(frozen=True)
class CardFacts:
    """What a card is written from."""

    app: App
    trial: AppTrial
    candidate: str
    metric: str
    counts: ExampleCounts
    result: Mapping[str, Any]
    members: Sequence[Mapping[str, Any]]
    findings: Mapping[str, Any] | None
    luck: float | None = None
    """By how much the best of the candidates that were combined scores too high, being chosen by the same examples."""


def model_card(lake: Lake, models: Models, caller: Caller, name: str, form: CardForm) -> tuple[str, str]:
    """A file name and the text of the card of the model that answers now."""
    app, best = served(lake, caller, name)
    model_set = best.model_set or ""
    with lake.store.read() as tx:
        counts = app_examples.counts(tx, [app.id])[app.id]
        row = jobs.rows(tx, [best.job_id], lock=False).get(best.job_id)
        result = {} if row is None else jobs.job_of(row).result or {}
        luck = luck_of(best, luck_among(app_trials.trials(tx, app.id), counts.total_on))
    members = models.json(lake, caller, model_set, "members.json") or []
    found = findings_of(lake, models, caller, name).found
    facts = CardFacts(app, best, candidate_name(best), metric_of(app), counts, result, members, found, luck)
    title = f"Model card: {app.name}"
    blocks = card_blocks(facts)
    text = as_markdown(blocks) if form == "md" else as_html(title, blocks)
    return f"{model_set.replace(':', '-')}-card.{form}", text


def card_blocks(facts: CardFacts) -> list[Block]:
    """The card, from what is known; what was not looked into is said to be missing."""
    blocks: list[Block] = [
        Heading(f"Model card: {facts.app.name}", 1),
        Paragraph(
            f"{facts.candidate}, kept as {facts.trial.model_set}, "
            f"trained on {counted(facts.trial.examples or 0, 'example')}"
            + (f", {facts.trial.ended_at:%d %B %Y}." if facts.trial.ended_at else ".")
        ),
        Heading("What it does"),
        CodeBlock(facts.app.program),
        Heading("How good it is"),
        Paragraph(score_told(facts)),
    ]
    scores = facts.result.get("scores") or {}
    if scores:
        blocks.append(TableBlock(("metric", "validated"), [(name, f"{v:.4f}") for name, v in scores.items()]))
    blocks += [Heading("What it learned from"), *_data(facts)]
    if facts.members:
        rows = [(one["candidate"], f"{one['weight']:.2f}", one["model"]) for one in facts.members]
        blocks += [Heading("Its members"), TableBlock(("candidate", "weight", "model"), rows)]
    blocks.append(Heading("What matters, where it fails, what would help"))
    if facts.findings is None:
        blocks.append(Paragraph(f"Not looked into yet: easel apps report {facts.app.name}"))
    else:
        blocks += _found(facts.findings)
    blocks += [
        Heading("Use it"),
        CodeBlock(
            f"easel infer {facts.app.name} rows.csv -o answers.csv\n"
            f"easel score {facts.app.name} rows:1 -o predictions.csv"
        ),
    ]
    return blocks


def score_told(facts: CardFacts) -> str:
    """The validated score with its interval, its baseline, and how it was measured."""
    quality, error = facts.trial.quality or 0.0, facts.trial.error
    shown = quality - (facts.luck or 0.0)
    parts = [f"{facts.metric} {shown:.4f} on examples that were held out while it was validated"]
    if error:
        low, high = interval(facts.metric, shown, error)
        parts.append(f"(nine of ten tests on as many new examples fall between {low:.3f} and {high:.3f})")
    if facts.trial.baseline is not None:
        parts.append(f"; always giving the same answer scores {facts.trial.baseline:.4f}")
    rounds, validated = facts.result.get("rounds"), facts.result.get("validated_on")
    if validated:
        turns = f" in {counted(rounds, 'round')}" if rounds else ""
        parts.append(f"; validated on {counted(validated, 'example')}{turns}")
    parts.append(f". {luck_told(facts, quality)}")
    return " ".join(parts).replace(" ;", ";").replace(" .", ".")


def luck_told(facts: CardFacts, quality: float) -> str:
    """How the model was chosen, and what that adds to its score."""
    if facts.trial.luck is not None:
        return (
            "It mixes several candidates by weights chosen without the examples they are scored on, and it is "
            "preferred to single models that lead by no more than luck: nothing is taken off its score."
        )
    chosen = "It is the best of several candidates by this very score: "
    if facts.luck is None:
        return chosen + "how much of it is luck was not measured."
    return (
        f"{chosen}{quality:.4f} was measured, of which {facts.luck:.3f} is taken off as the luck of that choice "
        "(found by resampling the examples)."
    )


def _data(facts: CardFacts) -> list[Block]:
    told = f"{counted(facts.counts.total_on, 'example')} switched on, {facts.counts.off:,} off"
    blocks: list[Block] = [Paragraph(f"{told}; they are kept as {facts.app.examples_set}.")]
    classes = {name: count for name, count in facts.counts.on.items() if name}
    if classes:
        ordered = sorted(classes.items(), key=lambda one: -one[1])[:MOST_ROWS]
        rows = [(name, f"{count:,}", f"{count / facts.counts.total_on:.1%}") for name, count in ordered]
        blocks.append(TableBlock(("class", "examples", "share"), rows))
    return blocks


def _found(found: Mapping[str, Any]) -> list[Block]:
    blocks: list[Block] = [Paragraph(sentence) for sentence in findings_told(found)]
    if found["importance"]:
        rows = [
            (i["column"], f"{i['drop']:.4f} ± {i['deviation']:.4f}") for i in found["importance"][:MOST_ROWS]
        ]
        blocks.append(TableBlock(("column", "score lost without it"), rows))
    if found.get("contributions"):
        moved = [
            (
                one["column"],
                f"{one['mean']:.4f}",
                "" if one["direction"] is None else f"{one['direction']:+.2f}",
            )
            for one in found["contributions"][:MOST_ROWS]
        ]
        head = ("column", f"mean Shapley value ({found['contributions_of']})", "with larger numbers")
        blocks.append(TableBlock(head, moved))
    if found["weak_groups"]:
        groups = [
            (g["where"], g["examples"], f"{g['error']:.3f}", f"{g['elsewhere']:.3f}")
            for g in found["weak_groups"]
        ]
        blocks.append(TableBlock(("group", "held-out examples", found["error_kind"], "elsewhere"), groups))
    classes = found.get("classes") or []
    if 0 < len(classes) <= MOST_CLASSES:
        table = [(name, *row) for name, row in zip(classes, found["confusion"], strict=True)]
        blocks.append(TableBlock(("truth \\ answer", *classes), table))
    if found["learning_curve"]:
        points = [(f"{p['examples']:,}", f"{p['error']:.4f}") for p in found["learning_curve"]]
        blocks.append(TableBlock(("examples to learn from", found["error_kind"]), points))
    return blocks
