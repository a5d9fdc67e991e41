"""What workers say and are told, many of them in one transaction.

A worker says everything it has: the server compares that with what it should have, so a lost answer, a lost
request or a repeated one changes nothing in the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from easel.declare.resources import Resources, Room
from easel.errors import Conflict, EaselError
from easel.flow.workers.seal import Seal
from easel.flow.workers.tokens import refusal
from easel.records.attempt import AttemptKey, EndReason
from easel.records.worker import AttemptOffer, Puller
from easel.run.entries import JournalEntry, encode_entry, following
from easel.run.leasing import give
from easel.store import devices, jobs, offers, reservations, worker_tokens
from easel.store.engine import Store, Tx
from easel.store.offered import OfferedWork

CANDIDATES = 512
SPARE = 16
"""How many more are looked at than could be given: some may be for others."""


@dataclass(frozen=True, slots=True)
class Said:
    """One exchange of one worker. `number` grows with each; `attempts` maps what it has to the kill asked of it."""

    secret_hash: str
    name: str
    executor: str
    session: int
    number: int
    clock: float
    capacity: Room
    labels: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    address: str = ""
    attempts: Mapping[str, int] = field(default_factory=dict)
    entries: Sequence[tuple[str, Sequence[JournalEntry]]] = ()
    gone: Mapping[str, tuple[EndReason, str]] = field(default_factory=dict)
    monotonic: float | None = None
    ahead: int = 0
    remaining_s: float | None = None
    leaving: bool = False
    gave_way: frozenset[str] | None = None
    """Attempts that it has asked to stop at their next checkpoint; None where it cannot ask."""
    again: bool = False
    """The same as before, asked once more on its behalf while it waits."""


@dataclass(slots=True)
class ExchangeReply:
    session: int
    start: list[dict[str, Any]] = field(default_factory=list)
    kill: dict[str, bool] = field(default_factory=dict)
    forget: dict[str, bool] = field(default_factory=dict)
    give_way: list[str] = field(default_factory=list)
    resend: dict[str, int] = field(default_factory=dict)
    """Attempts in whose journals an entry is missing here, and from which one on they must be sent again."""

    @property
    def empty(self) -> bool:
        return not (self.start or self.kill or self.give_way or self.forget or self.resend)


def exchange(store: Store, said: Sequence[Said], seal: Seal) -> list[ExchangeReply | EaselError]:
    with store.write() as tx:
        return _Round(tx, seal).run(said)


class _Round:
    def __init__(self, tx: Tx, seal: Seal) -> None:
        self.tx, self.seal = tx, seal
        self.reports: list[offers.NewReport] = []
        self.known: list[str] = []
        self.removed: list[str] = []
        self.returned: list[str] = []
        self.heard: dict[str, int] = {}
        self.shifts: dict[str, float] = {}
        self.departed: set[str] = set()
        """Workers that have left; what is still under way from them is answered, and given nothing."""

    def run(self, said: Sequence[Said]) -> list[ExchangeReply | EaselError]:
        offers.lock_work(self.tx)
        tokens = worker_tokens.valid(self.tx, [each.secret_hash for each in said])
        self.workers = offers.worker_rows(self.tx, [each.name for each in said])
        self.beats = {name: int(row.beats) for name, row in self.workers.items()}
        answers = [self._admit(each, tokens.get(each.secret_hash)) for each in said]
        offers.beat(self.tx, self.heard)
        fine = [
            (each, answer)
            for each, answer in zip(said, answers, strict=True)
            if isinstance(answer, ExchangeReply)
        ]
        fine.sort(key=lambda pair: pair[0].number)
        drained = devices.drained(self.tx)
        held = offers.of_devices(self.tx, [each.name for each, _ in fine])
        rooms: dict[str, Puller] = {}
        for each, answer in fine:
            room = self._compare(each, answer, held.get(each.name, []))
            if each.name not in self.departed and each.name not in drained:
                rooms[each.name] = room
        offers.add_reports(self.tx, self.reports, self.known)
        offers.remove(self.tx, self.removed)
        offers.give_back(self.tx, self.returned)
        self._lease({each.name: (each, answer) for each, answer in fine}, rooms)
        return answers

    # Who it is. -----------------------------------------------------------------------------------------------

    def _admit(self, said: Said, token_id: str | None) -> ExchangeReply | EaselError:
        if token_id is None:
            return refusal(worker_tokens.is_personal(self.tx, said.secret_hash))
        row = self.workers.get(said.name)
        if row is not None and row.token_id != token_id and not row.left:
            return Conflict(
                f"there is a device {said.name!r} already, with another token: choose another name"
            )
        if row is not None and said.session and said.session != row.session:
            return Conflict(f"another worker has taken the name {said.name!r}: this one ends")
        session = said.session or (row.session + 1 if row else 1)
        stale = said.again or (row is not None and said.number <= row.beats)
        left = (
            bool(row.left) if row is not None else said.session > 0
        )  # one that was here once, and is forgotten
        if said.leaving or (left and stale and said.session):
            self.departed.add(said.name)
        if said.session == 0 or (left and not stale and not said.leaving):
            self._register(said, token_id, session)
        elif not stale and row is not None:
            self.heard[said.name] = max(said.number, self.heard.get(said.name, 0))
            if "gpu" in said.notes:
                devices.note(self.tx, said.name, said.notes)
        if said.leaving:
            offers.leave(self.tx, [said.name])
            devices.away(self.tx, said.name)
        return ExchangeReply(session)

    def _register(self, said: Said, token_id: str, session: int) -> None:
        offers.put_worker(
            self.tx,
            name=said.name,
            executor=said.executor,
            token_id=token_id,
            session=session,
            beats=said.number,
            labels=dict(said.labels),
            address=said.address,
            left=False,
        )
        notes = {**said.notes, **{f"label {name}": value for name, value in said.labels.items()}}
        devices.seen(self.tx, said.name, said.executor, said.capacity, notes)

    # What it has and should have. ---------------------------------------------------------------------------------

    def _compare(self, said: Said, answer: ExchangeReply, rows: Sequence[OfferedWork]) -> Puller:
        """Take its reports, say what differs; returns what it has room for."""
        fresh = not said.again and (said.session == 0 or said.number > self.beats.get(said.name, 0))
        if fresh:
            self.beats[said.name] = said.number
        mine = {row.key: row for row in rows}
        over = self._take_reports(said, answer, mine) if not said.again else set()
        room = said.capacity
        for key, row in mine.items():
            if row.forgotten:
                if said.leaving or (fresh and key not in said.attempts):
                    self.removed.append(key)
                elif fresh or said.again:
                    answer.forget[key] = row.forgotten == offers.FORGET_OVER
                continue
            ended = row.over or key in over
            if fresh and not ended and not row.known and key in said.attempts:
                self.known.append(key)
            if fresh and not ended and (said.leaving or key not in said.attempts):
                if self._began(row, said) or row.kill:
                    self._gone(row, *_why(row, said))
                    continue
                if said.leaving:
                    self.returned.append(key)
                    continue
                answer.start.append(self._order(row))
            # While it waits it may have got work that it had not when it asked.
            if not ended and row.kill > said.attempts.get(key, 0 if said.again else offers.KILL_NOW):
                answer.kill[key] = row.kill == offers.KILL_NOW
            if row.give_way and not ended and said.gave_way is not None and key not in said.gave_way:
                answer.give_way.append(key)
            if not ended:
                room = _less(room, row)
        if fresh:
            answer.forget |= {key: False for key in said.attempts if key not in mine}
        return Puller(said.name, room, said.labels, said.remaining_s, said.ahead)

    @staticmethod
    def _began(row: OfferedWork, said: Said) -> bool:
        """Whether the device ever had it. One that leaves says what it had; its part of a gang is not given back."""
        return bool(row.known or row.key in said.attempts or (said.leaving and row.size > 1))

    def _take_reports(self, said: Said, answer: ExchangeReply, mine: Mapping[str, OfferedWork]) -> set[str]:
        """Take each entry once and in its order, with our time; where one is missing, ask for it and what follows."""
        over: set[str] = set()
        received = {key: int(row.received) for key, row in mine.items()}
        for key, entries in said.entries:
            row = mine.get(key)
            if row is None or row.forgotten or row.over or key in over:
                continue
            new, missing = following(entries, received[key])
            if new:
                received[key] = new[-1].number + 1
                over |= {key} if self._add_report(said, row, new) else set()
            if missing:
                answer.resend[key] = received[key]
        for key, (end, reason) in said.gone.items():
            row = mine.get(key)
            if row is not None and not row.over and key not in over and not row.forgotten:
                self._gone(row, end, reason)
                over.add(key)
        return over

    def _add_report(self, said: Said, row: OfferedWork, new: Sequence[JournalEntry]) -> bool:
        """Keep what a device wrote; returns whether that was the end of it."""
        shift = self.shifts.get(row.key, row.shift)
        if shift is None and said.monotonic is not None:
            shift = self.shifts[row.key] = self.tx.now.timestamp() - said.monotonic
        timed = [encode_entry(self._timed(entry, said, shift)) for entry in new]
        last, received = new[-1].last, new[-1].number + 1
        # What another member than the first logged is dropped once it was read; how it ended is not.
        for part in [timed[:-1], timed[-1:]] if last and row.rank else [timed]:
            if part:
                self.reports.append(
                    offers.NewReport(row.executor, row.key, part, received=received, over=last, shift=shift)
                )
        return last

    def _timed(self, entry: JournalEntry, said: Said, shift: float | None) -> JournalEntry:
        """The entry with our time instead of its device's.

        By the clock that nobody sets, and by one reading of ours for the whole attempt: then neither a clock that
        is set, here or there, nor a second server with another time moves its entries apart. What was written
        before the device's machine started anew, and by older workers, is timed by the wall clocks of this moment.
        """
        now = said.monotonic
        if shift is None or now is None or entry.monotonic is None or entry.monotonic > now + 1.0:
            return replace(entry, at=entry.at + self.tx.now.timestamp() - said.clock)
        return replace(entry, at=entry.monotonic + shift)

    def _gone(self, row: OfferedWork, end: EndReason, reason: str) -> None:
        gone = offers.NewReport(row.executor, row.key, gone=reason, gone_end=end.value, over=True)
        self.reports.append(gone)

    def _order(self, row: OfferedWork) -> dict[str, Any]:
        name = f"{row.seq}-{row.offered_at.timestamp():.6f}"  # a number alone may be used again
        return {"offer": name, "order": self.seal.read(row.sealed)}

    # What it gets. ------------------------------------------------------------------------------------------------

    def _lease(self, asking: Mapping[str, tuple[Said, ExchangeReply]], rooms: Mapping[str, Puller]) -> None:
        by_executor: dict[str, list[Puller]] = {}
        for name, puller in rooms.items():
            if puller.open:
                by_executor.setdefault(asking[name][0].executor, []).append(puller)
        if not by_executor:
            return
        most = sum(puller.most for pullers in by_executor.values() for puller in pullers)
        limit = min(CANDIDATES, most + SPARE)
        rows, given = self._choose(by_executor, limit)
        if (
            len(given) < most and len(rows) == limit < CANDIDATES
        ):  # what comes first is not for these: look further
            rows, given = self._choose(by_executor, CANDIDATES)
        offers.lease(self.tx, given)
        by_key = {row.key: row for row in rows}
        peers = _peers(given, by_key, {name: said.address for name, (said, _) in asking.items()})
        for key, name in given.items():
            told = self._order(by_key[key])
            if peers.get(key):
                told["order"]["variables"] |= peers[key]
                self._remember_peers(by_key[key], peers[key])
            asking[name][1].start.append(told)
        devices.note_jobs(self.tx, {key: name for key, name in given.items() if by_key[key].rank == 0})

    def _choose(
        self, by_executor: Mapping[str, Sequence[Puller]], limit: int
    ) -> tuple[list[OfferedWork], dict[str, str]]:
        """The first `limit` that wait, which are locked, and who gets which of them."""
        rows = offers.lease_candidates(self.tx, by_executor, limit)
        given: dict[str, str] = {}
        for executor, pullers in by_executor.items():
            waiting = [offer_of(row, self.tx) for row in rows if row.executor == executor]
            given |= self._give(waiting, pullers)
        return rows, given

    def _give(self, waiting: Sequence[AttemptOffer], pullers: Sequence[Puller]) -> dict[str, str]:
        """A reserved device gets only work of the project that it is kept for."""
        kept = reservations.kept_now(self.tx)
        if not any(each.name in kept for each in pullers):
            return give(waiting, pullers)
        of = jobs.project_of(self.tx, [AttemptKey.parse(offer.gang).job_id for offer in waiting])
        given: dict[str, str] = {}
        for project in sorted({kept[each.name] for each in pullers if each.name in kept}):
            mine = [one for one in waiting if of.get(AttemptKey.parse(one.gang).job_id) == project]
            given |= give(mine, [each for each in pullers if kept.get(each.name) == project])
        rest = [one for one in waiting if one.key not in given]
        return given | give(rest, [each for each in pullers if each.name not in kept])

    def _remember_peers(self, row: OfferedWork, variables: Mapping[str, str]) -> None:
        """Keeps the peers' addresses, so that an order that has to be sent again says the same."""
        order = self.seal.open(row.sealed)
        sealed = self.seal.close(replace(order, variables={**order.variables, **variables}))
        offers.reseal(self.tx, row.key, sealed)


