from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from easel.errors import InvalidInput
from easel.price.template import parse

PAPER = "python train.py --epoch {1,2,5} --batch-size {256,1024} --learning-rate 0.001"


def test_the_papers_template_gives_its_six_commands() -> None:
    template = parse(PAPER)
    assert template.names == ("epoch", "batch-size")
    commands = [template.command(cell) for cell in template.cells()]
    assert len(commands) == 6
    assert commands[0] == "python train.py --epoch 1 --batch-size 256 --learning-rate 0.001"
    assert commands[-1] == "python train.py --epoch 5 --batch-size 1024 --learning-rate 0.001"


def test_values_may_be_given_in_order_or_by_name_and_beyond_the_hints() -> None:
    template = parse(PAPER)
    wanted = "python train.py --epoch 100 --batch-size 256 --learning-rate 0.001"
    assert template.command([100, 256]) == wanted
    assert template.command({"batch-size": 256, "epoch": 100}) == wanted


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("train --epoch={1,2}", ("epoch",)),
        ("train -e {1,2}", ("e",)),
        ("train {1,2} {3,4}", ("arg1", "arg2")),
        ("train {epoch:1,2} --lr {rate: 0.1 , 1e-2}", ("epoch", "rate")),
        ("train", ()),
    ],
)
def test_a_hint_is_named_by_itself_or_by_the_option_before_it(source: str, names: tuple[str, ...]) -> None:
    assert parse(source).names == names


@pytest.mark.parametrize(
    ("source", "command"),
    [
        ("""run --config '{"depth": [1,2]}' --n {1,2}""", """run --config '{"depth": [1,2]}' --n 2"""),
        ('run --note "use {1,2}" --n {1,2}', 'run --note "use {1,2}" --n 2'),
        ("run ${HOME}/x --n {1,2}", "run ${HOME}/x --n 2"),
        ("awk {{print}} --n {1,2}", "awk {print} --n 2"),
        (r"run it\'s --n {1,2}", r"run it\'s --n 2"),
    ],
)
def test_braces_in_strings_variables_and_doubled_braces_are_text(source: str, command: str) -> None:
    assert parse(source).command([2]) == command


def test_numbers_are_written_as_the_user_wrote_them() -> None:
    template = parse("t --lr {0.10,1e-2}")
    assert [template.command(cell) for cell in template.cells()] == ["t --lr 0.10", "t --lr 1e-2"]
    assert template.command([0.5]) == "t --lr 0.5"
    assert template.command([3.0]) == "t --lr 3"


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("t --n {a,b}", "'a' is not a number"),
        ("t --n {1,}", "'' is not a number"),
        ("t --n {}", "'' is not a number"),
        ("t --n {5}", "one value teaches nothing"),
        ("t --n {0,1}", "0 is not positive"),
        ("t --n {-1,1}", "-1 is not positive"),
        ("t --n {1,inf}", "inf is not positive and finite"),
        ("t --n {1,nan}", "nan is not positive and finite"),
        ("t --n {1,1.0}", "same number twice"),
        ("t --n {1,2", "a { without its }"),
        ("t --n 1,2}", "a } without its {"),
        ("t 'open", "never closed"),
        ("t {2x:1,2}", "is no name"),
        ("t {cpus:1,2}", "taken by the profiler"),
        ("t --n {1,2} --n {3,4}", "two hints are called n"),
        ("  ", "template is empty"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(source: str, part: str) -> None:
    with pytest.raises(InvalidInput, match=None) as caught:
        parse(source)
    assert part in caught.value.message


def test_a_mistake_is_pointed_at() -> None:
    with pytest.raises(InvalidInput) as caught:
        parse("t --n {1,x}")
    assert caught.value.message.endswith("  t --n {1,x}\n        ^")


@pytest.mark.parametrize(
    "given", [[1], [1, 2, 3], {"epoch": 1}, {"epoch": 1, "batch-size": 2, "x": 3}, [0, 1], [-1, 1]]
)
def test_wrong_values_are_refused(given: list[float] | dict[str, float]) -> None:
    with pytest.raises(InvalidInput):
        parse(PAPER).values(given)


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused(source: str) -> None:
    try:
        template = parse(source)
    except InvalidInput:
        return
    assert template.command({hint.name: hint.values[0] for hint in template.hints}).strip() or source.strip()


@given(st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=5, unique=True))
def test_every_listed_number_comes_back_out(numbers: list[float]) -> None:
    template = parse("t --x {" + ",".join(repr(n) for n in numbers) + "}")
    assert [float(template.command([n]).split()[-1]) for n in numbers] == numbers
