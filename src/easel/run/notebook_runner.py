"""Inside the sandbox: runs a notebook cell by cell and says after each what it left. Needs nbclient, nothing of Easel.

`python notebook_runner.py call.json` runs it. With `--kernel` it is the kernel itself: what cells print goes to the
job's own output, all of it, and to the notebook up to a limit.
"""

from __future__ import annotations

import ast
import difflib
import json
import os
import re
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

CELLS = ".easel-cells.jsonl"
MOST_PRINTED = 200_000
"""Characters that one cell may show of each stream."""
MOST_CELL = 2_000_000
MOST_ALL = 24_000_000
LIVE_BYTES = 64_000
LIVE_S = 2.0
_MOST_SOCKET = 90
"""Characters that the path of a socket may have, with a number behind it."""
INPUT = "$EASEL_INPUT"
"""A parameter with this value is the folder of the input."""


class Wrong(Exception):
    """The notebook cannot be run: says why."""


def read(path: Path) -> dict[str, Any]:
    """The notebook, or Wrong."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise Wrong(f"the code has no notebook {path}") from None
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        raise Wrong(f"{path} is not a notebook: it is not valid JSON ({error})") from None
    if not isinstance(found, dict) or not isinstance(found.get("cells"), list):
        raise Wrong(f"{path} is not a notebook of format 4: it has no list of cells")
    return found


def source_of(cell: dict[str, Any]) -> str:
    given = cell.get("source", "")
    return "".join(given) if isinstance(given, list) else str(given)


def tags_of(cell: dict[str, Any]) -> list[str]:
    return list((cell.get("metadata") or {}).get("tags") or [])


def parameter_names(cells: list[dict[str, Any]]) -> list[str] | None:
    """What the cell tagged `parameters` assigns; None where there is none, or it cannot be read."""
    tagged = next((cell for cell in cells if "parameters" in tags_of(cell)), None)
    if tagged is None:
        return None
    try:
        body = ast.parse(source_of(tagged)).body
    except SyntaxError:
        return None
    found = [target for node in body if isinstance(node, ast.Assign) for target in node.targets]
    found += [node.target for node in body if isinstance(node, ast.AnnAssign)]
    return [target.id for target in found if isinstance(target, ast.Name)]


def with_parameters(cells: list[dict[str, Any]], values: dict[str, Any]) -> list[dict[str, Any]]:
    """The cells with one more that sets `values`, behind the one tagged `parameters`, else first."""
    if not values:
        return cells
    known = parameter_names(cells)
    unknown = next((name for name in values if known is not None and name not in known), None)
    if known is not None and unknown is not None:
        close = difflib.get_close_matches(unknown, known, 1)
        meant = f"did you mean {close[0]}?" if close else f"it has {', '.join(known) or 'none'}"
        raise Wrong(f"the notebook has no parameter {unknown}: {meant}")
    given = {name: os.environ.get("EASEL_INPUT", "input") if v == INPUT else v for name, v in values.items()}
    lines = [f"{name} = {value!r}" for name, value in given.items()]
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "injected-parameters",
        "metadata": {"tags": ["injected-parameters"]},
        "execution_count": None,
        "outputs": [],
        "source": "\n".join(["# Parameters", *lines]),
    }
    at = next((number + 1 for number, each in enumerate(cells) if "parameters" in tags_of(each)), 0)
    return [*cells[:at], cell, *cells[at:]]


def definitions(source: str) -> str:
    """What of a cell only makes names known: imports, functions, classes, constants."""
    try:
        from IPython.core.inputtransformer2 import TransformerManager

        body = ast.parse(TransformerManager().transform_cell(source)).body
    except SyntaxError:
        return ""
    kept = [node for node in body if isinstance(node, _DEFINES) or _is_constant(node)]
    return "\n".join(ast.unparse(node) for node in kept)


_DEFINES = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _is_constant(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    try:
        ast.literal_eval(node.value)
    except ValueError:
        return False
    return True


def bounded(cell: dict[str, Any], most: int) -> dict[str, Any]:
    """The cell, its outputs left out from the one on with which it would be larger than `most`."""
    size, kept = 0, []
    for output in cell.get("outputs", ()):
        size += len(json.dumps(output))
        if size > most:
            kept.append(_note(f"[easel: outputs of more than {most} bytes are left out here]\n"))
            break
        kept.append(output)
    return {**cell, "outputs": kept}


def _note(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stderr", "text": text}


class Teller:
    """Writes down what happened to each cell, for the agent, and keeps the executed copy up to date."""

    def __init__(self, notebook: dict[str, Any], copy: Path, clock: Any = time.monotonic) -> None:
        self.notebook, self.copy, self.clock = notebook, copy, clock
        self.left = MOST_ALL
        self._began = self._told = clock()
        self._file = Path(CELLS).open("a", encoding="utf-8")  # noqa: SIM115
        head = {**notebook, "cells": [{**cell, "outputs": []} for cell in notebook["cells"]]}
        self._write({"cell": -1, "state": "begun", "body": head})

    def begin(self, number: int) -> None:
        self._began = self._told = self.clock()
        self.tell(number, "running")

    def live(self, number: int) -> None:
        """Outputs so far, the less often the longer the cell runs: what is told is kept for good."""
        now = self.clock()
        if now - self._told >= max(LIVE_S, 0.05 * (now - self._began)):
            self._told = now
            if len(json.dumps(self.notebook["cells"][number])) <= LIVE_BYTES:
                self.tell(number, "running")

    def end(self, number: int, state: str, said: str = "") -> None:
        cells = self.notebook["cells"]
        cells[number] = bounded(cells[number], min(MOST_CELL, max(0, self.left)))
        self.left -= len(json.dumps(cells[number]))
        self.tell(number, state, said)
        self.save()

    def tell(self, number: int, state: str, said: str = "") -> None:
        record = {"cell": number, "state": state, "body": self.notebook["cells"][number], "said": said}
        self._write(record)

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    def save(self) -> None:
        self.copy.parent.mkdir(parents=True, exist_ok=True)
        growing = self.copy.with_name(f".{self.copy.name}.part")
        growing.write_text(json.dumps(self.notebook, indent=1), encoding="utf-8")
        growing.replace(self.copy)


def run(call: dict[str, Any]) -> int:
    path = Path(call["path"])
    notebook = read(path)
    notebook["cells"] = with_parameters(notebook["cells"], dict(call["parameters"]))
    for cell in notebook["cells"]:
        if cell.get("cell_type") == "code":
            cell |= {"outputs": [], "execution_count": None, "metadata": cell.get("metadata") or {}}
        cell["source"] = source_of(cell)
    codes = [n for n, cell in enumerate(notebook["cells"]) if cell.get("cell_type") == "code"]
    first = int(call["first"])
    if first > max(1, len(codes)):
        raise Wrong(f"the notebook has {len(codes)} code cells, none with the number {first}")
    copy = Path(os.environ.get("EASEL_OUTPUT", "output")) / path.name
    teller = Teller(notebook, copy)
    teller.save()
    return _run_cells(notebook, codes, first, teller, path.parent)


def _run_cells(notebook: dict[str, Any], codes: list[int], first: int, teller: Teller, folder: Path) -> int:
    try:
        import nbformat
        from jupyter_client.kernelspec import KernelSpecManager
        from jupyter_client.manager import AsyncKernelManager
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError, DeadKernelError
    except ImportError as error:
        raise Wrong(
            f"notebooks need nbclient and ipykernel, and this Python has no {error.name}: name them in the "
            "requirements, or have an admin install easel-ml[notebooks] on the device"
        ) from None

    nodes = nbformat.from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, **notebook})
    notebook["cells"] = nodes.cells
    with tempfile.TemporaryDirectory() as kernels:
        _kernel_spec(Path(kernels))
        specs = KernelSpecManager(kernel_dirs=[kernels], ensure_native_kernel=False)
        address = f"{kernels}/socket"
        local = {"transport": "ipc", "ip": address} if len(address) < _MOST_SOCKET else {}
        manager = AsyncKernelManager(kernel_name="easel", kernel_spec_manager=specs, **local)
        client = NotebookClient(nodes, km=manager, timeout=None)
        process = client.process_message

        def show(message: Any, cell: Any, index: int) -> Any:
            made = process(message, cell, index)
            if made is not None:
                teller.live(index)
            return made

        client.process_message = show
        number = 0
        try:
            with client.setup_kernel(cwd=str(folder.resolve()), cleanup_kc=True):
                for position, number in enumerate(codes, 1):
                    cell = nodes.cells[number]
                    setup = {"parameters", "injected-parameters", "setup"} & set(tags_of(cell))
                    if position < first and not setup:
                        known = nbformat.v4.new_code_cell(definitions(cell.source))
                        if known.source:
                            client.execute_cell(known, number)
                            nodes.cells[number] = cell  # the client puts what it ran in its place
                        teller.end(number, "skipped")
                        continue
                    teller.begin(number)
                    client.execute_cell(cell, number)
                    _numbered(cell, position)
                    teller.end(number, "done")
        except CellExecutionError as error:
            _numbered(nodes.cells[number], codes.index(number) + 1)
            said = f"{error.ename}: {error.evalue}"
            teller.end(number, "failed", said)
            traceback = "\n".join(
                line for output in nodes.cells[number]["outputs"] for line in (output.get("traceback") or ())
            )
            sys.stderr.write(plain(traceback) + "\n")
            return _fail(f"cell {codes.index(number) + 1} failed: {said}")
        except (DeadKernelError, RuntimeError) as error:
            if not isinstance(error, DeadKernelError) and "Kernel died" not in str(error):
                raise
            said = "the kernel died: look for what used up the memory, or for a crash of a library"
            teller.end(number, "failed", said)
            return _fail(f"cell {codes.index(number) + 1} failed: {said}")
    return 0


def plain(text: str) -> str:
    """Returns the text without the colours of a terminal."""
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)


def _fail(text: str) -> int:
    sys.stderr.write(text + "\n")
    return 1


def _numbered(cell: Any, position: int) -> None:
    cell["execution_count"] = position
    for output in cell.get("outputs", ()):
        if "execution_count" in output:
            output["execution_count"] = position


def _kernel_spec(folder: Path) -> None:
    (folder / "easel").mkdir()
    argv = [sys.executable, str(Path(__file__).resolve()), "--kernel", "-f", "{connection_file}"]
    quiet = {"PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    spec = {"argv": argv, "display_name": "Easel", "language": "python", "env": quiet}
    (folder / "easel" / "kernel.json").write_text(json.dumps(spec))


def kernel() -> None:
    """The kernel, whose cells print to the job's own output and, up to a limit, to the notebook."""
    from ipykernel import iostream, kernelapp

    log = {"stdout": os.dup(1), "stderr": os.dup(2)}
    show = iostream.OutStream.write
    shown: dict[tuple[str, str], int] = {}
    lock = threading.Lock()

    def write(self: Any, text: Any) -> Any:
        if not isinstance(text, str):
            return show(self, text)
        _write_all(log.get(self.name, 1), text)
        parent = self.parent_header if isinstance(self.parent_header, dict) else {}
        cell = (str(parent.get("msg_id")), self.name)
        with lock:
            before = shown.get(cell, 0)
            shown[cell] = before + len(text)
        if before + len(text) <= MOST_PRINTED:
            show(self, text)
        elif before <= MOST_PRINTED:
            more = "\n[easel: the rest of what this cell printed is in the job's log]\n"
            show(self, text[: MOST_PRINTED - before] + more)
        return len(text)

    iostream.OutStream.write = write
    quiet = ["--IPKernelApp.capture_fd_output=False", "--IPKernelApp.log_level=40"]
    sys.argv = [sys.argv[0], *sys.argv[2:], *quiet]
    kernelapp.launch_new_instance()


def _write_all(number: int, text: str, piece: int = 1 << 20) -> None:
    for start in range(0, len(text), piece):
        data = memoryview(text[start : start + piece].encode(errors="replace"))
        while data:
            data = data[os.write(number, data) :]


def main() -> int:
    if sys.argv[1] == "--kernel":
        kernel()
        return 0
    try:
        return run(json.loads(Path(sys.argv[1]).read_text()))
    except Wrong as error:
        return _fail(str(error))


if __name__ == "__main__":
    sys.exit(main())
