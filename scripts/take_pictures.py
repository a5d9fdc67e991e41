"""Starts a server, has people work on it, and photographs the pages. Called by scripts/screenshots."""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, FilePayload, Page, ViewportSize

from easel.declare.roles import Role
from easel.sdk.client import Client
from easel.testing import browser
from easel.testing.server import ServerProcess, running

DESK: ViewportSize = {"width": 1280, "height": 800}
PATIENCE_MS = 300_000
"""For what is really trained and run."""
IN_ALL_VIEWS = ("overview", "job", "app", "study")
"""Kept in dark and on a phone too; `--all` takes every page so, to be looked at."""
SMALL = {"vcpu": 0.5, "memory_mb": 128}
TRAIN = """
import math, sys, time
rate = float(sys.argv[1])
for step in range(1, 201):
    loss = 2.2 * math.exp(-rate * step / 12) + 0.08 + 0.03 * math.sin(step * rate)
    print(f"[EASEL_METRIC] loss={loss:.4f} step={step}")
    print(f"[EASEL_METRIC] accuracy={1 - loss / 2.6:.4f} step={step}")
    if step % 20 == 0:
        print(f"epoch {step // 20}: loss {loss:.4f}", flush=True)
"""


def work(server: ServerProcess) -> dict[str, str]:
    """People, finished jobs with curves, a failed one, a running one and some that wait; returns what to look at."""
    root = server.client()
    root.projects.create("astro", "Light curves of variable stars")
    root.projects.create("bio", "Cells under the microscope")
    astro = root.in_project("astro")
    clients: dict[str, Client] = {}
    for name, role in (("ana", Role.ADMIN), ("ben", Role.MEMBER), ("chen", Role.MEMBER)):
        secret = astro.users.create(name, role).token.secret
        assert secret is not None
        clients[name] = server.client(secret, "astro")
    trained = [
        clients["ana"].jobs.submit(
            ["python3", "-u", "-c", TRAIN, rate],
            name=f"train at {rate}",
            resources=SMALL,
            tags={"rate": float(rate)},
        )
        for rate in ("0.2", "0.5", "0.9")
    ]
    failed = clients["ben"].jobs.submit(
        ["sh", "-c", "cat stars.csv"], name="clean the catalogue", resources=SMALL
    )
    for job in [*trained, failed]:
        job.wait(check=False)
    folder = server.folder / "stars"
    folder.mkdir()
    rows = "".join(f"TIC {4000 + 7 * i},{0.4 + 0.37 * i:.2f},{11 + i % 5}\n" for i in range(40))
    (folder / "catalogue.csv").write_text("star,period in days,magnitude\n" + rows)
    (folder / "notes.txt").write_text("Sectors 1 to 4, without the scattered light of sector 3.\n")
    lake = clients["ana"].lake
    lake.upload(folder, "/stars/")
    lake.create_file_set("catalogue", ["/stars/"])
    lake.tag("fileset", "catalogue:1", {"survey": "TESS", "sectors": 4})
    outputs = []
    for name in ("clean", "detrend"):
        step = clients["ana"].jobs.submit(
            ["sh", "-c", f"echo {name} > output/{name}.txt"],
            name=name,
            input="catalogue:1",
            output_set=name,
            resources=SMALL,
        )
        step.wait()
        outputs.append(f"/@{name}:1")
    lake.create_file_set("training", outputs)
    for name in ("linear", "boosted", "network"):
        made = ["sh", "-c", f"echo {name} > output/model.txt"]
        clients["ana"].jobs.submit(
            made, name=f"train {name}", input="training:1", output_set=f"model-{name}", resources=SMALL
        ).wait()
    astro.bills.set_budget(0.5)
    learn(clients["ana"])
    astro.queues.change("chen", paused=True)
    for i in range(4):
        clients["chen"].jobs.submit(["true"], name=f"periods of sector {i + 1}", resources=SMALL)
    counting = "i=0; while true; do i=$((i+1)); echo star $i of 5000; sleep 0.2; done"
    live = clients["ben"].jobs.submit(["sh", "-c", counting], name="fold the light curves", resources=SMALL)
    next(iter(live.logs(follow=True)))
    return {
        "token": clients["ana"].connection.http.headers["Authorization"].removeprefix("Bearer "),
        "trained": "&".join(f"job={job.id}" for job in trained),
        "done": trained[-1].id,
        "live": live.id,
    }