def _why(row: OfferedWork, said: Said) -> tuple[EndReason, str]:
    if not row.known and row.kill:
        return EndReason.STOPPED, "stopped before it began"
    if said.leaving and not row.known and row.key not in said.attempts:
        # A part of a gang that was under way to it: the others may have begun, but nobody's attempt was lost.
        return EndReason.STOPPED, "one of its devices left before it began"
    if said.leaving:
        return EndReason.DEVICE_LOST, "its device left"
    return EndReason.UNKNOWN_THERE, "its device no longer knows it"


def offer_of(row: OfferedWork, tx: Tx) -> AttemptOffer:
    return AttemptOffer(
        row.key,
        row.gang,
        row.rank,
        row.size,
        Resources(row.vcpu, row.memory_mb, row.gpus),
        row.wants,
        (tx.now - row.offered_at).total_seconds(),
        row.time_limit_s,
        row.short,
        row.first,
    )


def _less(room: Room, row: OfferedWork) -> Room:
    asked = Resources(row.vcpu, row.memory_mb, row.gpus)
    return room.less(asked, room.choose_gpus(asked.gpus) or ())


def _peers(
    given: Mapping[str, str], rows: Mapping[str, OfferedWork], addresses: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """What each member of a gang is told: who it is, and where all of them are, in order of rank."""
    gangs: dict[str, list[str]] = {}
    for key in sorted(given, key=lambda each: rows[each].rank):
        if rows[key].size > 1:
            gangs.setdefault(rows[key].gang, []).append(key)
    return {
        key: {
            "EASEL_RANK": str(rows[key].rank),
            "EASEL_WORLD_SIZE": str(rows[key].size),
            "EASEL_PEERS": ",".join(addresses.get(given[each], "") for each in keys),
        }
        for keys in gangs.values()
        for key in keys
    }
