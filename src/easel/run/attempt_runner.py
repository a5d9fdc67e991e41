"""Starting, ending and limiting the attempts on one machine, within the room that its device has."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from easel import traces
from easel.clock import Clock
from easel.declare.job import Trial
from easel.declare.resources import Room
from easel.records.attempt import EndReason
from easel.run.attempts import Attempt, Phase, found
from easel.run.cgroup import Cgroups
from easel.run.depots import open_depot
from easel.run.entries import AttemptEnded, AttemptLost
from easel.run.forking import Surroundings, fork_agent
from easel.run.journal import read_whole, write_end
from easel.run.launch import Folders, checkpoint_folder
from easel.run.leftover_processes import kill_attempt_processes, kill_leftovers
from easel.run.order import Order
from easel.run.packs import gathering_packs, pack_of
from easel.run.placement import WaitingAttempt
from easel.run.placement import place as choose_places
from easel.run.sample import resident_mb
from easel.run.sandbox import NO_SANDBOX
from easel.run.trial import Assignment
from easel.run.trial_spans import record_trial
from easel.run.trial_walls import NO_WALLS, can_wall_in
from easel.run.warm import WarmProcess, WarmProcesses
from easel.run.worker_config import WorkerConfig

FORCE_AFTER_S = 3.0
"""How much longer than its grace an agent gets to end its job before it is ended itself."""
LEAVE_PATIENCE_S = 30.0
"""So long a killed trial that shares its process may take to leave it: an epoch, most times."""


class AttemptRunner:
    """`waiting` are the attempts without room yet, in order; `watched` those whose end was not yet reported."""

    def __init__(
        self,
        config: WorkerConfig,
        clock: Clock,
        selector: selectors.BaseSelector,
        cgroups: Cgroups,
        bwrap: str | None,
    ) -> None:
        self.config, self.clock, self.selector = config, clock, selector
        self.cgroups, self.bwrap = cgroups, bwrap
        self.depot = open_depot(config.depot, config.cache)
        self.warm = WarmProcesses(config, cgroups, selector)
        self.room = config.capacity
        self.attempts: dict[str, Attempt] = {}
        self.waiting: dict[str, None] = {}
        self.watched: dict[str, Attempt] = {}
        self.spared = False
        """While it is spared nothing starts here, and what waits is sent back."""

    # Orders. ----------------------------------------------------------------------------------------------

    def accept(self, order: Order) -> None:
        """Takes an order: it waits for room, or is refused where it can never run."""
        if order.key in self.attempts:
            return
        attempt = Attempt(order, Folders(self.config.attempts / order.key), since=self.clock.monotonic())
        self.attempts[order.key] = attempt
        if order.workers > 1 and "EASEL_WORLD_SIZE" not in order.variables:
            self._refuse(attempt, f"one device alone cannot run a job of {order.workers} workers")
        elif self.bwrap is None and not self.config.unsandboxed and not isinstance(order.run, Trial):
            self._refuse(attempt, NO_SANDBOX)
        elif isinstance(order.run, Trial) and self._lacks_walls():
            self._refuse(attempt, NO_WALLS)
        elif not self.config.capacity.fits(order.resources):
            self._refuse(attempt, f"this device can never hold it: it has {self.config.capacity}")
        elif order.first:
            ahead = [key for key in self.waiting if self.attempts[key].order.first]
            self.waiting = dict.fromkeys([*ahead, order.key, *self.waiting])
        else:
            self.waiting[order.key] = None

    def _lacks_walls(self) -> bool:
        """Whether a trial would run without the walls that the settings ask for."""
        return self.config.sandbox and not self.config.unsandboxed and not can_wall_in()

    def _refuse(self, attempt: Attempt, reason: str) -> None:
        attempt.save()
        attempt.phase = Phase.OVER
        self.watched[attempt.key] = attempt
        self._write_end(attempt, EndReason.REFUSED, reason, final=True)

    def kill(self, key: str, force: bool) -> None:
        """Ends an attempt that is known here: at once, or with its grace."""
        attempt = self.attempts[key]
        if attempt.phase is Phase.WAITING:
            del self.waiting[key]
            attempt.phase, attempt.gone = Phase.OVER, (EndReason.STOPPED, "stopped before it began")
            self.watched[key] = attempt
        elif attempt.phase is Phase.RUNNING:
            if force or attempt.ready is not None:
                self._stop(attempt, (EndReason.STOPPED, "stopped"))
            else:
                attempt.signal(signal.SIGTERM)
                patience = attempt.order.grace_s + FORCE_AFTER_S
                attempt.kill_at = attempt.kill_at or self.clock.monotonic() + patience

    def _stop(self, attempt: Attempt, why: tuple[EndReason, str]) -> None:
        """Ends a trial or a job. A trial that shares its process with others is asked to leave; only one that does not
        soon is killed, and they with it: those begin again, each in a process of its own."""
        attempt.stop_reason = attempt.stop_reason or why
        now = self.clock.monotonic()
        if attempt.kill_at is None and len(self._sharing(attempt)) > 1:
            attempt.kill_at = now + LEAVE_PATIENCE_S
            end, reason = attempt.stop_reason
            self._leave_note(attempt.folders.leave, f"{end.value} {reason}")
        elif attempt.kill_at is None or now >= attempt.kill_at or attempt.ready is None:
            attempt.kill()

    def _sharing(self, attempt: Attempt) -> list[Attempt]:
        """Returns the running trials in the process of this one, itself among them."""
        if attempt.ready is None:
            return [attempt]
        return [each for each in self.watched.values() if each.ready is attempt.ready]

    def _leave_note(self, path: Path, text: str = "") -> None:
        """Leaves a file for a trial to find, whole or not at all."""
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.with_suffix(".partial").write_text(text)
            path.with_suffix(".partial").replace(path)

    def give_way(self, key: str) -> None:
        """Ask a trial to stop at its next checkpoint; one that ended meanwhile has nothing to stop."""
        attempt = self.attempts.get(key)
        if attempt is not None and attempt.phase is Phase.RUNNING and attempt.ready is not None:
            self._leave_note(attempt.folders.give_way)

    def forget(self, key: str) -> None:
        """Ends an attempt that nobody asks for any more and removes what it left."""
        attempt = self.attempts.get(key)
        if attempt is None:
            return
        attempt.forgotten = True
        if attempt.phase is Phase.WAITING or (attempt.phase is Phase.RUNNING and not attempt.last):
            self.kill(key, force=True)
        self._remove_forgotten(attempt)

    def _remove_forgotten(self, attempt: Attempt) -> None:
        """Removes an attempt when its process has ended too: an agent lives a little longer than its last entry."""
        if attempt.forgotten and attempt.phase is Phase.OVER:
            self.attempts.pop(attempt.key, None)
            self.watched.pop(attempt.key, None)
            attempt.remove()

    # Starting. --------------------------------------------------------------------------------------------

    def place(self) -> None:
        """Starts the waiting attempts for which there is room."""
        if self.spared:
            for key in list(self.waiting):
                self.kill(key, force=False)
        if not self.waiting:
            return
        now = self.clock.monotonic()
        gathering = gathering_packs((self.attempts[key] for key in self.waiting), now)
        queue = ((key, self.attempts[key]) for key in self.waiting)
        asked = (
            WaitingAttempt(key, each.order.resources, now - each.since)
            for key, each in queue
            if pack_of(each) not in gathering
        )
        packs: dict[tuple[str, tuple[int, ...]], list[Attempt]] = {}
        for placed in choose_places(asked, self.room, self._drained()):
            attempt = self.attempts[placed.key]
            del self.waiting[placed.key]
            self.watched[placed.key] = attempt
            attempt.gpus, attempt.phase, attempt.heard = placed.gpus, Phase.RUNNING, now
            self.room = self.room.less(attempt.order.resources, attempt.gpus)
            attempt.save()
            if isinstance(attempt.order.run, Trial):
                # trials of a pack that are given the same GPU are one program; another one is by itself
                packs.setdefault((pack_of(attempt) or attempt.key, attempt.gpus), []).append(attempt)
            else:
                self._start_agent(attempt)
        for together in packs.values():
            self._start_trials(together)

    def _drained(self) -> Room:
        """Returns the room that there would be if all that runs had ended, except interactive sessions."""
        room = self.config.capacity
        for attempt in self.watched.values():
            if attempt.order.port is not None and attempt.phase is Phase.RUNNING:
                room = room.less(attempt.order.resources, attempt.gpus)
        return room

    def _start_agent(self, attempt: Attempt) -> None:
        attempt.cgroup = self.cgroups.make(attempt.key)
        attempt.cgroup.limit(attempt.order.resources, attempt.order.processes)
        read_fd, write_fd = os.pipe2(os.O_NONBLOCK)
        here = Surroundings(
            self.config.home,
            self.depot,
            self.bwrap,
            self.clock,
            self.config.interpreters,
            self.config.depot if self.config.depot.startswith(("http://", "https://")) else None,
        )
        pid = fork_agent(attempt, here, write_fd)
        os.close(write_fd)
        self.selector.register(read_fd, selectors.EVENT_READ, ("wake", None))
        self._watch(attempt, pid)

    def _watch(self, attempt: Attempt, pid: int) -> None:
        attempt.pid, attempt.pidfd = pid, os.pidfd_open(pid)
        self.selector.register(attempt.pidfd, selectors.EVENT_READ, ("agent-end", attempt))

    def _start_trials(self, together: Sequence[Attempt]) -> None:
        """Starts one trial, or several in one process."""
        run = together[0].order.run
        assert isinstance(run, Trial)
        tasks = [
            Assignment(each.order, each.folders, self._checkpoint(each.order.job_id), each.gpus)
            for each in together
        ]
        while True:
            try:
                ready = self.warm.take(run.target.partition(":")[0])
            except (ConnectionError, OSError) as error:
                for each in together:
                    reason = f"no process could be started for it: {error}"
                    self._write_lost(each, EndReason.PROCESS_DIED, reason)
                    self._release(each)
                return
            try:
                ready.give(tasks)
            except OSError:  # it wore out while idle
                self.warm.discard(ready)
                continue
            break
        for each in together:
            each.ready, each.pid = ready, ready.pid
            if each.order.time_limit_s is not None:
                each.deadline = self.clock.monotonic() + each.order.time_limit_s

    def _checkpoint(self, job_id: str) -> Path:
        return checkpoint_folder(self.config.home, job_id)

    # Ending. ----------------------------------------------------------------------------------------------

    def handle_trial_output(self, ready: WarmProcess) -> None:
        """Notes that a warm process has ended its trial, or itself."""
        trials = [each for each in self.watched.values() if each.ready is ready]
        try:
            closed = not ready.socket.recv(4096)
        except OSError:
            closed = True
        for attempt in trials:
            attempt.observe()
        left = [attempt for attempt in trials if not attempt.last]
        if trials and not left and not closed:
            self.warm.keep(ready)
        for attempt in trials:
            if attempt.last:
                attempt.ready = None
                self._release(attempt)
            elif closed:
                self._trial_died(attempt, ready, alone=len(left) == 1)
        if closed:
            self.warm.discard(ready)

    def _trial_died(self, attempt: Attempt, ready: WarmProcess, *, alone: bool = True) -> None:
        attempt.ready = None
        if attempt.stop_reason is not None:
            self._write_end(attempt, *attempt.stop_reason)
        elif attempt.born is None:
            # The process wore out before it read the assignment: it never began.
            self.room = self.room.plus(attempt.order.resources, attempt.gpus)
            attempt.phase, attempt.gpus = Phase.WAITING, ()
            self.waiting = {attempt.key: None, **self.waiting}
            del self.watched[attempt.key]
            return
        elif alone and ready.cgroup.out_of_memory():
            limit = attempt.order.resources.memory_mb
            self._write_end(attempt, EndReason.MEMORY_LIMIT, f"the memory limit of {limit} MB was reached")
        else:
            self._write_lost(attempt, EndReason.PROCESS_DIED, "its process died")
        self._release(attempt)

    def ended(self, attempt: Attempt) -> None:
        """The agent's process is gone; make sure that nothing of the job is left, then see what it wrote."""
        kill_attempt_processes(attempt, self.cgroups, self.clock)
        attempt.observe()
        if not attempt.last:
            self._write_lost(attempt, EndReason.AGENT_DIED, "its agent died")
        self._release(attempt)

    def _release(self, attempt: Attempt) -> None:
        attempt.phase = Phase.OVER
        if traces.is_on():
            self._trace(attempt)
        self.room = self.room.plus(attempt.order.resources, attempt.gpus)
        self._remove_forgotten(attempt)

    def _trace(self, attempt: Attempt) -> None:
        now, order = self.clock.now(), attempt.order
        began = now - timedelta(seconds=max(0.0, self.clock.monotonic() - attempt.since))
        told = {"easel.device": self.config.name}
        why = None if attempt.stop_reason is None else attempt.stop_reason[1]
        name = traces.ATTEMPT
        traces.record(
            name,
            "easel-worker",
            order.job_id,
            began,
            now,
            attempt=order.attempt,
            attributes=told,
            error=why,
        )
        if isinstance(order.run, Trial):
            record_trial(order, read_whole(attempt.folders.journal)[0])

    def _write_end(self, attempt: Attempt, end: EndReason, reason: str, final: bool = False) -> None:
        write_end(attempt.folders.journal, self.clock, AttemptEnded(end, reason, final=final))

    def _write_lost(self, attempt: Attempt, end: EndReason, reason: str, *, now: bool = True) -> None:
        write_end(attempt.folders.journal, self.clock, AttemptLost(end, reason), now=now)
        attempt.observe()

    def enforce_limits(self) -> None:
        """Kills attempts past their grace, their time or, where no control group limits it, their memory."""
        now = self.clock.monotonic()
        for attempt in self.watched.values():
            if attempt.phase is not Phase.RUNNING:
                continue
            if attempt.kill_at is not None and now >= attempt.kill_at:
                attempt.kill()
            if attempt.deadline is not None and now >= attempt.deadline and attempt.stop_reason is None:
                limit = attempt.order.time_limit_s or 0.0
                self._stop(attempt, (EndReason.TIME_LIMIT, f"the time limit of {limit:g} s was reached"))
            if attempt.ready is not None and not self.cgroups.hard and attempt.stop_reason is None:
                self._limit_memory(attempt)

    def _limit_memory(self, attempt: Attempt) -> None:
        """Kills a process that takes more than its trials may together, those that have ended included: what they took
        may still be held. Of several none is to blame: they begin again, each in a process of its own."""
        assert attempt.ready is not None
        assert attempt.ready.limits is not None
        together = self._sharing(attempt)
        limit_mb = attempt.ready.limits.memory_mb
        if resident_mb(attempt.ready.pid) > limit_mb:
            if len(together) == 1:
                reason = f"the memory limit of {limit_mb} MB was reached"
                attempt.stop_reason = (EndReason.MEMORY_LIMIT, reason)
            attempt.kill()

    # What an earlier worker left. -------------------------------------------------------------------------

    def adopt(self) -> None:
        """Find what an earlier worker left: go on watching the living, account for the dead."""
        for attempt in found(self.config.attempts):
            self.attempts[attempt.key] = self.watched[attempt.key] = attempt
            is_trial = isinstance(attempt.order.run, Trial)
            attempt.cgroup = self.cgroups.make(
                f"trial-{attempt.pid}" if is_trial and attempt.pid else attempt.key
            )
            if attempt.phase is Phase.RUNNING:
                assert attempt.pid is not None
                self.room = self.room.less(attempt.order.resources, attempt.gpus)
                self._watch(attempt, attempt.pid)
            elif not attempt.last:
                kill_attempt_processes(attempt, self.cgroups, self.clock)
                reason = "it did not survive the end of the worker"
                self._write_lost(attempt, EndReason.WORKER_DIED, reason, now=False)
        kill_leftovers(self.attempts, self.cgroups)

    def stop(self) -> None:
        """Ends everything that runs, and the warm processes."""
        for attempt in self.attempts.values():
            if attempt.phase is Phase.RUNNING:
                attempt.kill()
        self.warm.stop()
