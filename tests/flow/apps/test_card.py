"""A model card says what is known, what is not, and nothing that people wrote becomes markup."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from easel.flow.apps.card import CardFacts, card_blocks
from easel.flow.words.findings import findings_told
from easel.flow.words.pages import Block, Paragraph, TableBlock, as_html, as_markdown
from easel.ids import AppId, JobId, ProjectId, UserId
from easel.records.app import App, AppTrial, ExampleCounts

AT = datetime(2026, 11, 17, tzinfo=UTC)
APP = App(
    AppId("app_1"), ProjectId("prj_1"), UserId("usr_1"), "shop", "{input: …}", None, AT, "shop-examples:2", {}
)
TRIAL = AppTrial(
    AppId("app_1"),
    JobId("job_1"),
    {"family": "svm", "settings": {}, "cost_s": 1.0, "promise": 0.5},
    {},
    AT,
    120,
    True,
    0.93,
    1.0,
    "shop-model:3",
    AT,
    error=0.02,
    baseline=0.5,
)
FINDINGS = {
    "judged_by": "svm",
    "metric": "accuracy",
    "held_out": 120,
    "score": 0.91,
    "importance": [
        {"column": "size", "drop": 0.4, "deviation": 0.01},
        {"column": "noise", "drop": 0.0, "deviation": 0.01},
    ],
    "columns_not_looked_at": 0,
    "contributions": [
        {"column": "size", "mean": 1.25, "direction": 0.97},
        {"column": "town", "mean": 0.5, "direction": None},
    ],
    "contributions_of": "log-odds of yes",
    "no_contributions": None,
    "weak_groups": [{"where": "town = Basel", "examples": 40, "error": 0.5, "elsewhere": 0.02}],
    "worst_examples": [],
    "error_kind": "share of wrong answers",
    "learning_curve": [{"examples": 60, "error": 0.2}],
    "twice_the_examples": {"gain": 0.013, "low": 0.002, "high": 0.025},
    "calibration_error": 0.031,
    "classes": ["no", "yes"],
    "confusion": [[50, 5], [6, 59]],
}
FACTS = CardFacts(
    APP,
    TRIAL,
    "svm",
    "accuracy",
    ExampleCounts({"no": 60, "yes": 60}, 4),
    {"scores": {"f1": 0.9}},
    [],
    FINDINGS,
)


def test_findings_are_told_in_sentences_with_their_uncertainty() -> None:
    told = " ".join(findings_told(FINDINGS))
    assert "What matters: size (0.400 less without it). 1 of 2 columns" in told
    assert "town = Basel (50% wrong of 40, 2% wrong elsewhere)" in told
    assert "with twice the examples about 1.3 points more (90 %: 0.2 to 2.5)" in told
    assert "off by 0.031" in told
    assert "(exact Shapley values, log-odds of yes): size (1.25, larger adds), town (0.5)." in told
    plain = {**FINDINGS, "contributions": [], "no_contributions": "svm has no exact Shapley values"}
    assert "What moves single answers: svm has no exact Shapley values." in findings_told(plain)
    early = {key: value for key, value in FINDINGS.items() if "contributions" not in key}
    assert not any("Shapley" in sentence for sentence in findings_told(early)), (
        "an earlier release's findings"
    )
    flat = {**FINDINGS, "twice_the_examples": {"gain": 0.0, "low": 0.0, "high": 0.001}}
    assert any("would hardly" in sentence for sentence in findings_told(flat))


def test_a_card_holds_the_score_its_interval_the_data_and_the_findings() -> None:
    text = as_markdown(card_blocks(FACTS))
    for words in (
        "accuracy 0.9300",
        "between 0.883 and 0.977",
        "shop-model:3",
        "| no | 60 | 50.0% |",
        "| f1 | 0.9000 |",
        "| size | 1.2500 | +0.97 |",
    ):
        assert words in text
    assert "| no | 50 | 5 |" in text
    assert "luck was not measured" in text
    lucky = as_markdown(card_blocks(replace(FACTS, luck=0.012)))
    assert "accuracy 0.9180" in lucky
    assert "0.9300 was measured, of which 0.012 is taken off as the luck of that choice" in lucky
    mixed = as_markdown(card_blocks(replace(FACTS, luck=0.0, trial=replace(TRIAL, luck=0.012))))
    assert "nothing is taken off its score" in mixed
    sure = as_markdown(card_blocks(replace(FACTS, trial=replace(TRIAL, quality=0.99, error=0.02))))
    assert "between 0.943 and 1.000" in sure, "an accuracy is never said to be above 1"
    page = as_html("Model card: shop", card_blocks(FACTS))
    assert page.startswith("<!doctype html>")
    assert "<td>town = Basel</td>" in page


def test_what_was_not_looked_into_is_said_to_be_missing() -> None:
    assert "easel apps report shop" in as_markdown(card_blocks(replace(FACTS, findings=None)))


def test_what_people_wrote_does_not_become_markup() -> None:
    nasty = "<script>alert(1)</script> [x](javascript:y) | `z` *b*"
    blocks: list[Block] = [Paragraph(nasty), TableBlock(("a",), [(nasty,)])]
    assert "<script>" not in as_html(nasty, blocks)
    made = as_markdown(blocks)
    assert "<script>" not in made
    assert "[x](" not in made
    assert made.splitlines()[-1].count("|") - made.splitlines()[-1].count("\\|") == 2
