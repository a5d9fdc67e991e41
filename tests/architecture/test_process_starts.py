"""What users wrote or uploaded is started by `run/sandbox.py` and nowhere else; whatever starts a process is listed."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "easel"
STARTS = {
    "run/sandbox.py": "whatever users wrote",
    "wire/light.py": "nothing; it evaluates the annotations of our own wire models, which are text",
    "run/trial_walls.py": "trials, in a child that walls itself in",
    "run/agent.py": "nothing but what the sandbox started",
    "run/command_watch.py": "nothing but what the sandbox started",
    "run/exec_socket.py": "programs beside a running job, by `run/enter.py`",
    "run/egress.py": "the proxy beside a job",
    "run/enter.py": "a program inside the walls that a job has already",
    "run/installing.py": "the installer's version, an empty environment; installing goes through the sandbox",
    "run/executors/local.py": "the worker",
    "run/executors/ray.py": "the driver of Ray",
    "run/executors/ray_driver.py": "workers on Ray's machines",
    "run/executors/slurm.py": "sbatch and its kin",
    "run/fork_server.py": "warm processes of the platform",
    "run/kernels.py": "the builder of our own GPU kernels, which reads nobody's data",
    "run/forking.py": "agents",
    "run/images.py": "skopeo, podman",
    "run/python_versions.py": "interpreters of the admin's list and the system's, asked for their version; uv",
    "run/notebook_runner.py": "a kernel, beside which it runs behind the walls already",
    "run/gpus.py": "nvidia-smi",
    "run/sample.py": "nvidia-smi",
    "run/warm.py": "the fork server",
    "run/worker.py": "a child that trims the cache",
    "flow/experience/gather.py": "the platform's own measuring",
    "flow/simulate.py": "the simulator, apart from the server",
    "sdk/git.py": "git, on the user's own machine",
    "serve/model_pool.py": "processes that hold models and wall themselves in",
}
"""Files that name a way to start a process, and what they start with it."""
SANDBOX = {"easel.run.sandbox.start"}
WAYS = {
    "subprocess": {"Popen", "run", "call", "check_call", "check_output", "getoutput", "getstatusoutput"},
    "os": {"fork", "forkpty", "system", "popen", "posix_spawn", "posix_spawnp", "startfile"}
    | {
        f"{kind}{how}"
        for kind in ("exec", "spawn")
        for how in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")
    },
    "pty": {"spawn", "fork"},
    "multiprocessing": {"Process", "Pool", "get_context"},
    "asyncio": {"create_subprocess_exec", "create_subprocess_shell"},
}
CODE = {"exec", "eval", "compile"}


def starts_in(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.attr in WAYS.get(node.value.id, ()):
                found.add(f"{node.value.id}.{node.attr}")
        elif isinstance(node, ast.ImportFrom) and node.module in WAYS:
            found |= {f"{node.module}.{each.name}" for each in node.names if each.name in WAYS[node.module]}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CODE:
            found.add(node.func.id)
    return found


def test_processes_are_started_only_where_it_is_known_what_they_run() -> None:
    strangers = {}
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        if name.startswith("testing/") or name in STARTS:
            continue
        if found := starts_in(ast.parse(path.read_text())):
            strangers[name] = sorted(found)
    assert strangers == {}, "start it with easel.run.sandbox.start, or say in STARTS what it runs"


def test_installing_packages_goes_through_the_sandbox() -> None:
    tree = ast.parse((SOURCE / "run" / "installing.py").read_text())
    named = {
        f"{node.module}.{each.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    assert named >= SANDBOX
    assert starts_in(tree) == {"subprocess.run"}, "only the installer's version is asked for outside"
