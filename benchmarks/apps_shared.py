"""Eight apps of four people share two cores: accuracy lost over time under each way of sharing.

    python -m benchmarks.apps_shared --trials runs.jsonl [--seed 0] [--minutes 10] [--ways easel round-robin optuna flaml]

Each way has the same two cores for the same minutes. `easel` and every other policy of the scheduler by its name
(`round-robin`) choose (app, candidate) whenever a core is free, from the same candidates. `optuna` (TPE over the same
zoo: family, then that family's settings) and `flaml` are what people do without a scheduler: they take turns, a
quarter of the time for each person, one core for each of the person's two apps; their figures are the mean over who
goes first. What an app's best model so far, by validation, gets right of a test set nobody else sees is its accuracy
at a moment; before the first model it is the share of the most frequent class. Accuracy lost: the best that any way
found for the app, less that.

All training is real; time is processor time of one thread, so that other work on the machine does not count, and two
cores are two clocks. A trial that one way has run is not run again for another: the same seed gives the same model.
Of what public data taught the eight sets are left out. Runs are kept in the file `--trials`, so that a run that was
interrupted goes on. FLAML is asked in a process of its
own whose clock is processor time; it sees series and pictures as rows of numbers.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.apps import load
from easel.declare.parse import parse_program
from easel.errors import EaselError
from easel.flow.apps.beliefs import START_S, Costs
from easel.flow.apps.learned_book import LearnedBook
from easel.flow.experience.file import packaged_experience
from easel.ids import AppId
from easel.match.candidate import Candidate
from easel.match.loop import Diverged
from easel.match.propose import propose_candidates
from easel.match.read import read_example
from easel.match.split import assign_folds
from easel.match.summary import DataSummary, strata, summarise
from easel.match.train import Conditions, train
from easel.records.decision import StartTrial
from easel.records.tenant import PastTrial
from easel.schedule.experience import Experience
from easel.schedule.policies import named
from easel.schedule.state import PoolDevice, PoolState, Pull, Tenant

PEOPLE = {
    "ana": ("mnist_5k", "wine"),
    "ben": ("digits", "breast_cancer"),
    "chloe": ("GunPoint", "ItalyPowerDemand"),
    "dan": ("BasicMotions", "JapaneseVowels"),
}
CORES = 2
UNFINISHED = 75
"""The exit code of a stretch after which there is more to do."""
Curve = list[tuple[float, float, float]]
"""`(seconds, validation, test accuracy)` of every model, in the order in which they were there."""


@dataclass(frozen=True)
class Ran:
    """One trial: `seconds` it took; a quality of None when it failed, or would have taken longer than that."""

    app: str
    candidate: str
    seconds: float
    quality: float | None
    test: float | None
    cut: bool


@dataclass
class App:
    """A data set as an app, read when it is first needed. `seed` draws its test set, where it comes with none, and is
    that of all training."""

    name: str
    seed: int = 0

    @cached_property
    def _read(self) -> tuple[Any, ...]:
        loaded = load(self.name, split=42 + self.seed)
        if loaded is None:
            raise SystemExit("the evaluation data are not here: set EASEL_DATA")
        program = parse_program(loaded[0])
        train_set, test_set = ([read_example(program, *pair) for pair in pairs] for pairs in loaded[1:])
        folds = assign_folds(strata(program, train_set))
        return program, train_set, test_set, folds, propose_candidates(program, summarise(program, train_set))

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        found: tuple[Candidate, ...] = self._read[4]
        return found

    @property
    def summary(self) -> DataSummary:
        program, train_set, *_ = self._read
        return summarise(program, train_set)

    @property
    def majority(self) -> float:
        """What somebody gets right who always says the most frequent class of the training set."""
        program, train_set, test_set, _, _ = self._read
        (usual, _), *_ = Counter(strata(program, train_set)).most_common(1)
        return float(np.mean([label == usual for label in strata(program, test_set)]))

    def try_out(self, candidate: Candidate, budget_s: float) -> Ran:
        program, train_set, test_set, folds, _ = self._read
        began = time.process_time()
        conditions = Conditions(seed=self.seed, budget_s=budget_s, clock=time.process_time)
        try:
            trained = train(candidate, program, train_set, folds, conditions)
        except (EaselError, Diverged) as error:
            print(f"  {self.name} {candidate.name}: {error}", file=sys.stderr)
            return Ran(self.name, candidate.name, time.process_time() - began, None, None, cut=False)
        seconds = time.process_time() - began
        answers = trained.model.predict([example.input for example in test_set]).argmax(1)
        truth = trained.model.target([example.output for example in test_set])
        return Ran(
            self.name,
            candidate.name,
            seconds,
            trained.measurement.quality,
            float(np.mean(answers == truth)),
            cut=trained.measurement.stopped == "out of time",
        )


@dataclass
class Trials:
    """Every trial of every way, once."""

    path: Path
    apps: Mapping[str, App]
    known: dict[tuple[str, str], list[Ran]] = field(default_factory=dict)
    stretch_s: float = np.inf
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                self._keep(Ran(**json.loads(line)))

    def _keep(self, ran: Ran) -> None:
        self.known.setdefault((ran.app, ran.candidate), []).append(ran)

    def pause(self) -> None:
        """Ends the process where its stretch is over; what was found is kept."""
        if time.monotonic() - self.began > self.stretch_s:
            raise SystemExit(UNFINISHED)

    def ask(self, app: str, candidate: Candidate, budget_s: float) -> Ran:
        """The trial as it goes within `budget_s`. One that was cut is asked anew where there is more time now."""
        for ran in self.known.get((app, candidate.name), []):
            if not ran.cut or abs(ran.seconds - budget_s) < 0.15 * budget_s:
                return ran
        self.pause()
        ran = self.apps[app].try_out(candidate, budget_s)
        print(f"  {app} {candidate.name}: {ran.test} ({ran.seconds:.1f} s)", file=sys.stderr, flush=True)
        self._keep(ran)
        with self.path.open("a") as file:
            file.write(json.dumps(asdict(ran)) + "\n")
        return ran


@dataclass(frozen=True)
class Started:
    """A trial under way on a core, as the pool sees it: nobody looks at `ran` before `ends`."""

    decision: StartTrial
    candidate: Candidate
    ran: Ran
    ends: float
    number: int


def share(policy_name: str, apps: Mapping[str, App], trials: Trials, limit_s: float) -> dict[str, Curve]:
    """The service loop with `CORES` clocks: whichever core is free first asks the policy for its next trial."""
    policy = named(policy_name)
    started: list[Started] = []
    curves: dict[str, Curve] = {name: [] for name in apps}
    free = [0.0] * CORES
    while min(free) < limit_s:
        core = int(np.argmin(free))
        now = free[core]
        done = [one for one in started if one.ends <= now]
        state = pool_state(apps, done, [one for one in started if one.ends > now], len(started))
        decision = policy.decide(state.on(PoolDevice(f"core-{core}"), now))
        if not isinstance(decision, StartTrial):
            waiting = [one.ends for one in started if one.ends > now]
            free[core] = min(waiting, default=limit_s)
            continue
        candidate = apps[decision.tenant].candidates[decision.index]
        result = trials.ask(decision.tenant, candidate, max(1.0, limit_s - now))
        free[core] = now + START_S + result.seconds
        started.append(Started(decision, candidate, result, free[core], len(started)))
        if result.quality is not None and result.test is not None:
            curves[decision.tenant].append((free[core], result.quality, result.test))
    return {name: sorted(curve) for name, curve in curves.items()}


def pool_state(
    apps: Mapping[str, App], done: Sequence[Started], running: Sequence[Started], step: int
) -> PoolState:
    """The pool as its keeper would have it: everybody's tenant under what all trials so far have taught."""
    past = [
        PastTrial(
            number,
            AppId(one.ran.app),
            "accuracy",
            one.candidate.name,
            one.candidate.family,
            one.candidate.promise,
            one.candidate.cost_s,
            one.ran.quality,
            one.ran.seconds + START_S,
            None,
            0,
        )
        for number, one in enumerate(sorted(done, key=lambda one: one.ends))
    ]
    prior, costs = LearnedBook(past, without(apps)), Costs(past)
    order = {
        id(one): number + 1 for number, one in enumerate(sorted([*done, *running], key=lambda o: o.number))
    }
    tenants = {}
    for name, app in apps.items():
        fresh = Tenant(
            name,
            tuple(candidate.name for candidate in app.candidates),
            prior.prior(name, app.candidates, app.summary).belief(),
            costs.seconds(app.candidates),
            ceiling=1.0,
        )
        mine = sorted((one for one in done if one.ran.app == name), key=lambda one: one.ends)
        pulls = [
            Pull(one.decision.index, float("nan") if one.ran.quality is None else one.ran.quality)
            for one in mine
        ]
        flying = [one for one in running if one.ran.app == name]
        tenant = fresh.resumed(
            pulls, [0.0] * len(pulls), [one.decision for one in flying], len(pulls) + len(flying)
        )
        tenants[name] = tenant.changed(served_at=max((order[id(one)] for one in [*mine, *flying]), default=0))
    return PoolState(tenants, PoolDevice("core"), step=step)