STUDY = """
import math, sys
rate, layers, kind = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
score = 0.93 - 0.06 * (math.log10(rate) + 2) ** 2 - 0.02 * (layers - 3) ** 2 + 0.02 * (kind == "adam")
print(f"[EASEL_METRIC] accuracy={score:.4f} step=1")
print(f"[EASEL_METRIC] memory={layers * 90} step=1")
"""


def learn(ana: Client) -> None:
    """An app with models, a finished study, a fitted profile."""
    rng = np.random.default_rng(4)
    kinds = ("giant", "dwarf", "binary")
    pairs = [
        ({"period": float(rng.normal(3 + 4 * k, 1.2)), "amplitude": float(rng.normal(1 + k, 0.5))}, kinds[k])
        for k in range(3)
        for _ in range(40)
    ]
    fields = "period :: Number, amplitude :: Number"
    ana.apps.declare(
        "stars", f"{{input: {{[{fields}], []}}, output: {{[Category[giant, dwarf, binary]], []}}}}"
    )
    ana.apps.feed("stars", pairs)
    ana.studies.create(
        "depth",
        job={
            "run": {"kind": "command", "argv": ["python3", "-c", STUDY, "{rate}", "{layers}", "{optimiser}"]},
            "resources": SMALL,
        },
        space={
            "dimensions": [
                {"name": "rate", "type": "float", "low": 1e-4, "high": 1e-1, "log": True},
                {"name": "layers", "type": "integer", "low": 1, "high": 6},
                {"name": "optimiser", "type": "categorical", "values": ["sgd", "adam"]},
            ]
        },
        goal={"maximise": "accuracy", "constraints": ["memory <= 400"], "budget": {"count": 14}},
        strategy="ei-c",
        workers=2,
    )
    ana.profiles.start("fold", "sleep 0.{tenths:1,2,4}", cpus=[0.5, 1.0], memories_mb=[128, 256])
    ana.profiles.wait("fold", timeout=600)


HISTORY = "tenant,candidate,quality,cost\n" + "".join(
    f"app{i},model{k},{0.5 + 0.05 * ((i * 7 + k * 3) % 9):.2f},{10 + k}\n"
    for i in range(12)
    for k in range(8)
)


def simulate(page: Page) -> None:
    history: FilePayload = {"name": "history.csv", "mimeType": "text/csv", "buffer": HISTORY.encode()}
    page.get_by_label("Another history").set_input_files(history)
    page.get_by_text("trials of history.csv").wait_for()
    page.get_by_role("button", name="Simulate").click()
    page.get_by_role("img", name="Mean distance").wait_for(timeout=PATIENCE_MS)


def find_the_size(page: Page) -> None:
    page.get_by_label("Before").fill("2099-01-01T00:00")
    page.get_by_label("For at most").fill("0.00001")
    page.get_by_role("button", name="Find the size").click()
    page.get_by_role("img", name="excluded by the limits").wait_for()


def model_is_there(page: Page) -> None:
    page.get_by_role("link", name="Download as ONNX").wait_for(timeout=PATIENCE_MS)
    page.get_by_role("img", name="Confusion matrix").wait_for(timeout=PATIENCE_MS)


def ask(page: Page) -> None:
    page.get_by_role("button", name="Take an example's input").click()
    page.get_by_role("button", name="As JSON").wait_for()  # the example is there, in fields
    page.get_by_role("button", name="Ask").click()
    page.get_by_role("heading", name="Answer").wait_for(timeout=PATIENCE_MS)


def choose_the_catalogue(page: Page) -> None:
    page.get_by_role("group", name="File set catalogue:1").click()
    page.get_by_text("survey TESS").wait_for()


def all_curves_are_there(page: Page) -> None:
    for i in range(3):
        page.get_by_role("row", name="loss lowest is best").get_by_role("cell").nth(i).filter(
            has_text="0."
        ).wait_for()


