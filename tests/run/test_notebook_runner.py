"""What the notebook runner decides, without a kernel."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

import pytest

from easel.errors import InvalidInput
from easel.records.attempt import EndReason
from easel.run.cells import CellReader
from easel.run.entries import (
    MOST_REASON,
    AttemptEnded,
    AttemptLost,
    CellRun,
    JournalEntry,
    ProgressMade,
    read_line,
    write_line,
)
from easel.run.notebook_runner import (
    CELLS,
    Wrong,
    bounded,
    definitions,
    parameter_names,
    read,
    with_parameters,
)


def code(source: str, *tags: str) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {"tags": list(tags)}, "source": source, "outputs": []}


def test_parameters_are_set_behind_the_tagged_cell() -> None:
    cells = [code("import math"), code("lr = 0.1\nepochs: int = 3", "parameters"), code("print(lr)")]
    assert parameter_names(cells) == ["lr", "epochs"]
    made = with_parameters(cells, {"lr": 0.5})
    assert [cell["source"] for cell in made] == [
        "import math",
        "lr = 0.1\nepochs: int = 3",
        "# Parameters\nlr = 0.5",
        "print(lr)",
    ]


def test_without_a_tagged_cell_parameters_come_first() -> None:
    assert with_parameters([code("print(1)")], {"a": True})[0]["source"] == "# Parameters\na = True"


def test_an_unknown_parameter_is_refused_by_name() -> None:
    with pytest.raises(Wrong, match=r"no parameter epoch: did you mean epochs\?"):
        with_parameters([code("lr = 1\nepochs = 2", "parameters")], {"epoch": 3})
    with pytest.raises(Wrong, match="no parameter depth: it has lr, epochs"):
        with_parameters([code("lr = 1\nepochs = 2", "parameters")], {"depth": 3})


@pytest.mark.parametrize("text", ['{"cells": [', "[]", '{"nbformat": 3, "worksheets": []}'])
def test_what_is_no_notebook_is_said(tmp_path: Path, text: str) -> None:
    (tmp_path / "n.ipynb").write_text(text)
    with pytest.raises(Wrong, match="is not a notebook"):
        read(tmp_path / "n.ipynb")


def test_of_cells_passed_over_only_definitions_are_made() -> None:
    pytest.importorskip("IPython")
    source = "import math\n%matplotlib inline\nSIZE = 3\ndata = load()\ndef f(x):\n    return x\ndata.fit()"
    assert definitions(source) == "import math\nSIZE = 3\ndef f(x):\n    return x"


def test_outputs_past_the_limit_are_left_out() -> None:
    cell = {"outputs": [{"text": "a" * 10}, {"text": "b" * 1000}, {"text": "c"}]}
    kept = bounded(cell, 500)["outputs"]
    assert kept[0] == {"text": "a" * 10}
    assert "left out here" in kept[1]["text"]
    assert len(kept) == 2


def record(number: int, state: str, body: dict[str, Any], said: str = "") -> str:
    return json.dumps({"cell": number, "state": state, "body": body, "said": said}) + "\n"


def test_the_agent_reads_on_where_it_stopped_and_masks_secrets(tmp_path: Path) -> None:
    reader = CellReader(tmp_path, (b"hunter2",))
    assert reader.more() == []
    with (tmp_path / CELLS).open("a") as file:
        file.write(record(-1, "begun", {"cells": [code("a"), {"cell_type": "markdown"}, code("b")]}))
        file.write("nonsense\n" + record(0, "done", {"outputs": "hunter2"}) + '{"cell": 2')
    first = reader.more()
    assert [type(entry) for entry in first] == [CellRun, CellRun, ProgressMade]
    assert first[2] == ProgressMade(0.5)
    with (tmp_path / CELLS).open("a") as file:
        file.write(', "state": "failed", "body": {}, "said": "NameError: x"}\n')
    assert [entry.state for entry in reader.more() if isinstance(entry, CellRun)] == ["failed"]
    assert reader.said == "cell 2: NameError: x"


@pytest.mark.parametrize(
    "line",
    [
        '{"cell": Infinity, "state": "done", "body": {}}',
        '{"cell": 1e999, "state": "done", "body": {}}',
        f'{{"cell": 0, "state": "done", "body": {"[" * 40}{"]" * 40}}}',
        f'{{"cell": 0, "state": "done", "body": {"[" * 20_000}',
        '{"cell": -1, "state": "begun", "body": {"cells": 5}}',
        '{"cell": -1, "state": "begun", "body": {"cells": [1]}}',
        "null",
    ],
)
def test_a_line_about_cells_that_says_nothing_sensible_says_nothing(tmp_path: Path, line: str) -> None:
    (tmp_path / CELLS).write_text(f"{line}\n")
    assert CellReader(tmp_path).more() == []


def test_half_a_surrogate_pair_and_nul_of_a_notebook_never_reach_the_database(tmp_path: Path) -> None:
    head = record(-1, "begun", {"cells": [{"cell_type": "code"}]})
    odd = r'{"cell": 0, "state": "failed", "said": "\ud800\u0000", "body": {"\ud800": "\u0000", "n": NaN}}'
    (tmp_path / CELLS).write_text(f"{head.rstrip()}\n{odd}\n")
    reader = CellReader(tmp_path)
    failed = [entry for entry in reader.more() if isinstance(entry, CellRun)][-1]
    assert json.loads(zlib.decompress(failed.data)) == {"\ufffd": "\ufffd", "n": None}
    assert reader.said == "cell 1: \ufffd\ufffd"


def test_a_reason_is_text_that_every_database_takes() -> None:
    """Workers of older releases said what user code had said as it was."""
    said = AttemptEnded(EndReason.EXIT_CODE, "cell 1: \ud800\0" + "x" * 20_000, 1)
    for body in (said, AttemptLost(EndReason.AGENT_DIED, said.reason)):
        read_again = read_line(write_line(JournalEntry(3, 0.0, body))).body
        assert isinstance(read_again, AttemptEnded | AttemptLost)
        assert read_again.reason[:12] == "cell 1: \ufffd\ufffdxx"
        assert len(read_again.reason) == MOST_REASON


def test_the_agent_follows_no_link_and_waits_for_no_pipe(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(record(0, "done", {"x": 1}))
    (tmp_path / CELLS).symlink_to(tmp_path / "secret")
    assert CellReader(tmp_path).more() == []
    (tmp_path / CELLS).unlink()
    os.mkfifo(tmp_path / CELLS)
    assert CellReader(tmp_path).more() == []


def test_a_notebook_lies_in_the_code_and_parameters_are_names() -> None:
    from easel.declare.job import Notebook

    for path in ("../a.ipynb", "/a.ipynb", "a.py"):
        with pytest.raises(InvalidInput, match="not the path of a notebook"):
            Notebook(path)
    with pytest.raises(InvalidInput, match="cannot be a parameter"):
        Notebook("a.ipynb", {"class": 1})
