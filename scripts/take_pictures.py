"""Starts a server, has people work on it, and photographs the pages. Called by scripts/screenshots."""

from __future__ import annotations

import argparse
import io
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
"""Kept in dark and on a phone too."""
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = (390, 1024, 1440)
"""At these `--all` takes every page, whole and in both themes, to be looked at."""
TALLEST = 3000
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
    waiting = [
        clients["chen"].jobs.submit(["true"], name=f"periods of sector {i + 1}", resources=SMALL)
        for i in range(4)
    ]
    steps: dict[str, list[str]] = {"fold": [], "fit": ["fold"], "plot": ["fold"], "report": ["fit", "plot"]}
    season = clients["ana"].pipelines.submit(
        "season",
        [
            {
                "name": name,
                "needs": needs,
                "job": {"run": {"kind": "command", "argv": ["echo", name]}, "resources": SMALL},
            }
            for name, needs in steps.items()
        ],
    )
    clients["ana"].pipelines.wait(season.id)
    counting = "i=0; while true; do i=$((i+1)); echo star $i of 5000; sleep 0.2; done"
    live = clients["ben"].jobs.submit(["sh", "-c", counting], name="fold the light curves", resources=SMALL)
    next(iter(live.logs(follow=True)))
    return {
        "token": clients["ana"].connection.http.headers["Authorization"].removeprefix("Bearer "),
        "trained": "&".join(f"job={job.id}" for job in trained),
        "done": trained[-1].id,
        "live": live.id,
        "failed": failed.id,
        "waiting": waiting[0].id,
        "pipeline": season.id,
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
    page.get_by_role("button", name="Download as ONNX").wait_for(timeout=PATIENCE_MS)
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
    if everything:
        pages |= {
            "job-failed": (f"{base}/jobs/{facts['failed']}", lambda p: p.locator(".log").first.wait_for()),
            "job-waiting": (f"{base}/jobs/{facts['waiting']}", lambda p: p.locator(".log").first.wait_for()),
            "pipelines": (f"{base}/pipelines", lambda p: p.get_by_role("link", name="season").wait_for()),
            "pipeline": (
                f"{base}/pipelines/{facts['pipeline']}",
                lambda p: p.get_by_text("fold").first.wait_for(),
            ),
            "search": (
                f"{base}/lake/search?kind=job&q=rate+%3E+0.1",
                lambda p: p.get_by_text("train at 0.9").first.wait_for(),
            ),
            "messages": ("/messages", lambda p: p.get_by_text("Ways to reach you").first.wait_for()),
            "app-code": (f"{base}/apps/stars?tab=code", lambda p: p.locator("pre").first.wait_for()),
            "audit": (f"{base}/audit", lambda p: p.get_by_role("row").nth(2).wait_for()),
        }
        views = {
            f"-{width}-{theme}": ({"width": width, "height": 900}, theme)
            for width in WIDTHS
            for theme in THEMES
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
            page.set_viewport_size(size)  # the page before may have made it taller
            page.goto(server.address + path)
            ready(page)
            if path.startswith("/p/"):
                page.get_by_text("Live", exact=True).wait_for()
            page.get_by_text("Loading…").first.wait_for(state="detached")
            keep(page, folder / f"{name}{suffix}.png", whole=everything)
        page.context.close()


STORY = ("overview", "apps", "app", "app-next", "job-live", "compare", "study", "provenance")
"""The pages of the moving picture, one after another."""
SMALLER, EACH_MS = (960, 600), 2200


def tell(folder: Path) -> None:
    """Makes of some of the pictures one that moves: dashboard.gif."""
    frames = []
    for name in STORY:
        with Image.open(folder / f"{name}.png") as taken:
            frames.append(taken.convert("RGB").resize(SMALLER, Image.Resampling.LANCZOS).quantize(96))
    frames[0].save(
        folder / "dashboard.gif",
        save_all=True,
        append_images=frames[1:],
        duration=EACH_MS,
        loop=0,
        optimize=True,
    )


def keep(page: Page, file: Path, *, whole: bool = False) -> None:
    """In as many colours as a page has: a third of the bytes, and nobody sees the difference."""
    if whole:  # the frame scrolls inside the window: a window as tall as the page shows all of it
        width = page.viewport_size["width"] if page.viewport_size else DESK["width"]
        height = page.evaluate("document.querySelector('main')?.scrollHeight ?? 0") + 120
        page.set_viewport_size({"width": width, "height": min(max(height, 900), TALLEST)})
        page.wait_for_timeout(500)  # charts draw anew in the new window
    with Image.open(io.BytesIO(page.screenshot())) as taken:
        taken.convert("RGB").quantize(256).save(file, optimize=True)


def main(folder: Path, everything: bool) -> None:
    with tempfile.TemporaryDirectory() as home, running(Path(home)) as server, browser.running() as chrome:
        photograph(chrome, server, work(server), folder, everything)
    if not everything:
        tell(folder)


if __name__ == "__main__":
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=Path, help="the folder that the photographs go to")
    asked.add_argument("--all", action="store_true", help="every page in light, dark and on a phone")
    given = asked.parse_args()
    main(given.folder, everything=given.all)
