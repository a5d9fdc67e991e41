"""What the live pool believes of an app's candidates: from public data, from other apps, from promises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from easel.flow.apps.beliefs import PromiseBook
from easel.flow.apps.declare import declare_app
from easel.flow.apps.feed import feed
from easel.flow.apps.learned_book import NEAREST, LearnedBook, _learned, nearest_sets, size_properties
from easel.flow.apps.ready import candidates_of
from easel.ids import AppId
from easel.match.candidate import Candidate
from easel.match.summary import DataSummary
from easel.records.tenant import PastTrial
from easel.schedule.experience import DataProperties, Experience, KnownSet, Outcome
from easel.store import app_trials, apps
from easel.testing.engine import EngineUnderTest
from easel.testing.pool import PoolUnderTest

CANDIDATES = (Candidate("svm"), Candidate("linear"), Candidate("tree"))
SMALL = DataSummary(100, 4, classes=2)
NONE = Experience()


def past(app: str, **scores: float | None) -> list[PastTrial]:
    return [
        PastTrial(k, AppId(app), "accuracy", name, name, 0.5, 1.0, quality, 1.0, None, 100)
        for k, (name, quality) in enumerate(scores.items())
    ]


def public(n: int, **scores: float) -> Experience:
    rng = np.random.default_rng(0)
    levels = 0.05 * rng.standard_normal(n)
    return Experience(
        tuple(
            KnownSet(
                f"set{i}",
                f"set{i}",
                "table classification",
                "made up",
                DataProperties(100.0 + i, 4, 2),
                {
                    name: Outcome(score + levels[i] + 0.01 * rng.standard_normal(), 1.0)
                    for name, score in scores.items()
                },
            )
            for i, level in enumerate(levels.tolist())
        )
    )


def means(book: LearnedBook, app: str = "mine", summary: DataSummary = SMALL) -> np.ndarray:
    return book.prior(app, CANDIDATES, summary).belief().mean


def test_without_any_experience_the_promises_rule() -> None:
    promised = PromiseBook(()).prior("mine", CANDIDATES, SMALL).mean
    assert means(LearnedBook((), NONE)) == pytest.approx(promised, abs=0.05)


def test_public_data_say_which_candidates_are_good() -> None:
    svm, linear, tree = means(LearnedBook((), public(20, svm=0.9, linear=0.6, tree=0.75)))
    assert svm == pytest.approx(0.9, abs=0.03)
    assert svm > tree > linear


def test_sets_with_numbers_to_foretell_say_nothing_about_classes() -> None:
    book = LearnedBook((), public(20, svm=0.9, linear=0.6, tree=0.75))
    numbers = means(book, summary=DataSummary(100, 4, classes=0))
    assert numbers == pytest.approx(means(LearnedBook((), NONE)), abs=1e-9)


def test_what_other_apps_found_counts_and_what_the_app_found_itself_does_not() -> None:
    others = [one for k in range(6) for one in past(f"app_{k}", svm=0.9, linear=0.5)]
    svm, linear, _ = means(LearnedBook(others, NONE))
    assert svm > linear + 0.1
    alone = LearnedBook(past("mine", svm=0.9, linear=0.5), NONE)
    assert means(alone) == pytest.approx(means(LearnedBook((), NONE)), abs=1e-9)


def test_odd_histories_change_nothing() -> None:
    odd = [*past("a", gone=0.9, older=float("nan"), svm=None), *past("b", svm=0.7)]
    assert means(LearnedBook(odd, NONE)) == pytest.approx(means(LearnedBook((), NONE)), abs=1e-9)


def test_the_same_history_gives_the_same_prior() -> None:
    others = [one for k in range(6) for one in past(f"app_{k}", svm=0.9, linear=0.5)]
    first = LearnedBook(others).prior("mine", CANDIDATES, SMALL)
    _learned.cache_clear()
    again = LearnedBook(others).prior("mine", CANDIDATES, SMALL)
    assert first.mean.tolist() == again.mean.tolist()
    assert first.cov.tolist() == again.cov.tolist()


def test_the_live_pool_begins_with_what_the_package_has_learned(engine: EngineUnderTest) -> None:
    ana = engine.caller()
    with engine.store.write() as tx:
        declare_app(tx, ana, "flowers", "input: {size: number, width: number}\noutput: [no, yes]")
    sizes = np.random.default_rng(0).normal(size=(40, 2))
    pairs = [({"size": a, "width": b}, "yes" if a > b else "no") for a, b in sizes.tolist()]
    feed(engine.lake, ana, "flowers", pairs)
    pool = PoolUnderTest(engine.lake)
    pool.device()
    assert len(pool.turn()) == 1
    with engine.store.read() as tx:
        app = apps.find(tx, ana.project_id, "flowers")
        (trial,) = app_trials.trials(tx, app.id)
    candidates = candidates_of(app)
    assert app.summary is not None
    believed = LearnedBook(()).prior(app.id, candidates, DataSummary(**app.summary)).belief().mean
    chosen = [one.name for one in candidates].index(trial.decision["candidate"])
    assert trial.decision["reasons"]["mean"] == pytest.approx(believed[chosen])
    assert abs(believed[chosen] - candidates[chosen].promise) > 1e-3


def test_an_app_is_told_by_public_sets_of_its_own_size() -> None:
    def sets(rows: float, **scores: float) -> tuple[KnownSet, ...]:
        return tuple(
            replace(one, name=f"{one.name}-{rows}", properties=DataProperties(rows + i, 4, 2))
            for i, one in enumerate(public(NEAREST, **scores).sets)
        )

    small, large = (
        sets(100.0, svm=0.9, linear=0.8, tree=0.7),
        sets(20_000.0, svm=0.7, linear=0.8, tree=0.9),
    )
    book = LearnedBook((), Experience((*small, *large)))
    assert means(book, summary=DataSummary(130, 4, classes=2)).argmax() == 0
    assert means(book, summary=DataSummary(15_000, 4, classes=2)).argmax() == 2
    near = nearest_sets(Experience((*small, *large)), size_properties(DataSummary(130, 4, classes=2)))
    assert near.sets == small
