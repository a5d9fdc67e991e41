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
import sys
import zlib
from typing import Any

from easel.clock import Clock
from easel.records.attempt import AttemptKey, EndReason
from easel.run.attempt_runner import AttemptRunner
from easel.run.attempts import Attempt, Phase
from easel.run.cgroup import Cgroups
from easel.run.control_socket import ControlSocket
from easel.run.entries import encode_entry
from easel.run.gpus import GpuWatch, cards_here, notes_of, use_now
from easel.run.kernels import KernelBuilder
from easel.run.launch import checkpoint_folder
from easel.run.order import ORDER
from easel.run.sandbox import NO_SANDBOX, WARNING, probe
from easel.run.tree import become_subreaper, reap
from easel.run.worker_config import WorkerConfig

TICK_S = 0.05
BEAT_S = 2.0
WARM_AFTER_S = 3.0
SILENT_AFTER_S = 20.0
TRIM_EVERY_S = 60.0
"""How often the cache of files is trimmed by size, age and what the disk has left."""


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
        self.runner = AttemptRunner(config, clock, self.selector, self.cgroups, self.bwrap)
        self.stopping = False
        woken, self._wake = os.pipe()
        self.selector.register(woken, selectors.EVENT_READ, ("wake", None))
        self._cards = cards_here()[: len(config.capacity.gpus)]
        self.gpus = GpuWatch(self._cards)
        self.kernels = KernelBuilder(
            config.home, [one.name for one in self._cards], config.home / "run" / "kernels.log"
        )
        self._beat_due = 0.0
        self._warmed = False
        self._warm_at = clock.monotonic() + WARM_AFTER_S
        self._needed_at = clock.monotonic()
        self._fenced = 0
        self._trim_due = clock.monotonic() + TRIM_EVERY_S / 10

    # The loop. --------------------------------------------------------------------------------------------

    def run(self) -> None:
        become_subreaper()
        self.runner.adopt()
        self.cgroups.sweep()
        while not self.stopping:
            self.turn()
        self._stop_everything()

    def stop(self) -> None:
        """Ends the loop at once, also from a signal handler: one that waits would wait on."""
        self.stopping = True
        os.write(self._wake, b".")

    def turn(self) -> None:
        busy = bool(self.runner.watched)
        for key, mask in self.selector.select(TICK_S if busy else 1.0):
            self._handle_event(key, mask)
        for message, is_present in self.control.messages():
            self._handle_command(message, is_present)
        reap()
        self._live()
        self.runner.enforce_limits()
        self.runner.place()
        self._report()
        self.control.flush()

    def _live(self) -> None:
        """Warm up when the start is over; end when nobody needs us any more."""
        now = self.clock.monotonic()
        if self.config.warm and not self._warmed and now >= self._warm_at:
            self._warmed = True
            if self.config.preload:
                self.runner.warm.start()
            if self.config.parent is None:  # a place that a cluster gave for a while is not worth the time
                self.kernels.start()
        self.kernels.look()
        if self.control.open or self.runner.watched or self.runner.waiting:
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
            self.runner.ended(subject)
        elif kind == "wake":
            with contextlib.suppress(OSError):
                if not os.read(key.fd, 4096):
                    self.selector.unregister(key.fileobj)
                    os.close(key.fd)
        elif kind == "ready":
            self.runner.handle_trial_output(subject)

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
                for attempt in self.runner.attempts.values():
                    self._say_again(attempt, int(seen.get(attempt.key, 0)))
                self.control.send(self._state())
            case {"op": "resend", "key": str(key), "seen": int(known)}:
                if key in self.runner.attempts:
                    self._say_again(self.runner.attempts[key], known)
            case {"op": "start", "order": dict(body)}:
                self.runner.accept(ORDER.validate_python(body))
            case {"op": "kill", "key": str(key), "force": bool(force)}:
                if key in self.runner.attempts:
                    self.runner.kill(key, force)
                else:
                    self._send_gone(key, EndReason.UNKNOWN_THERE, "nothing of it was left here")
            case {"op": "give_way", "key": str(key)}:
                self.runner.give_way(key)
            case {"op": "forget", "key": str(key), "over": bool(over)}:
                self.runner.forget(key)
                if over:
                    folder = checkpoint_folder(self.config.home, AttemptKey.parse(key).job_id)
                    shutil.rmtree(folder, ignore_errors=True)
            case {"op": "spare", "on": bool(spared)}:
                self.runner.spared = spared
            case {"op": "stop"}:
                self.stopping = True

    def _say_again(self, attempt: Attempt, seen: int) -> None:
        """Report all but the first `seen` entries of its journal once more."""
        attempt.rewind(seen)
        if attempt.phase is not Phase.WAITING:
            self.runner.watched[attempt.key] = attempt

    def _state(self) -> dict[str, Any]:
        total = self.config.capacity
        return {
            "op": "state",
            "name": self.config.name,
            "capacity": [total.vcpu, total.memory_mb, list(total.gpus)],
            "attempts": sorted(self.runner.attempts),
            "sandbox": self.bwrap is not None or ("False" if self.config.unsandboxed else "refused"),
            "limits": "cgroup" if self.cgroups.hard else "rlimit",
            "notes": notes_of(self._cards, use_now()) if self._cards else {},
        }

    # Reporting. -------------------------------------------------------------------------------------------

    def _report(self) -> None:
        now = self.clock.monotonic()
        if not self.control.greeted:
            return
        for attempt in list(self.runner.watched.values()):
            if attempt.told:
                del self.runner.watched[attempt.key]
            else:
                self._send_news(attempt)
                if attempt.gone is not None and not attempt.gone_sent:
                    attempt.gone_sent = True
                    self._send_gone(attempt.key, *attempt.gone)
        if now >= self._beat_due:
            self._beat_due = now + BEAT_S
            alive = [each.key for each in self.runner.attempts.values() if self._shows_life(each, now)]
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

    def _stop_everything(self) -> None:
        self.runner.stop()
        self.kernels.stop()
        self.control.close()
        self.cgroups.remove(self.clock)
