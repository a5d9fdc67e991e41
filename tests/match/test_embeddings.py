"""Word vectors from a file: read line by line, given to a network, and good for words that no example holds."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.match import worlds

from easel.errors import InvalidInput
from easel.match.candidate import Candidate
from easel.match.embeddings import read_vectors, some_vectors, vector_size
from easel.match.examples import Single
from easel.match.model import load_model, present
from easel.match.propose import Choices, propose_candidates
from easel.match.split import assign_folds
from easel.match.summary import strata, summarise
from easel.match.train import Conditions, train

GLOVE = """the 0.0 0.1 0.0 0.1
film 0.1 0.0 0.1 0.0
was 0.0 0.0 0.1 0.1
a 0.1 0.1 0.0 0.0
fine 1.0 0.1 -1.0 0.0
lovely 1.1 0.0 -0.9 0.1
great 0.9 0.0 -1.1 0.0
awful -1.0 0.0 1.0 0.1
dull -1.1 0.1 0.9 0.0
poor -0.9 0.0 1.1 0.0
superb 1.0 0.0 -1.0 0.0
dreadful -1.0 0.1 1.0 0.0
"""
CANDIDATE = Candidate("text_network", (("lr", 3e-3), ("vectors", 4), ("width", 1.0)))


def test_words_that_no_example_holds_are_understood_by_their_vectors(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text(GLOVE)
    program, examples = worlds.texts()
    folds = [fold % 2 for fold in assign_folds(strata(program, examples))]
    conditions = Conditions(0, 600.0, time.monotonic, epochs=30, embeddings=tmp_path / "glove.txt")
    model = train(CANDIDATE, program, examples, folds, conditions).model
    model.save(tmp_path / "model")
    asked = [Single(("the film was superb superb",)), Single(("the film was dreadful dreadful",))]
    for one in (model, load_model(tmp_path / "model")):
        assert [answer["label"] for answer in present(one, one.predict(asked))] == ["good", "bad"]


def test_candidates_that_start_from_given_vectors_are_proposed_where_there_are_some() -> None:
    program, examples = worlds.texts()
    summary = summarise(program, examples)
    plain = {c.name for c in propose_candidates(program, summary)}
    given = {c.name for c in propose_candidates(program, summary, Choices(vectors=50))}
    assert given - plain == {"text_network(lr=0.003, vectors=50, width=1)"}


def test_a_candidate_that_needs_vectors_says_so() -> None:
    program, examples = worlds.texts(8)
    conditions = Conditions(0, 600.0, time.monotonic, epochs=1)
    with pytest.raises(InvalidInput, match="give the app a GloVe file"):
        train(CANDIDATE, program, examples, assign_folds(strata(program, examples)), conditions)


def test_wanted_words_come_first_and_then_the_files_own_until_there_are_enough(tmp_path: Path) -> None:
    (tmp_path / "glove.txt").write_text(GLOVE)
    assert list(some_vectors(tmp_path / "glove.txt", ["poor", "unknown"], 4)) == ["the", "film", "poor"]


def test_a_first_line_that_counts_words_and_numbers_is_left_out() -> None:
    assert list(read_vectors([b"2 3\n", b"a 1 2 3\n", b"b 4 5 6\n"], "v")) == [
        ("a", [1, 2, 3]),
        ("b", [4, 5, 6]),
    ]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "holds no word vectors"),
        (b"only words here\n", "line 1: expected a word and its numbers"),
        (b"a 1 2\nb 1\n", "line 2: expected 2 numbers, found 1"),
        (b"a 1 nan\n", "line 1: expected 2 numbers"),
        (b"\xff\xfe\x00\n", "line 1: expected a word and its numbers"),
        (b"word\n", "expected 1 to 1,024 numbers, found 0"),
    ],
)
def test_a_file_that_holds_something_else_is_refused_with_its_line(data: bytes, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        vector_size(data.splitlines(), "v")
