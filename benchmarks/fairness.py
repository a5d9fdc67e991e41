"""One member floods the server; how long does another one wait?

    python -m benchmarks.fairness --seconds 10

A server of its own, two members. First the polite one alone asks for a page ten times a second; then again while the greedy one
keeps 64 connections busy without a pause and tries to hold 600 live streams open; so three times over. Prints both medians and 99th
percentiles, and how many of the greedy one's calls were served and refused. The greedy one's client computes at a lower priority than
the server: it stands for a machine elsewhere.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import httpx

from easel.testing.server import running

CONNECTIONS, STREAMS = 64, 600
TURNS = 3


async def polite(address: str, token: str, seconds: float) -> list[float]:
    taken: list[float] = []
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as http:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            began = time.monotonic()
            (await http.get("/api/v1/projects/astro/jobs")).raise_for_status()
            taken.append(time.monotonic() - began)
            await asyncio.sleep(0.1)
    return taken


async def flood(address: str, token: str, over: asyncio.Event, counts: dict[str, int]) -> None:
    limits = httpx.Limits(max_connections=CONNECTIONS + STREAMS, max_keepalive_connections=CONNECTIONS)
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60, limits=limits) as http:

        async def ask() -> None:
            while not over.is_set():
                answer = await http.get("/api/v1/projects/astro/jobs")
                counts["served" if answer.status_code == 200 else "refused"] += 1

        async def listen() -> None:
            async with http.stream("GET", "/api/v1/projects/astro/events/stream") as answer:
                counts["streams" if answer.status_code == 200 else "streams refused"] += 1
                if answer.status_code == 200:
                    await over.wait()

        tasks = [asyncio.create_task(listen()) for _ in range(STREAMS)]
        tasks += [asyncio.create_task(ask()) for _ in range(CONNECTIONS)]
        await over.wait()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _greedy(address: str, token: str, seconds: float) -> None:
    """In a process of its own, so that making the flood does not slow the one who measures."""

    os.nice(5)

    async def story() -> None:
        over = asyncio.Event()
        counts = dict.fromkeys(("served", "refused", "streams", "streams refused"), 0)
        asyncio.get_running_loop().call_later(seconds, over.set)
        await flood(address, token, over, counts)
        print(", ".join(f"{count} {what}" for what, count in counts.items()), flush=True)

    asyncio.run(story())


def _said(taken: list[float]) -> tuple[float, float]:
    return statistics.median(taken) * 1000, sorted(taken)[int(len(taken) * 0.99)] * 1000


async def measure(seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), command="serve") as server:
        client = server.client()
        client.projects.create("astro")
        tokens = []
        headers = {"Authorization": f"Bearer {server.admin_token}"}
        for name in ("polite", "greedy"):
            body = {"name": name, "role": "member"}
            made = httpx.post(
                f"{server.address}/api/v1/projects/astro/users", json=body, headers=headers, timeout=60
            )
            tokens.append(made.json()["token"]["secret"])
        all_alone: list[float] = []
        all_beside: list[float] = []
        for _ in range(TURNS):
            all_alone += await polite(server.address, tokens[0], seconds)
            words = [server.address, tokens[1], str(seconds + 4)]
            greedy = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "benchmarks.fairness", "--flood", *words
            )
            await asyncio.sleep(3)
            all_beside += await polite(server.address, tokens[0], seconds)
            await greedy.wait()
        alone, beside = _said(all_alone), _said(all_beside)
    print("| the polite member | median | 99 % |\n|---|---|---|")
    print(f"| alone | {alone[0]:.0f} ms | {alone[1]:.0f} ms |")
    print(f"| beside the flood | {beside[0]:.0f} ms | {beside[1]:.0f} ms |")
    print(f"| times | {beside[0] / alone[0]:.1f} | {beside[1] / alone[1]:.1f} |")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seconds", type=float, default=10.0)
    asked.add_argument("--flood", nargs=3, help=argparse.SUPPRESS)
    given = asked.parse_args()
    if given.flood:
        _greedy(given.flood[0], given.flood[1], float(given.flood[2]))
    else:
        asyncio.run(measure(given.seconds))


if __name__ == "__main__":
    main()
