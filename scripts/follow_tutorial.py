"""Follows docs/tutorial/apps.md on a server of its own: prints what every command says and photographs the pages.

python scripts/follow_tutorial.py PICTURES_FOLDER
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, ViewportSize

from easel.testing import browser
from easel.testing.server import ServerProcess, running

ROOT = Path(__file__).resolve().parents[1]
DESK: ViewportSize = {"width": 1100, "height": 720}
PATIENCE_MS = 120_000


def say(server: ServerProcess, folder: Path, line: str) -> str:
    """What the shell answers to a line of the tutorial."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EASEL_")}
    environment |= {"EASEL_SERVER": server.address, "EASEL_TOKEN": server.admin_token, "COLUMNS": "80"}
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
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("pictures", type=Path, help="the folder that the photographs go to")
    pictures = asked.parse_args().pictures
    pictures.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as home,
        tempfile.TemporaryDirectory() as made,
        running(Path(home), warm_trials="true") as server,
    ):
        here = Path(made)
        say(server, here, f"python {ROOT}/docs/gallery/make.py leaves leaves")
        here /= "leaves"
        say(server, here, "easel projects create leaves")
        say(server, here, "easel learn my-leaves --name leaves -p leaves")
        say(server, here, "easel feed leaves my-leaves/ -p leaves")
        client = server.client().in_project("leaves")
        while len([trial for trial in client.apps.trials("leaves") if trial.state == "done"]) < 12:
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
