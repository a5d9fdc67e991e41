"""Prometheus measurements, one registry an app."""

from __future__ import annotations

import logging
import threading
from collections import Counter as Tally
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from easel.errors import EaselError
from easel.flow.operate.measure import PoolMeasures
from easel.records.job import JobState
from easel.version import __version__

_log = logging.getLogger("easel.metrics")
_WAITING = [state for state in JobState if state not in (JobState.FINISHED, JobState.FAILED, JobState.KILLED)]


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "easel_requests_total",
            "Requests by route and status",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "easel_request_seconds",
            "Time to answer, by route",
            ["method", "route"],
            registry=self.registry,
            buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10),
        )
        Gauge(
            "easel_build", "Always 1; the label says which release", ["version"], registry=self.registry
        ).labels(__version__).set(1)

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def add_pool(
        self, measure: Callable[[int], PoolMeasures], free_bytes: Callable[[], int], ready: Callable[[], bool]
    ) -> None:
        """Also export what the whole installation does, measured when somebody reads it."""
        self.registry.register(_PoolCollector(measure, free_bytes, ready))

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _PoolCollector(Collector):
    """Several servers export the same numbers of one pool: take their maximum, not their sum."""

    def __init__(
        self, measure: Callable[[int], PoolMeasures], free_bytes: Callable[[], int], ready: Callable[[], bool]
    ) -> None:
        self._measure, self._free_bytes, self._ready = measure, free_bytes, ready
        self._lock = threading.Lock()
        self._last_attempt = 0
        self._attempts: Tally[str] = Tally()

    def describe(self) -> Iterator[Metric]:
        """Describes nothing: registering must not ask the database."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        yield _gauge("easel_ready", "1 when /readyz says yes", float(self._ready()))
        yield _gauge("easel_disk_free_bytes", "Room on the disk under the home", float(self._free_bytes()))
        try:
            with self._lock:
                found = self._measure(self._last_attempt)
                self._last_attempt = found.last_attempt
                self._attempts.update(found.attempts)
                attempts = dict(self._attempts)
        except EaselError as error:  # a database that is away must not hide what this process knows
            _log.warning("the pool cannot be measured: %s", error.message)
            return
        yield from _pool_metrics(found, attempts)


def _pool_metrics(found: PoolMeasures, attempts: dict[str, int]) -> Iterator[Metric]:
    jobs = GaugeMetricFamily("easel_jobs", "Jobs that are not over, by state", labels=["state"])
    for state in _WAITING:
        jobs.add_metric([state.value], found.jobs.get(state.value, 0))
    yield jobs
    ended = CounterMetricFamily("easel_attempts", "Attempts that ended, by state", labels=["state"])
    for name in sorted({"finished", "failed", "killed"} | attempts.keys()):
        ended.add_metric([name], attempts.get(name, 0))
    yield ended
    pool = GaugeMetricFamily("easel_devices", "Devices of the pool", labels=["state"])
    for name, count in found.devices.items():
        pool.add_metric([name], count)
    yield pool
    mail = GaugeMetricFamily("easel_messages", "Messages to people that were not sent", labels=["state"])
    for name in ("waiting", "failed"):
        mail.add_metric([name], found.messages.get(name, 0))
    yield mail
    yield CounterMetricFamily("easel_events", "Events in the history", value=found.events)
    yield _gauge("easel_queue_oldest_seconds", "How long the oldest job has waited", found.oldest_queued_s)
    yield _gauge("easel_gpus", "GPUs of connected devices", found.gpus)
    yield _gauge("easel_gpus_held", "GPUs that running jobs hold", found.gpus_held)
    yield _gauge("easel_vcpu", "vCPU of connected devices", found.vcpu)
    yield _gauge("easel_vcpu_held", "vCPU that running jobs hold", found.vcpu_held)
    yield _gauge("easel_controller_leads", "1 while a controller acts", float(found.controller_leads))


def _gauge(name: str, help_text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, help_text, value=value)
