"""Notebooks on the command line: `easel run train.ipynb -P lr=0.1 -P data=mnist:3`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from easel.errors import InvalidInput

INPUT = "$EASEL_INPUT"
"""The value of a parameter that stands for the folder of the input."""
_SET = re.compile(r"[a-z0-9][a-z0-9._-]*:[0-9]+")


def is_notebook(command: Sequence[str]) -> bool:
    """Whether a command is nothing but the name of a notebook."""
    return len(command) == 1 and command[0].endswith(".ipynb")


def give_parameters(run: dict[str, Any], fields: dict[str, Any], given: Mapping[str, str]) -> None:
    """Numbers, truth values and lists as such, all else as text; a file set becomes the job's input."""
    for name, text in given.items():
        if _SET.fullmatch(text):
            if fields.get("input") not in (None, text):
                raise InvalidInput(
                    f"a job reads one input, and {fields['input']} is it: make one file set of both "
                    f"(easel filesets create both /@{fields['input']} /@{text})"
                )
            fields["input"] = text
            run["parameters"][name] = INPUT
        else:
            run["parameters"][name] = value_of(text)


def value_of(text: str) -> Any:
    """The value that a text means: JSON where it is that, True, False and None as Python writes them, else itself."""
    words = {"True": True, "False": False, "None": None}
    if text in words:
        return words[text]
    try:
        return json.loads(text)
    except ValueError:
        return text


def check_notebook(path: Path) -> None:
    """InvalidInput where a notebook here cannot be one: better said before anything is sent."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not a notebook: it is not valid JSON ({error})") from error
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list):
        raise InvalidInput(f"{path} is not a notebook of format 4: it has no list of cells")
