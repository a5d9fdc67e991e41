"""Studies as tenants of the pool: what their next point may bring, how it starts, what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from easel.declare.resources import Resources
from easel.declare.study import provisioned
from easel.errors import Conflict
from easel.flow.lake.upload import Lake
from easel.flow.studies import advance
from easel.flow.studies.advance import ReadyStudy
from easel.flow.studies.prices import per_hour
from easel.flow.studies.worth import NEXT_POINT, tenant_of
from easel.ids import JobId
from easel.records.decision import Reasons, StartTrial, trial_of_json
from easel.records.event import Event
from easel.records.study import Finished, StoredStudy, StudyPoint, StudyState
from easel.records.tenant import PoolTurn, Terms
from easel.store import studies, tenants
from easel.store.engine import Tx
from easel.tenancy.source import Change, Flight, StartGrant, TenantGone, TenantOffer


@dataclass(frozen=True)
class StudyDossier:
    """A study that runs, or whose last points still do, as its records say; `ready` is its next point once it is
    known. `per_hour` is what that point would be billed."""

    study: StoredStudy
    points: tuple[StudyPoint, ...]
    terms: Terms
    ready: ReadyStudy | None = None
    per_hour: float = 0.0

    @property
    def id(self) -> str:
        return self.study.id

    @property
    def running(self) -> list[StudyPoint]:
        return [p for p in self.points if p.outcome is None and p.job_id is not None]


@dataclass
class StudySource:
    """Every study that runs. A suggestion holds as long as its study does not change."""

    lake: Lake
    _known: dict[str, StudyDossier] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)
    """Studies whose next point is to be worked out."""

    def load(self, tx: Tx, turn: PoolTurn) -> list[TenantOffer]:
        before, self._known = self._known, {}
        self._asked = set()
        wanted = {study.id for study in studies.by_state(tx, StudyState.RUNNING)}
        wanted |= {point.study_id for point in studies.running_points(tx)}
        for study_id in sorted(wanted):
            self._remember(tx, study_id, before.get(study_id))
        return [self._offer(one) for one in self._known.values()]

    def touched(self, event: Event) -> str | None:
        return event.subject if event.kind.startswith("study.") else None

    def read(self, tx: Tx, name: str) -> list[Change]:
        before = self._known.pop(name, None)
        self._remember(tx, name, before)
        known = self._known.get(name)
        if known is not None:
            return [self._offer(known)]
        return [] if before is None else [TenantGone(name)]

    def _remember(self, tx: Tx, study_id: str, before: StudyDossier | None) -> None:
        study = studies.maybe(tx, study_id)
        if study is None:
            return
        one = StudyDossier(study, tuple(studies.points(tx, study.id)), tenants.terms(tx, study.id))
        if study.state is not StudyState.RUNNING and not one.running:
            return
        if before is not None and before.ready is not None and before.study.revision == study.revision:
            one = replace(one, ready=before.ready, per_hour=before.per_hour)
        elif study.state is StudyState.RUNNING:
            self._asked.add(study.id)
        self._known[study.id] = one

    def _offer(self, one: StudyDossier) -> TenantOffer:
        need = _need(one)
        flights = [
            Flight(
                p.job_id,
                _trial_of(p, one.id),
                provisioned(one.study.spec.job.resources, p.point),
                (one.study.project_id, one.study.user_id),
                stops=one.study.spec.slices is not None,
                goes_back=one.study.spec.slices is not None,
            )
            for p in one.running
            if p.job_id is not None
        ]
        tenant = tenant_of(one.study, one.points, one.terms, need, [f.trial for f in flights], one.per_hour)
        if one.ready is None:
            tenant = tenant.changed(taken=~tenant.taken)
        told = [p.ended_at for p in one.points if p.ended_at is not None]
        return TenantOffer(
            tenant,
            {one.id: (one.study.project_id, one.study.user_id)},
            replace(one.terms, asked=True),  # a study ends by its own budget, not by what is expected of it
            best=tenant.best if told else None,
            flights=tuple(flights),
            changed_at=max(told, default=one.study.created_at),
        )

    def prepare(self) -> list[Change]:
        """Work out next points, end what is hopeless or over budget, note what would be recommended."""
        if not self._known:
            return []
        if any(one.running for one in self._known.values()):
            advance.stop_runs(self.lake.store)
        advance.note_recommendations(self.lake.store)
        changes: list[Change] = []
        waiting: set[str] = set()
        for study_id in sorted(self._asked):
            one = self._known.get(study_id)
            if one is None or one.study.state is not StudyState.RUNNING:
                continue
            found = advance.prepare(self.lake, one.study, one.points)
            if isinstance(found, ReadyStudy):
                with self.lake.store.read() as tx:
                    rate = per_hour(tx, one.study.spec, found.suggestion.point)
                after = self._known[study_id] = replace(one, ready=found, per_hour=rate)
                changes.append(self._offer(after))
            elif isinstance(found, Finished) and not one.running:
                advance.finish(self.lake.store, one.study, found.reason)
            elif found is None and len(one.running) < one.study.spec.workers:
                waiting.add(study_id)  # it has room for a point, but something it needs is away
        self._asked = waiting
        return changes

    def learnable(self) -> int | None:
        return None

    def relearn(self, as_of: int) -> list[TenantOffer]:
        return []

    def start(self, tx: Tx, trial: StartTrial, grant: StartGrant) -> Flight:
        one = self._known[trial.tenant]
        if one.ready is None:
            raise Conflict(f"study {one.study.name} has no point to start")
        job = advance.start_point(tx, one.ready, trial, grant.turn)
        sliced = one.study.spec.slices is not None
        owner = (one.study.project_id, one.study.user_id)
        return Flight(job.id, trial, grant.resources, owner, stops=sliced, goes_back=sliced)

    def started(self, flight: Flight, grant: StartGrant) -> None:
        """The event that tells of the point has it read again."""

    def settle(self, tx: Tx, over: Sequence[JobId]) -> int:
        return advance.settle(tx, over)

    def settled(self, settlement: int) -> list[Change]:
        """The events that tell of the points have their studies read again."""
        return []


def _trial_of(point: StudyPoint, study_id: str) -> StartTrial:
    """The decision that started a running point. One that a person had run, to verify a recommendation, has none of its
    own: nobody chose its device, and nothing was expected of it."""
    if point.decision is not None:
        return trial_of_json(point.decision, study_id, 0)
    reasons = Reasons("asked for", 0.0, 0.0, 0.0, 0.0, 0.0)
    return StartTrial(study_id, NEXT_POINT, 0, "", reasons, limit=0.0)


def _need(one: StudyDossier) -> Resources:
    asked = one.study.spec.job.resources
    return asked if one.ready is None else provisioned(asked, one.ready.suggestion.point)
