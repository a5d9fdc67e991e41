"""Records a real session with a real server as a moving picture: docs/pictures/terminal.svg.

python scripts/record_terminal.py [OUT.svg]
"""

from __future__ import annotations

import argparse
import html
import os
import pty
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from easel.testing.server import ServerProcess, running

ROOT = Path(__file__).resolve().parents[1]
COLUMNS, LINE, LEFT, TOP = 80, 18, 16, 44
TYPING_S, READING_S, PAUSE_S = 0.03, 0.12, 1.6
SESSION = [
    "easel learn flowers.csv --target species",
    "easel infer flowers new.csv -o answers.csv && head -3 answers.csv",
    "easel run -- python train.py --epochs 3",
    "easel why flowers",
]
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def in_terminal(command: str, folder: Path, environment: dict[str, str]) -> list[str]:
    """Returns the lines that the command prints in a terminal of 80 columns."""
    pid, screen = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execvpe("sh", ["sh", "-c", command], environment)  # noqa: S606, S607
    said = b""
    while True:
        try:
            read = os.read(screen, 65536)
        except OSError:
            break
        if not read:
            break
        said += read
    os.waitpid(pid, 0)
    text = _ESCAPE.sub("", said.decode(errors="replace")).replace("\r\r\n", "\n").replace("\r\n", "\n")
    lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.rstrip("\n").split("\n")]
    return [part for line in lines for part in (textwrap.wrap(line, COLUMNS, drop_whitespace=False) or [""])]


def picture(session: list[tuple[str, list[str]]]) -> str:
    """Returns an SVG in which the lines appear as they would be typed and read; it begins anew at the end."""
    rows: list[tuple[str, str, float]] = []
    at = 0.5
    for command, lines in session:
        rows.append(("asked", f"$ {command}", at))
        at += len(command) * TYPING_S + 0.4
        for line in lines:
            rows.append(("told", line, at))
            at += READING_S
        at += PAUSE_S
    ends, height = at + 3, TOP + LINE * len(rows) + 16
    width = LEFT * 2 + int(COLUMNS * 8.0)
    style = (
        "text{font:13px ui-monospace,Menlo,Consolas,monospace;white-space:pre;fill:#cdd6e0}.asked{fill:#7fe0c3;"
        f"font-weight:bold}}.line{{opacity:0;animation-duration:{ends:.1f}s;animation-iteration-count:infinite}}"
    )
    shapes = []
    for number, (kind, line, moment) in enumerate(rows):
        shown = 100 * moment / ends
        style += f"@keyframes k{number}{{0%,{shown:.2f}%{{opacity:0}}"
        style += f"{shown + 0.01:.2f}%,99%{{opacity:1}}100%{{opacity:0}}}}"
        style += f".l{number}{{animation-name:k{number}}}"
        y = TOP + LINE * (number + 1)
        shapes.append(f'<text class="line l{number} {kind}" x="{LEFT}" y="{y}">{html.escape(line)}</text>')
    dots = "".join(
        f'<circle cx="{20 + 18 * i}" cy="20" r="5.5" fill="{colour}"/>'
        for i, colour in enumerate(("#e0605a", "#e0b84a", "#58b26b"))
    )
    still = "@media (prefers-reduced-motion: reduce){.line{opacity:1;animation:none}}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="A session: from a table to a model, and a script as a job">'
        f'<style>{style}{still}</style><rect width="{width}" height="{height}" rx="10" fill="#16202b"/>'
        f"{dots}{''.join(shapes)}</svg>\n"
    )


def record(server: ServerProcess, folder: Path) -> list[tuple[str, list[str]]]:
    _files(folder)
    server.client().projects.create("lab")
    environment = {
        **os.environ,
        "EASEL_SERVER": server.address,
        "EASEL_TOKEN": server.admin_token,
        "EASEL_PROJECT": "lab",
        "NO_COLOR": "1",
        "COLUMNS": str(COLUMNS),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    return [(command, in_terminal(command, folder, environment)) for command in SESSION]


def _files(folder: Path) -> None:
    from sklearn.datasets import load_iris

    table = load_iris(as_frame=True)
    frame = table.frame
    frame.columns = ["sepal_length", "sepal_width", "petal_length", "petal_width", "species"]
    frame["species"] = [table.target_names[i] for i in frame["species"]]
    frame.to_csv(folder / "flowers.csv", index=False)
    frame.sample(5, random_state=1).drop(columns="species").to_csv(folder / "new.csv", index=False)
    make = [sys.executable, str(ROOT / "docs" / "gallery" / "make.py"), "tuning", str(folder / "tuning")]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    (folder / "tuning" / "train.py").rename(folder / "train.py")


if __name__ == "__main__":
    asked = argparse.ArgumentParser(
        description="Records a real session with a real server as a moving picture."
    )
    asked.add_argument("out", type=Path, nargs="?", default=ROOT / "docs" / "pictures" / "terminal.svg")
    out = asked.parse_args().out
    with tempfile.TemporaryDirectory() as made, running(Path(made), warm_trials="true") as started:
        work = Path(made) / "work"
        work.mkdir()
        out.write_text(picture(record(started, work)), encoding="utf-8")
