"""The curves of an example whose input is a series."""

from __future__ import annotations

from easel.declare.parse import parse_program
from easel.errors import InvalidInput
from easel.flow.apps.files import AppFiles, read_pair
from easel.flow.lake.upload import Lake
from easel.match.curve import ExampleCurve, curve_of, is_series
from easel.match.raw import open_value
from easel.match.read import read_object
from easel.records.app import App, FedExample
from easel.records.identity import Caller


def example_curve(lake: Lake, caller: Caller, app: App, example: FedExample) -> ExampleCurve:
    """Returns what to draw of an example; InvalidInput where it is no series."""
    source = parse_program(app.program).input
    if not is_series(source):
        raise InvalidInput(f"the examples of {app.name} are not series")
    raw, _ = read_pair(lake, caller, example)
    return curve_of(source, read_object(source, open_value(raw, AppFiles(lake, caller, app)), "input"))