def photograph(
    chrome: Browser, server: ServerProcess, facts: dict[str, str], folder: Path, everything: bool
) -> None:
    base = "/p/astro"
    pages: dict[str, tuple[str, Callable[[Page], object]]] = {
        "overview": (base, lambda p: p.get_by_text("fold the light curves").first.wait_for()),
        "jobs": (f"{base}/jobs", lambda p: p.locator(".grid tbody a").nth(5).wait_for()),
        "job": (f"{base}/jobs/{facts['done']}", lambda p: p.locator("canvas").first.wait_for()),
        "job-live": (f"{base}/jobs/{facts['live']}", lambda p: p.get_by_text("of 5000").first.wait_for()),
        "compare": (
            f"{base}/jobs/compare?{facts['trained']}",
            all_curves_are_there,
        ),
        "apps": (f"{base}/apps", lambda p: p.get_by_role("link", name="stars").wait_for()),
        "app": (f"{base}/apps/stars", model_is_there),
        "app-examples": (f"{base}/apps/stars?tab=examples", lambda p: p.get_by_role("row").nth(3).wait_for()),
        "app-candidates": (
            f"{base}/apps/stars?tab=candidates",
            lambda p: p.get_by_role("img").first.wait_for(),
        ),
        "app-next": (
            f"{base}/apps/stars?tab=next",
            lambda p: p.get_by_role("img", name="believed").wait_for(),
        ),
        "app-try": (f"{base}/apps/stars?tab=try", ask),
        "studies": (f"{base}/studies", lambda p: p.get_by_role("link", name="depth").wait_for()),
        "study": (
            f"{base}/studies/depth",
            lambda p: p.locator(".head .state.finished").wait_for(timeout=PATIENCE_MS),
        ),
        "provision": (f"{base}/provision", find_the_size),
        "simulator": (f"{base}/simulator", simulate),
        "people": (f"{base}/people", lambda p: p.get_by_text("chen").first.wait_for()),
        "lake": (
            f"{base}/lake?in=/stars/&file=/stars/catalogue.csv",
            lambda p: p.get_by_role("cell", name="TIC 4000").wait_for(),
        ),
        "file-sets": (f"{base}/lake/sets", lambda p: p.get_by_role("link", name="catalogue:1").wait_for()),
        "provenance": (
            f"{base}/provenance?from=catalogue:1&direction=forward",
            choose_the_catalogue,
        ),
        "spending": (f"{base}/spending", lambda p: p.get_by_role("cell", name="ana").wait_for()),
        "account": ("/account", lambda p: p.get_by_text("this session").wait_for()),
    }
    views: dict[str, tuple[ViewportSize, Literal["light", "dark"]]] = {
        "": (DESK, "light"),
        "-dark": (DESK, "dark"),
        "-phone": ({"width": 390, "height": 780}, "light"),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, (size, colours) in views.items():
        page = chrome.new_context(viewport=size, color_scheme=colours).new_page()
        page.set_default_timeout(PATIENCE_MS)
        if not suffix:
            page.goto(server.address)
            page.get_by_label("Token").wait_for()
            keep(page, folder / "log-in.png")
        browser.log_in(page, server.address, facts["token"])
        chosen = pages if everything or not suffix else {name: pages[name] for name in IN_ALL_VIEWS}
        for name, (path, ready) in chosen.items():
            page.goto(server.address + path)
            ready(page)
            if path != "/account":
                page.get_by_text("Live", exact=True).wait_for()
            page.get_by_text("Loading…").first.wait_for(state="detached")
            keep(page, folder / f"{name}{suffix}.png")
        page.context.close()


def keep(page: Page, file: Path) -> None:
    """In as many colours as a page has: a third of the bytes, and nobody sees the difference."""
    with Image.open(io.BytesIO(page.screenshot())) as taken:
        taken.convert("RGB").quantize(256).save(file, optimize=True)


def main(folder: Path, everything: bool) -> None:
    with tempfile.TemporaryDirectory() as home, running(Path(home)) as server, browser.running() as chrome:
        photograph(chrome, server, work(server), folder, everything)


if __name__ == "__main__":
    main(Path(sys.argv[1]), everything="--all" in sys.argv[2:])
