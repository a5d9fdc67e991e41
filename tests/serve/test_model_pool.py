"""Model processes: answers as the model gives them, together where they come together; what happens when one dies."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from anyio import to_thread
from tests.match import worlds

from easel.errors import EaselError, InvalidInput, Misconfigured, TryLater
from easel.match.candidate import Candidate
from easel.match.train import Conditions, train
from easel.run import landlock
from easel.serve import answers
from easel.serve.model_forms import OWN, READY, Unreadable
from easel.serve.model_pool import ModelPool, PoolOptions
from easel.serve.model_process import ModelOrder
from easel.serve.recent import Recent


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a line that was learned, and a secret."""
    made = tmp_path_factory.mktemp("home")
    program, examples = worlds.line()
    folds = [number % 2 for number in range(len(examples))]
    conditions = Conditions(seed=0, budget_s=20, clock=time.monotonic)
    trained = train(Candidate("linear"), program, examples, folds, conditions)
    trained.model.save(made / "models" / "line")
    (made / "key").write_text("secret")
    return made


def order(home: Path, name: str = "line", program: str | None = None, form: str = OWN) -> bytes:
    text = program or str(worlds.line()[0])
    return json.dumps(asdict(ModelOrder(str(home / "models" / name), text, "", form))).encode()


def body(*objects: Any) -> bytes:
    return json.dumps({"objects": list(objects)}).encode()


def asked(home: Path, work: Callable[[ModelPool], Awaitable[Any]], **options: float) -> Any:
    """What `work` returns with a pool of one process."""

    async def main() -> Any:
        chosen = {"processes": 1, "memory_mb": 1024, "answer_limit_s": 30.0, **options}
        pool = ModelPool(PoolOptions(home, home / "models", **chosen))  # type: ignore[arg-type]
        try:
            return await work(pool)
        finally:
            pool.close()

    return asyncio.run(main())


async def ask(pool: ModelPool, home: Path, data: bytes, name: str = "line") -> Any:
    return json.loads(await pool.ask(order(home, name), name, data) + b"}")


async def refused(pool: ModelPool, home: Path, data: bytes, name: str = "line") -> EaselError:
    with pytest.raises(EaselError) as caught:
        await ask(pool, home, data, name)
    return caught.value


def row(value: float) -> list[float]:
    return [value] * 3


def test_answers_refusals_and_notes_come_from_the_process_as_they_are(home: Path) -> None:
    async def work(pool: ModelPool) -> None:
        many = await asyncio.gather(*(ask(pool, home, body(row(k / 10))) for k in range(40)))
        together = await ask(pool, home, body(*(row(k / 10) for k in range(40))))
        alone = [one["answers"][0]["value"] for one in many]
        assert alone == pytest.approx([one["value"] for one in together["answers"]])
        wrong = await refused(pool, home, body(["a word"] * 3))
        assert isinstance(wrong, InvalidInput)
        assert "expected 3 numbers" in wrong.message
        assert isinstance(await refused(pool, home, b"{"), Unreadable)
        assert "body.objects" in (await refused(pool, home, b"{}")).message
        skipped = json.dumps({"objects": [["x"] * 3, row(1.0)], "skip_bad": True}).encode()
        answers = (await ask(pool, home, skipped))["answers"]
        assert "expected 3 numbers" in answers[0]["error"]
        assert "value" in answers[1]
        escaped = b'{"objects": [{"\\u0024file": "/etc/passwd"}]}'
        assert "cannot be named here" in (await refused(pool, home, escaped)).message

    asked(home, work)


def test_a_process_that_dies_is_started_again_and_only_what_kills_it_twice_is_refused(home: Path) -> None:
    async def work(pool: ModelPool) -> None:
        await ask(pool, home, body(row(1.0)))
        [pid] = pool.pids
        os.kill(pid, signal.SIGSTOP)  # the questions wait in it when it dies
        questions = [asyncio.create_task(ask(pool, home, body(row(1.0)))) for _ in range(5)]
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        found = await asyncio.gather(*questions)
        assert len({json.dumps(one) for one in found}) == 1
        assert pool.pids != [pid]

        async def kill() -> None:
            killed: set[int] = set()
            while len(killed) < 2:
                for pid in set(pool.pids) - killed:
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
                await asyncio.sleep(0.01)

        os.kill(pool.pids[0], signal.SIGSTOP)
        question = asyncio.create_task(refused(pool, home, body(row(1.0))))
        await asyncio.sleep(0)
        await kill()
        error = await question
        assert isinstance(error, TryLater)
        assert "ended twice" in error.message
        assert (await ask(pool, home, body(row(1.0))))["answers"]

    asked(home, work)


