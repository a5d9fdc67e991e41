"""Follows docs/tutorial/apps.md on a server of its own, with leaves that it draws: prints what every command says and
photographs the pages.

    python scripts/follow_tutorial.py PICTURES_FOLDER
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter
from playwright.sync_api import Page, ViewportSize

from easel.testing import browser
from easel.testing.server import ServerProcess, running

DESK: ViewportSize = {"width": 1100, "height": 720}
PATIENCE_MS = 120_000


def leaf(rng: np.random.Generator, *, sick: bool, side: int = 64) -> Image.Image:
    """A leaf on paper; a sick one has brown spots."""
    size = 4 * side
    paper = int(rng.integers(215, 245))
    picture = Image.new("RGB", (size, size), (paper, paper, paper - 8))
    layer = Image.new("RGBA", (size, size), (0, 0, 0, 0))
    draw = ImageDraw.Draw(layer)
    green = (int(rng.integers(40, 90)), int(rng.integers(110, 160)), int(rng.integers(40, 80)), 255)
    half = int(rng.uniform(0.16, 0.26) * size)
    centre, top, bottom = size // 2, int(0.1 * size), int(0.88 * size)
    draw.ellipse((centre - half, top, centre + half, bottom), fill=green)
    vein = tuple(max(0, part - 30) for part in green[:3])
    draw.line((centre, top, centre, bottom + 20), fill=vein, width=5)
    for y in range(top + 40, bottom - 20, 30):
        draw.line((centre, y, centre + half - 12, y - 25), fill=vein, width=3)
        draw.line((centre, y, centre - half + 12, y - 25), fill=vein, width=3)
    for _ in range(int(rng.integers(3, 9)) if sick else 0):
        angle, reach = rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.75)
        x = centre + reach * half * np.cos(angle)
        y = (top + bottom) / 2 + reach * (bottom - top) / 2 * np.sin(angle)
        r = rng.uniform(6, 18)
        brown = (int(rng.integers(90, 140)), int(rng.integers(60, 85)), 35, 255)
        draw.ellipse((x - r, y - r, x + r, y + r), fill=brown)
    turned = layer.rotate(float(rng.uniform(-70, 70)), resample=Image.Resampling.BICUBIC)
    picture.paste(turned, (0, 0), turned)
    return picture.filter(ImageFilter.GaussianBlur(1.5)).resize((side, side))


def draw_leaves(folder: Path, count: int = 120) -> None:
    """`count` of each kind; one sick leaf lies in the wrong folder, and one new leaf beside them."""
    rng = np.random.default_rng(7)
    for kind in ("healthy", "sick"):
        (folder / "my-leaves" / kind).mkdir(parents=True)
        for number in range(count):
            sick = kind == "sick" or number == 17
            leaf(rng, sick=sick).save(folder / "my-leaves" / kind / f"{number:03d}.jpg", quality=92)
    leaf(rng, sick=True).save(folder / "new-leaf.jpg", quality=92)


def say(server: ServerProcess, folder: Path, line: str) -> str:
    """What the shell answers to a line of the tutorial."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EASEL_")}
    environment |= {"EASEL_SERVER": server.address, "EASEL_TOKEN": server.admin_token, "COLUMNS": "140"}
    environment["PATH"] = f"{Path(sys.executable).parent}:{environment['PATH']}"
    done = subprocess.run(
        ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    print(f"$ {line}\n{done.stdout}{done.stderr}", flush=True)
    if done.returncode:
        raise SystemExit(f"{line}: exit code {done.returncode}")
    return done.stdout


def photograph(page: Page, server: ServerProcess, what: str, wait_for: str, target: Path) -> None:
    page.goto(f"{server.address}/p/leaves/apps/leaves?tab={what}")
    page.get_by_text(wait_for).first.wait_for(timeout=PATIENCE_MS)
    page.wait_for_timeout(2_000)  # what is drawn after it was fetched
    page.screenshot(path=target)


def main() -> None:
    pictures = Path(sys.argv[1])
    pictures.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as home,
        tempfile.TemporaryDirectory() as made,
        running(Path(home), warm_trials="true") as server,
    ):
        here = Path(made)
        draw_leaves(here)
        say(server, here, "easel projects create leaves")
        say(server, here, "easel infer-program my-leaves/")
        say(server, here, 'easel apps declare leaves "$(easel infer-program my-leaves/)" -p leaves')
        say(server, here, "easel feed leaves my-leaves/ -p leaves")
        say(server, here, "easel apps wait leaves -p leaves")
        client = server.client().in_project("leaves")
        while len([trial for trial in client.apps.trials("leaves") if trial.state == "done"]) < 2:
            time.sleep(0.5)  # the pool learns meanwhile
        say(server, here, "easel apps ls -p leaves")
        say(server, here, "easel infer leaves new-leaf.jpg -p leaves")
        worst = say(server, here, "easel refine leaves --suspects --limit 3 -p leaves")
        with browser.running() as chrome:
            page = chrome.new_page(viewport=DESK)
            browser.log_in(page, server.address, server.admin_token)
            photograph(page, server, "model", "Confusion matrix", pictures / "leaves-model.png")
            photograph(page, server, "examples", "switched off", pictures / "leaves-examples.png")
        digest = next(word for line in worst.splitlines() for word in line.split() if len(word) == 32)
        say(server, here, f"easel refine leaves {digest} --off -p leaves")
        say(server, here, "easel apps export leaves -p leaves")
        say(server, here, "python3 -m zipfile -l leaves-onnx.zip")


if __name__ == "__main__":
    main()
