"""The worker: the process that holds this machine's devices and starts, watches and ends attempts on them.

It keeps nothing but what lies in the attempts' files, so it may be killed at any moment: agents go on, and
the next worker finds them. The controller talks to it over a socket in lines of JSON; when nobody is
connected, it goes on with what it has and reports later.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import sys
import zlib
from datetime import timedelta
from pathlib import Path
from typing import Any

from easel import traces
from easel.clock import Clock
from easel.declare.job import Trial
from easel.records.attempt import AttemptKey, EndReason
from easel.run.attempts import Attempt, Phase, found
from easel.run.cgroup import Cgroups
from easel.run.control_socket import ControlSocket
from easel.run.depots import open_depot
from easel.run.entries import AttemptEnded, AttemptLost, encode_entry
from easel.run.forking import Surroundings, fork_agent
from easel.run.gpus import GpuWatch, cards_here, notes_of, use_now
from easel.run.journal import write_end
from easel.run.launch import Folders, checkpoint_folder
from easel.run.leftover_processes import kill_attempt_processes, kill_leftovers
from easel.run.order import ORDER, Order
from easel.run.placement import WaitingAttempt, place
from easel.run.sample import resident_mb
from easel.run.sandbox import NO_SANDBOX, WARNING, probe
from easel.run.tree import become_subreaper, reap
from easel.run.trial import Assignment
from easel.run.warm import WarmProcess, WarmProcesses
from easel.run.worker_config import WorkerConfig

TICK_S = 0.05
BEAT_S = 2.0
WARM_AFTER_S = 3.0
SILENT_AFTER_S = 20.0
TRIM_EVERY_S = 60.0
"""How often the cache of files is trimmed by size, age and what the disk has left."""
FORCE_AFTER_S = 3.0
"""How much longer than its grace an agent gets to end its job before it is ended itself."""


class Worker:
    def __init__(self, config: WorkerConfig, clock: Clock) -> None:
        self.config, self.clock = config, clock
        self.config.attempts.mkdir(parents=True, exist_ok=True)
        (config.home / "run").chmod(0o700)
        self.selector = selectors.DefaultSelector()
        self.control = ControlSocket(config.home / "run", self.selector)
        self.bwrap = probe() if config.sandbox else None
        if self.bwrap is None:
            sys.stderr.write(f"easel worker: {WARNING if config.unsandboxed else NO_SANDBOX}\n")
        self.cgroups = Cgroups(f"easel-{config.name}-{zlib.crc32(bytes(config.home)):08x}")
        self.depot = open_depot(config.depot, config.cache)
        self.warm = WarmProcesses(config, self.cgroups, self.selector)
        self.room = config.capacity
        self.attempts: dict[str, Attempt] = {}
        self.waiting: dict[str, None] = {}
        self.watched: dict[str, Attempt] = {}
        self.stopping = False
        woken, self._wake = os.pipe()
        self.selector.register(woken, selectors.EVENT_READ, ("wake", None))
        self._spared = False
        self._cards = cards_here()[: len(config.capacity.gpus)]
        self.gpus = GpuWatch(self._cards)
        self._beat_due = 0.0
        self._warmed = False
        self._warm_at = clock.monotonic() + WARM_AFTER_S
        self._needed_at = clock.monotonic()
        self._fenced = 0
        self._trim_due = clock.monotonic() + TRIM_EVERY_S / 10

    # The loop. --------------------------------------------------------------------------------------------

    def run(self) -> None:
        become_subreaper()
        self._adopt()
        self.cgroups.sweep()
        while not self.stopping:
            self.turn()
        self._stop_everything()

    def stop(self) -> None:
        """Ends the loop at once, also from a signal handler: one that waits would wait on."""
        self.stopping = True
        os.write(self._wake, b".")

    def turn(self) -> None:
        busy = bool(self.watched)
        for key, mask in self.selector.select(TICK_S if busy else 1.0):
            self._handle_event(key, mask)
        for message, is_present in self.control.messages():
            self._handle_command(message, is_present)
        reap()
        self._live()
        self._enforce_limits()
        self._place()
        self._report()
        self.control.flush()

    def _live(self) -> None:
        """Warm up when the start is over; end when nobody needs us any more."""
        now = self.clock.monotonic()
        if self.config.warm and self.config.preload and not self._warmed and now >= self._warm_at:
            self._warmed = True
            self.warm.start()
        if self.control.open or self.watched or self.waiting:
            self._needed_at = now
        orphaned = (
            self.config.orphan_after_s is not None and now - self._needed_at > self.config.orphan_after_s
        )
        if now >= self._trim_due:
            self._trim_due = now + TRIM_EVERY_S
            self._trim_cache()
        if orphaned or not self.config.attempts.is_dir():
            self.stopping = True

    def _trim_cache(self) -> None:
        """Trims the cache in a child that nothing waits for: it may hold a million files."""
        if os.fork() == 0:
            try:
                os.closerange(3, 65536)
                self.config.cache_limits.cache(self.config.cache).trim()
            finally:
                os._exit(0)

    def _handle_event(self, key: selectors.SelectorKey, mask: int) -> None:
        kind, subject = key.data
        if kind == "control":
            self.control.ready(key, mask)
        elif kind == "agent-end":
            self.selector.unregister(key.fileobj)
            self._ended(subject)
        elif kind == "wake":
            with contextlib.suppress(OSError):
                if not os.read(key.fd, 4096):
                    self.selector.unregister(key.fileobj)
                    os.close(key.fd)
        elif kind == "ready":
            self._handle_trial_output(subject)

    # Orders from the controller. ----------------------------------------------------------------------------

    def _handle_command(self, message: dict[str, Any], is_present: bool) -> None:
        match message:
            case {"op": "hello", "fence": int(fence)} if not is_present:
                self._fenced = max(fence, self._fenced)  # it left before it could be answered
            case {"op": "hello", "fence": int(fence), "seen": dict(seen)}:
                if fence < self._fenced:
                    self.control.refuse("a newer controller is in charge")
                    return
                self._fenced = fence
                self.control.greeted = True
                for attempt in self.attempts.values():
                    self._say_again(attempt, int(seen.get(attempt.key, 0)))
                self.control.send(self._state())
            case {"op": "resend", "key": str(key), "seen": int(known)}:
                if key in self.attempts:
                    self._say_again(self.attempts[key], known)
            case {"op": "start", "order": dict(body)}:
                self._accept(ORDER.validate_python(body))
            case {"op": "kill", "key": str(key), "force": bool(force)}:
                self._kill(key, force)
            case {"op": "give_way", "key": str(key)}:
                self._give_way(key)
            case {"op": "forget", "key": str(key), "over": bool(over)}:
                self._forget(key)
                if over:
                    shutil.rmtree(self._checkpoint(AttemptKey.parse(key).job_id), ignore_errors=True)
            case {"op": "spare", "on": bool(spared)}:
                self._spared = spared
            case {"op": "stop"}:
                self.stopping = True

    def _say_again(self, attempt: Attempt, seen: int) -> None:
        """Report all but the first `seen` entries of its journal once more."""
        attempt.rewind(seen)
        if attempt.phase is not Phase.WAITING:
            self.watched[attempt.key] = attempt

    def _state(self) -> dict[str, Any]:
        total = self.config.capacity
        return {
            "op": "state",
            "name": self.config.name,
            "capacity": [total.vcpu, total.memory_mb, list(total.gpus)],
            "attempts": sorted(self.attempts),
            "sandbox": self.bwrap is not None or ("False" if self.config.unsandboxed else "refused"),
            "limits": "cgroup" if self.cgroups.hard else "rlimit",
            "notes": notes_of(self._cards, use_now()) if self._cards else {},
        }

    def _accept(self, order: Order) -> None:
        if order.key in self.attempts:
            return
        attempt = Attempt(order, Folders(self.config.attempts / order.key), since=self.clock.monotonic())
        self.attempts[order.key] = attempt
        if order.workers > 1 and "EASEL_WORLD_SIZE" not in order.variables:
            self._refuse(attempt, f"one device alone cannot run a job of {order.workers} workers")
        elif self.bwrap is None and not self.config.unsandboxed and not isinstance(order.run, Trial):
            self._refuse(attempt, NO_SANDBOX)
        elif not self.config.capacity.fits(order.resources):
            self._refuse(attempt, f"this device can never hold it: it has {self.config.capacity}")
        elif order.first:
            ahead = [key for key in self.waiting if self.attempts[key].order.first]
            self.waiting = dict.fromkeys([*ahead, order.key, *self.waiting])
        else:
            self.waiting[order.key] = None

    def _refuse(self, attempt: Attempt, reason: str) -> None:
        attempt.save()
        attempt.phase = Phase.OVER
        self.watched[attempt.key] = attempt
        self._write_end(attempt, EndReason.REFUSED, reason, final=True)

    def _kill(self, key: str, force: bool) -> None:
        attempt = self.attempts.get(key)
        if attempt is None:
            self._send_gone(key, EndReason.UNKNOWN_THERE, "nothing of it was left here")
            return
        if attempt.phase is Phase.WAITING:
            del self.waiting[key]
            attempt.phase, attempt.gone = Phase.OVER, (EndReason.STOPPED, "stopped before it began")
            self.watched[key] = attempt
        elif attempt.phase is Phase.RUNNING:
            if force or attempt.ready is not None:
                attempt.stop_reason = attempt.stop_reason or (EndReason.STOPPED, "stopped")
                attempt.kill()
            else:
                attempt.signal(signal.SIGTERM)
                patience = attempt.order.grace_s + FORCE_AFTER_S
                attempt.kill_at = attempt.kill_at or self.clock.monotonic() + patience

    def _give_way(self, key: str) -> None:
        """Ask a trial to stop at its next checkpoint; one that ended meanwhile has nothing to stop."""
        attempt = self.attempts.get(key)
        if attempt is not None and attempt.phase is Phase.RUNNING and attempt.ready is not None:
            with contextlib.suppress(OSError):
                attempt.folders.give_way.parent.mkdir(parents=True, exist_ok=True)
                attempt.folders.give_way.touch()

    def _forget(self, key: str) -> None:
        attempt = self.attempts.get(key)
        if attempt is None:
            return
        attempt.forgotten = True
        if attempt.phase is Phase.WAITING or (attempt.phase is Phase.RUNNING and not attempt.last):
            self._kill(key, force=True)
        self._remove_forgotten(attempt)

    def _remove_forgotten(self, attempt: Attempt) -> None:
        """Removes an attempt when its process has ended too: an agent lives a little longer than its last entry."""
        if attempt.forgotten and attempt.phase is Phase.OVER:
            self.attempts.pop(attempt.key, None)
            self.watched.pop(attempt.key, None)
            attempt.remove()

    # Starting. --------------------------------------------------------------------------------------------

    def _place(self) -> None:
        if self._spared:
            for key in list(self.waiting):
                self._kill(key, force=False)
        if not self.waiting:
            return
        now = self.clock.monotonic()
        queue = ((key, self.attempts[key]) for key in self.waiting)
        asked = (WaitingAttempt(key, each.order.resources, now - each.since) for key, each in queue)
        for placed in place(asked, self.room):
            attempt = self.attempts[placed.key]
            del self.waiting[placed.key]
            self.watched[placed.key] = attempt
            attempt.gpus, attempt.phase, attempt.heard = placed.gpus, Phase.RUNNING, now
            self.room = self.room.less(attempt.order.resources, attempt.gpus)
            attempt.save()
            if isinstance(attempt.order.run, Trial):
                self._start_trial(attempt)
            else:
                self._start_agent(attempt)

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

    def _start_trial(self, attempt: Attempt) -> None:
        order = attempt.order
        assert isinstance(order.run, Trial)
        task = Assignment(order, attempt.folders, self._checkpoint(order.job_id), attempt.gpus)
        while True:
            try:
                ready = self.warm.take(order.run.target.partition(":")[0])
            except (ConnectionError, OSError) as error:
                self._write_lost(
                    attempt, EndReason.PROCESS_DIED, f"no process could be started for it: {error}"
                )
                self._release(attempt)
                return
            try:
                ready.give(task)
            except OSError:  # it wore out while idle
                self.warm.discard(ready)
                continue
            break
        attempt.ready, attempt.pid = ready, ready.pid
        if order.time_limit_s is not None:
            attempt.deadline = self.clock.monotonic() + order.time_limit_s

    def _checkpoint(self, job_id: str) -> Path:
        return checkpoint_folder(self.config.home, job_id)

    # Ending. ----------------------------------------------------------------------------------------------

    def _handle_trial_output(self, ready: WarmProcess) -> None:
        attempt = next((each for each in self.watched.values() if each.ready is ready), None)
        try:
            closed = not ready.socket.recv(4096)
        except OSError:
            closed = True
        if attempt is not None:
            attempt.observe()
            if attempt.last:
                attempt.ready = None
                if not closed:
                    self.warm.keep(ready)
                self._release(attempt)
            elif closed:
                self._trial_died(attempt, ready)
        if closed:
            self.warm.discard(ready)

    def _trial_died(self, attempt: Attempt, ready: WarmProcess) -> None:
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
        elif ready.cgroup.out_of_memory():
            limit = attempt.order.resources.memory_mb
            self._write_end(attempt, EndReason.MEMORY_LIMIT, f"the memory limit of {limit} MB was reached")
        else:
            self._write_lost(attempt, EndReason.PROCESS_DIED, "its process died")
        self._release(attempt)

    def _ended(self, attempt: Attempt) -> None:
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

    def _write_end(self, attempt: Attempt, end: EndReason, reason: str, final: bool = False) -> None:
        write_end(attempt.folders.journal, self.clock, AttemptEnded(end, reason, final=final))

    def _write_lost(self, attempt: Attempt, end: EndReason, reason: str, *, now: bool = True) -> None:
        write_end(attempt.folders.journal, self.clock, AttemptLost(end, reason), now=now)
        attempt.observe()

    def _enforce_limits(self) -> None:
        now = self.clock.monotonic()
        for attempt in self.watched.values():
            if attempt.phase is not Phase.RUNNING:
                continue
            if attempt.kill_at is not None and now >= attempt.kill_at:
                attempt.kill()
            if attempt.deadline is not None and now >= attempt.deadline and attempt.stop_reason is None:
                limit = attempt.order.time_limit_s or 0.0
                attempt.stop_reason = (
                    EndReason.TIME_LIMIT,
                    f"the time limit of {limit:g} s was reached",
                )
                attempt.kill()
            if attempt.ready is not None and not self.cgroups.hard:
                limit_mb = attempt.order.resources.memory_mb
                if resident_mb(attempt.ready.pid) > limit_mb and attempt.stop_reason is None:
                    attempt.stop_reason = (
                        EndReason.MEMORY_LIMIT,
                        f"the memory limit of {limit_mb} MB was reached",
                    )
                    attempt.kill()

    # Reporting. -------------------------------------------------------------------------------------------

    def _report(self) -> None:
        now = self.clock.monotonic()
        if not self.control.greeted:
            return
        for attempt in list(self.watched.values()):
            if attempt.told:
                del self.watched[attempt.key]
            else:
                self._send_news(attempt)
                if attempt.gone is not None and not attempt.gone_sent:
                    attempt.gone_sent = True
                    self._send_gone(attempt.key, *attempt.gone)
        if now >= self._beat_due:
            self._beat_due = now + BEAT_S
            alive = [each.key for each in self.attempts.values() if self._shows_life(each, now)]
            self.control.send({"op": "beat", "alive": alive, "notes": self.gpus.look(now)})

    def _shows_life(self, attempt: Attempt, now: float) -> bool:
        """Waiting and warm processes are known by us; an agent must have written something lately."""
        if attempt.phase is Phase.OVER:
            return False
        is_agent = attempt.phase is Phase.RUNNING and attempt.ready is None
        return not is_agent or now - attempt.heard < SILENT_AFTER_S

    def _send_news(self, attempt: Attempt) -> None:
        if self.control.crowded:
            return
        entries = attempt.news()
        if entries:
            attempt.heard = self.clock.monotonic()
            told = [encode_entry(entry) for entry in entries]
            self.control.send({"op": "entries", "key": attempt.key, "entries": told})

    def _send_gone(self, key: str, end: EndReason, reason: str) -> None:
        self.control.send({"op": "gone", "key": key, "end": end.value, "reason": reason})

    # Beginning and end of the worker itself. ----------------------------------------------------------

    def _adopt(self) -> None:
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

    def _stop_everything(self) -> None:
        for attempt in self.attempts.values():
            if attempt.phase is Phase.RUNNING:
                attempt.kill()
        self.warm.stop()
        self.control.close()
        self.cgroups.remove(self.clock)
