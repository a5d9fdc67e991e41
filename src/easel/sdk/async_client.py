"""`easel.AsyncClient`: the same nouns and verbs as `easel.Client`, awaited.

    async with easel.AsyncClient(project="astro") as client:
        job = await client.jobs.submit(["python", "train.py"])
        async for line in job.logs(follow=True):
            print(line.text)

Every call runs in a thread of its own, so many can be under way at once; signatures are those of the client's, and what
they return too. What has no twin here is reached by `await client.run(lambda c: c.users.get("ana"))`.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from easel.sdk.apps import Apps
from easel.sdk.client import Client
from easel.sdk.events import Events
from easel.sdk.identity import Projects
from easel.sdk.jobs import JobHandle, Jobs
from easel.sdk.lake import LakeClient
from easel.sdk.pipelines import Pipelines
from easel.sdk.prices import Bills, Profiles
from easel.sdk.queues import Queues, Secrets
from easel.sdk.studies import Studies

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


class Twin(Generic[S]):
    """Something of the client's, whose calls are awaited. `sync` is the thing itself."""

    def __init__(self, sync: S) -> None:
        self.sync = sync


def awaited(
    call: Callable[Concatenate[S, P], R],
) -> Callable[Concatenate[Twin[S], P], Coroutine[Any, Any, R]]:
    """Returns the call as a coroutine function."""

    @functools.wraps(call)
    async def twin(self: Twin[S], /, *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.to_thread(call, self.sync, *args, **kwargs)

    return twin


def iterated(
    call: Callable[Concatenate[S, P], Iterator[R]],
) -> Callable[Concatenate[Twin[S], P], AsyncIterator[R]]:
    """Returns the call as an asynchronous iterator."""

    @functools.wraps(call)
    def twin(self: Twin[S], /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[R]:
        return _each(lambda: call(self.sync, *args, **kwargs))

    return twin


def awaited_job(
    call: Callable[Concatenate[S, P], JobHandle],
) -> Callable[Concatenate[Twin[S], P], Coroutine[Any, Any, AsyncJobHandle]]:
    """Returns the call as a coroutine function that gives the job's twin."""

    @functools.wraps(call)
    async def twin(self: Twin[S], /, *args: P.args, **kwargs: P.kwargs) -> AsyncJobHandle:
        return AsyncJobHandle(await asyncio.to_thread(call, self.sync, *args, **kwargs))

    return twin


async def _each(begin: Callable[[], Iterator[R]]) -> AsyncIterator[R]:
    """One item after another, each waited for in a thread."""
    found = await asyncio.to_thread(begin)
    over = object()
    while True:
        item: Any = await asyncio.to_thread(next, found, over)
        if item is over:
            return
        yield item


class AsyncJobHandle(Twin[JobHandle]):
    """A job and how far it is. Its fields are as of the last `refresh`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.sync.about, name)

    def __repr__(self) -> str:
        return repr(self.sync)

    @property
    def id(self) -> str:
        return self.sync.id

    @property
    def state(self) -> str:
        return self.sync.state

    attempts = awaited(JobHandle.attempts)
    environment = awaited(JobHandle.environment)
    kill = awaited_job(JobHandle.kill)
    logs = iterated(JobHandle.logs)
    metrics = awaited(JobHandle.metrics)
    notebook = awaited(JobHandle.notebook)
    output = awaited(JobHandle.output)
    refresh = awaited_job(JobHandle.refresh)
    rerun = awaited_job(JobHandle.rerun)
    series = awaited(JobHandle.series)
    tail = awaited(JobHandle.tail)
    wait = awaited_job(JobHandle.wait)


class AsyncJobs(Twin[Jobs]):
    """The jobs of the client's project."""

    compare = awaited(Jobs.compare)
    counts = awaited(Jobs.counts)
    get = awaited_job(Jobs.get)
    send_code = awaited(Jobs.send_code)
    with_code = awaited(Jobs.with_code)
    submit = awaited_job(Jobs.submit)

    async def list(
        self,
        limit: int = 50,
        sort: str | None = None,
        filter: list[str] | None = None,  # noqa: A002
    ) -> AsyncIterator[AsyncJobHandle]:
        """Newest first."""
        async for job in _each(lambda: self.sync.list(limit, sort, filter)):
            yield AsyncJobHandle(job)


class AsyncStudies(Twin[Studies]):
    """The studies of the client's project."""

    create = awaited(Studies.create)
    create_from = awaited(Studies.create_from)
    delete = awaited(Studies.delete)
    export_csv = awaited(Studies.export_csv)
    front = awaited(Studies.front)
    get = awaited(Studies.get)
    import_csv = awaited(Studies.import_csv)
    importances = awaited(Studies.importances)
    list = iterated(Studies.list)
    points = awaited(Studies.points)
    region = awaited(Studies.region)
    set = awaited(Studies.set)
    slice = awaited(Studies.slice)
    start = awaited(Studies.start)
    stop = awaited(Studies.stop)
    verify = awaited(Studies.verify)
    wait = awaited(Studies.wait)


class AsyncApps(Twin[Apps]):
    """The apps of the client's project."""

    ask_checks = awaited_job(Apps.ask_checks)
    ask_report = awaited_job(Apps.ask_report)
    card = awaited(Apps.card)
    checks = awaited(Apps.checks)
    declare = awaited(Apps.declare)
    delete = awaited(Apps.delete)
    example = awaited(Apps.example)
    examples = iterated(Apps.examples)
    export = awaited(Apps.export)
    feed = awaited(Apps.feed)
    feed_labelled = awaited(Apps.feed_labelled)
    feed_path = awaited(Apps.feed_path)
    feed_reference = awaited(Apps.feed_reference)
    get = awaited(Apps.get)
    give_vectors = awaited(Apps.give_vectors)
    infer = awaited(Apps.infer)
    infer_frame = awaited(Apps.infer_frame)
    infer_path = awaited(Apps.infer_path)
    judge = awaited(Apps.judge)
    list = awaited(Apps.list)
    match = awaited(Apps.match)
    next = awaited(Apps.next)
    make_report = awaited(Apps.make_report)
    pin = awaited(Apps.pin)
    progress = awaited(Apps.progress)
    propose = awaited(Apps.propose)
    refine = awaited(Apps.refine)
    report = awaited(Apps.report)
    rollback = awaited(Apps.rollback)
    save_predictions = awaited(Apps.save_predictions)
    score = awaited(Apps.score)
    set = awaited(Apps.set)
    set_metric = awaited(Apps.set_metric)
    set_program = awaited(Apps.set_program)
    sources = awaited(Apps.sources)
    suspects = awaited(Apps.suspects)
    curve = awaited(Apps.curve)
    thumbnail = awaited(Apps.thumbnail)
    trials = awaited(Apps.trials)
    undo = awaited(Apps.undo)
    unpin = awaited(Apps.unpin)
    wait = awaited(Apps.wait)


class AsyncLake(Twin[LakeClient]):
    """The files of the client's project."""

    abort_upload = awaited(LakeClient.abort_upload)
    cat = awaited(LakeClient.cat)
    checkout = awaited(LakeClient.checkout)
    commit_upload = awaited(LakeClient.commit_upload)
    committed = iterated(LakeClient.committed)
    create_file_set = awaited(LakeClient.create_file_set)
    delete_file_set = awaited(LakeClient.delete_file_set)
    diff = iterated(LakeClient.diff)
    download = awaited(LakeClient.download)
    drop = awaited(LakeClient.drop)
    export_lineage = awaited(LakeClient.export_lineage)
    file_set = awaited(LakeClient.file_set)
    file_set_versions = awaited(LakeClient.file_set_versions)
    file_sets = iterated(LakeClient.file_sets)
    find = iterated(LakeClient.find)
    gc = awaited(LakeClient.gc)
    grant = awaited(LakeClient.grant)
    grants = awaited(LakeClient.grants)
    graph = awaited(LakeClient.graph)
    groups = awaited(LakeClient.groups)
    ls = iterated(LakeClient.ls)
    max = awaited(LakeClient.max)
    min = awaited(LakeClient.min)
    mv = awaited(LakeClient.mv)
    notes = awaited(LakeClient.notes)
    read_range = awaited(LakeClient.read_range)
    remove_note = awaited(LakeClient.remove_note)
    replay = awaited(LakeClient.replay)
    replay_plan = awaited(LakeClient.replay_plan)
    revoke = awaited(LakeClient.revoke)
    rm = awaited(LakeClient.rm)
    set_group = awaited(LakeClient.set_group)
    start_upload = awaited(LakeClient.start_upload)
    tag = awaited(LakeClient.tag)
    trace = awaited(LakeClient.trace)
    unused = awaited(LakeClient.unused)
    upload = awaited(LakeClient.upload)
    upload_files = awaited(LakeClient.upload_files)
    uploads = awaited(LakeClient.uploads)
    versions = awaited(LakeClient.versions)
    write_note = awaited(LakeClient.write_note)


class AsyncPipelines(Twin[Pipelines]):
    """Dependent jobs submitted as one."""

    get = awaited(Pipelines.get)
    list = iterated(Pipelines.list)
    rerun = awaited(Pipelines.rerun)
    submit = awaited(Pipelines.submit)
    wait = awaited(Pipelines.wait)


class AsyncProfiles(Twin[Profiles]):
    """What commands take, learned from a few runs."""

    estimate = awaited(Profiles.estimate)
    get = awaited(Profiles.get)
    list = iterated(Profiles.list)
    picture = awaited(Profiles.picture)
    plan = awaited(Profiles.plan)
    provision = awaited(Profiles.provision)
    start = awaited(Profiles.start)
    wait = awaited(Profiles.wait)


class AsyncBills(Twin[Bills]):
    """What jobs cost; budgets and prices."""

    budget = awaited(Bills.budget)
    chargeback = awaited(Bills.chargeback)
    chargeback_file = awaited(Bills.chargeback_file)
    everywhere = awaited(Bills.everywhere)
    idle_gpus = awaited(Bills.idle_gpus)
    of = awaited(Bills.of)
    prices = awaited(Bills.prices)
    remove_budget = awaited(Bills.remove_budget)
    report = awaited(Bills.report)
    set_budget = awaited(Bills.set_budget)
    set_prices = awaited(Bills.set_prices)


class AsyncQueues(Twin[Queues]):
    """Who waits and who runs, and the pool."""

    cancel_reservation = awaited(Queues.cancel_reservation)
    change = awaited(Queues.change)
    devices = awaited(Queues.devices)
    drain = awaited(Queues.drain)
    gpu_share = awaited(Queues.gpu_share)
    keep_for_apps = awaited(Queues.keep_for_apps)
    kept_for_apps = awaited(Queues.kept_for_apps)
    list = awaited(Queues.list)
    promises = awaited(Queues.promises)
    remove_device = awaited(Queues.remove_device)
    reorder = awaited(Queues.reorder)
    reservations = awaited(Queues.reservations)
    reserve = awaited(Queues.reserve)
    set_share = awaited(Queues.set_share)
    shares = awaited(Queues.shares)
    undrain = awaited(Queues.undrain)
    use_over_time = awaited(Queues.use_over_time)


class AsyncSecrets(Twin[Secrets]):
    """What jobs may know and logs may not show."""

    names = awaited(Secrets.names)
    put = awaited(Secrets.put)
    remove = awaited(Secrets.remove)


class AsyncEvents(Twin[Events]):
    """What happened, and what happens now."""

    follow = iterated(Events.follow)
    list = awaited(Events.list)


class AsyncProjects(Twin[Projects]):
    """The projects of whoever is logged in."""

    change = awaited(Projects.change)
    create = awaited(Projects.create)
    delete = awaited(Projects.delete)
    export = awaited(Projects.export)
    get = awaited(Projects.get)
    list = iterated(Projects.list)


class AsyncClient(Twin[Client]):
    """Talks to one Easel server as one user, without blocking; arguments as of `easel.Client`."""

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        project: str | None = None,
        *,
        attempts: int = 6,
    ) -> None:
        super().__init__(Client(server, token, project, attempts=attempts))
        self._begin()

    def _begin(self) -> None:
        self.jobs = AsyncJobs(self.sync.jobs)
        self.studies = AsyncStudies(self.sync.studies)
        self.apps = AsyncApps(self.sync.apps)
        self.lake = AsyncLake(self.sync.lake)
        self.pipelines = AsyncPipelines(self.sync.pipelines)
        self.profiles = AsyncProfiles(self.sync.profiles)
        self.bills = AsyncBills(self.sync.bills)
        self.queues = AsyncQueues(self.sync.queues)
        self.secrets = AsyncSecrets(self.sync.secrets)
        self.events = AsyncEvents(self.sync.events)
        self.projects = AsyncProjects(self.sync.projects)

    def in_project(self, project: str) -> AsyncClient:
        """The same log-in, in another project."""
        other = object.__new__(AsyncClient)
        Twin.__init__(other, self.sync.in_project(project))
        other._begin()
        return other

    async def run(self, call: Callable[[Client], R]) -> R:
        """Whatever the client can do, in a thread."""
        return await asyncio.to_thread(call, self.sync)

    whoami = awaited(Client.whoami)
    why = awaited(Client.why)
    simulate = awaited(Client.simulate)
    pool_sizes = awaited(Client.pool_sizes)

    async def close(self) -> None:
        await asyncio.to_thread(self.sync.close)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