def without(names: Collection[str]) -> Experience:
    """What public data taught, without the data sets of these names."""
    known = packaged_experience()
    return known.without({one.group for one in known.sets if one.name.rpartition("/")[2] in names})


def optuna_turn(name: str, trials: Trials, limit_s: float) -> Curve:
    """TPE over family and that family's settings, as long as the turn lasts; a last trial is cut, not lost."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    choices: dict[str, dict[str, list[Any]]] = {}
    for candidate in trials.apps[name].candidates:
        mine = choices.setdefault(candidate.family, {})
        for key, value in candidate.settings:
            if value not in mine.setdefault(key, []):
                mine[key].append(value)
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
    now, curve = 0.0, Curve()
    while now < limit_s:
        trial = study.ask()
        family = trial.suggest_categorical("family", list(choices))
        settings = tuple(
            (key, trial.suggest_categorical(f"{family}.{key}", values))
            for key, values in choices[family].items()
        )
        ran = trials.ask(name, Candidate(family, settings), max(1.0, limit_s - now))
        now += max(ran.seconds, 0.01)
        if ran.quality is None or ran.test is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            continue
        study.tell(trial, ran.quality)
        curve.append((now, ran.quality, ran.test))
    return curve


def flaml_turn(name: str, trials: Trials, limit_s: float) -> Curve:
    """FLAML with its own defaults, in a process of its own."""
    kept = trials.path.with_suffix(".flaml.json")
    found: dict[str, Curve] = json.loads(kept.read_text()) if kept.exists() else {}
    key = f"{name} {limit_s:g}"
    if key not in found:
        trials.pause()
        with tempfile.TemporaryDirectory() as made:
            out = Path(made) / "curve.json"
            command = [sys.executable, "-m", "benchmarks.apps_flaml", name, str(limit_s), str(out)]
            subprocess.run(command, check=True)
            found[key] = json.loads(out.read_text())
        kept.write_text(json.dumps(found, indent=1) + "\n")
    return [(seconds, validation, test) for seconds, validation, test in found[key]]


def accuracies(curve: Curve, before: float, times: np.ndarray) -> np.ndarray:
    """Test accuracy, at each of `times`, of the model that validated best until then."""
    found = np.full(len(times), before)
    best = -np.inf
    for seconds, validation, test in curve:
        if validation > best:
            best = validation
            found[times >= seconds] = test
    return found


def warm_up() -> None:
    """Libraries are imported ahead, as the platform does for its trials and FLAML's process does before its turn."""
    program = parse_program("{input: {[Tensor[4]], [next]}, output: {[Tensor[2]], []}}")
    rng = np.random.default_rng(0)
    pairs = [(rng.normal(size=(12, 4)) + k % 2, k % 2) for k in range(20)]
    examples = [read_example(program, *pair) for pair in pairs]
    for family in ("svm", "extra_trees", "logistic_regression", "minirocket", "fcn"):
        conditions = Conditions(seed=0, budget_s=5.0, clock=time.process_time, epochs=1)
        train(Candidate(family), program, examples, [k // 2 % 5 for k in range(20)], conditions)


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--trials", type=Path, required=True)
    arguments.add_argument("--minutes", type=float, default=10.0)
    arguments.add_argument("--ways", nargs="*", default=["easel", "round-robin", "optuna", "flaml"])
    arguments.add_argument("--people", nargs="*", default=list(PEOPLE), choices=list(PEOPLE))
    arguments.add_argument(
        "--seed", type=int, default=0, help="of splits and training: with a file of trials of its own"
    )
    arguments.add_argument("--json", type=Path)
    arguments.add_argument(
        "--stretch",
        type=float,
        default=np.inf,
        help="start no trial after so many seconds: exit 75, run again",
    )
    options = arguments.parse_args()
    limit = 60.0 * options.minutes
    warm_up()
    apps = {name: App(name, options.seed) for person in options.people for name in PEOPLE[person]}
    trials = Trials(options.trials, apps, stretch_s=options.stretch)
    times = np.linspace(0.0, limit, 2401)
    tested: dict[str, dict[str, np.ndarray]] = {}
    counts: dict[str, int] = {}
    turn = limit / len(options.people)
    for way in options.ways:
        print(way, file=sys.stderr, flush=True)
        if way in ("optuna", "flaml"):
            take_turn = optuna_turn if way == "optuna" else flaml_turn
            curves = {name: take_turn(name, trials, turn) for name in apps}
            starts: Sequence[float] = [turn * k for k in range(len(options.people))]
        else:
            curves, starts = share(way, apps, trials, limit), [0.0]
        counts[way] = sum(len(curve) for curve in curves.values())
        tested[way] = {
            name: np.mean([accuracies(curves[name], app.majority, times - start) for start in starts], axis=0)
            for name, app in apps.items()
        }
    top = {name: max(found[name].max() for found in tested.values()) for name in apps}
    marks = [k * limit for k in (0.05, 0.1, 0.25, 0.5, 1.0)]
    header = "".join(f" at {mark:.0f} s |" for mark in marks)
    first = min(60.0, limit)
    print(
        f"| way | models | mean loss over time | over {first:.0f} s |{header}\n|---|---:|---:|---:|{'---:|' * len(marks)}"
    )
    summary = {}
    for way, found in tested.items():
        loss = np.mean([top[name] - found[name] for name in apps], axis=0)
        cells = "".join(f" {loss[np.searchsorted(times, mark - 1e-9)]:.4f} |" for mark in marks)
        sooner = float(loss[times <= first].mean())
        print(f"| {way} | {counts[way]} | {loss.mean():.4f} | {sooner:.4f} |{cells}")
        summary[way] = {
            "mean loss": float(loss.mean()),
            "first minute": sooner,
            "apps": {
                n: {"mean loss": float((top[n] - found[n]).mean()), "end": float(found[n][-1])} for n in apps
            },
        }
    print("\n| app |" + "".join(f" {way}: mean loss, at the end |" for way in tested))
    print("|---|" + "---|" * len(tested))
    for name in apps:
        cells = "".join(f" {(top[name] - f[name]).mean():.4f}, {f[name][-1]:.4f} |" for f in tested.values())
        print(f"| {name} |{cells}")
    if options.json:
        options.json.write_text(json.dumps({"minutes": options.minutes, "ways": summary}, indent=1) + "\n")


if __name__ == "__main__":
    main()