def test_a_process_that_does_not_answer_is_ended_and_said_so(home: Path) -> None:
    async def work(pool: ModelPool) -> None:
        await ask(pool, home, body(row(1.0)))
        os.kill(pool.pids[0], signal.SIGSTOP)
        error = await refused(pool, home, body(row(1.0)))
        assert "did not answer within" in error.message
        assert (await ask(pool, home, body(row(1.0))))["answers"]

    asked(home, work, answer_limit_s=0.5)


def test_a_model_that_does_not_fit_into_memory_is_refused_with_the_setting_to_raise(home: Path) -> None:
    async def work(pool: ModelPool) -> None:
        error = await refused(pool, home, body(row(1.0)))
        assert isinstance(error, Misconfigured)
        assert "model_memory_mb" in error.message

    asked(home, work, memory_mb=8)


def test_the_model_asked_longest_ago_gives_way(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from easel.serve import model_process

    held = model_process.Held(100)
    sizes = iter([50, 50, 150, 60, 60])
    monkeypatch.setattr(model_process, "memory", lambda: next(sizes))
    line = str(home / "models" / "line")
    held.load(line)
    again = held.load(str(home / "models" / ".." / "models" / "line"))
    assert held.get(line) is None
    assert again is not None
    assert np.isfinite(again.predict([worlds.line()[1][0].input])).all()


def test_a_model_that_was_got_ready_answers_without_its_files(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking at an app is enough: whoever asks its model next waits for no library and no file."""
    folder = home / "models" / "ready"
    shutil.copytree(home / "models" / "line", folder)
    app: Any = SimpleNamespace(name="line")
    caller: Any = SimpleNamespace(project_id="prj_1")
    found = answers.Serving(
        app,
        "ready",
        {OWN: order(home, "ready"), READY: order(home, "ready", form=READY)},
        {},
    )
    monkeypatch.setattr(answers, "_find", lambda *_: found)

    async def work(pool: ModelPool) -> None:
        state: Any = SimpleNamespace(
            settings=SimpleNamespace(warm_trials=True),
            models=pool,
            models_ready={},
            recent_models=Recent(lambda: 0, time.monotonic),
        )
        for _ in range(2):  # the second look changes nothing
            await to_thread.run_sync(answers.make_ready, state, caller, app, "line-model:1")
        [task] = state.models_ready.values()
        await task
        shutil.rmtree(folder)
        assert (await ask(pool, home, body(row(1.0)), "ready"))["answers"]
        state.settings.warm_trials, state.models_ready = False, {}
        await to_thread.run_sync(answers.make_ready, state, caller, app, "line-model:1")
        assert state.models_ready == {}

    asked(home, work)


def test_what_is_gone_is_said(home: Path) -> None:
    async def work(pool: ModelPool) -> None:
        assert "are gone" in (await refused(pool, home, body(row(1.0)), "nothing")).message

    asked(home, work)


@pytest.mark.skipif(not landlock.available(), reason="this kernel has no Landlock")
def test_a_model_process_reads_models_and_nothing_else_of_the_home(home: Path) -> None:
    tried = (
        "import sys; from errno import *; from pathlib import Path; from easel.serve.model_process import walls\n"
        "home = Path(sys.argv[1]); walls(home, home / 'models')\n"
        "print(next((home / 'models').rglob('model.json')).read_bytes()[:1])\n"
        "for act in (lambda: (home / 'key').read_text(), lambda: (home / 'models' / 'new').write_text('x'),\n"
        "            lambda: __import__('socket').create_connection(('127.0.0.1', 9))):\n"
        "    try:\n"
        "        print('did it', act())\n"
        "    except OSError as error:\n"
        "        print('refused' if error.errno in (EACCES, EPERM, EAFNOSUPPORT) else error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", tried, str(home)], capture_output=True, text=True, check=False
    )
    assert done.stdout.split("\n")[:4] == ["b'{'", "refused", "refused", "refused"], done.stderr
