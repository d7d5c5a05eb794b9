"""What the scheduler counts of itself, under the names that its peer made known.

Covers: counters, histograms, the text of ``/metrics``. Does not cover: serving it.

Times are seconds. What can be read off the state (pods that wait, nodes, assumed pods) is not
counted but handed over when the text is made.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

Labels = tuple[tuple[str, str], ...]
#: What is read off the state, by family and labels.
Gauges = dict[tuple[str, Labels], float]

#: Help of each family.
_HELP = {
    "descheduler_build_info": "1, with the version of this program in its labels.",
    "descheduler_loop_duration_seconds": "Duration of a descheduling round.",
    "descheduler_pods_evicted_total": "Proposed evictions by result, under descheduler's name.",
    "descheduler_strategy_duration_seconds": "Duration of a strategy in a round, by profile.",
    "koordlet_descheduler_idle_seconds": "Time for which rounds wanted moves and made none.",
    "koordlet_descheduler_pods_evicted_total": "Proposed evictions of the descheduler by result.",
    "koordlet_disruption_allowed": "1 if a DisruptionRate allows a disruption now, 0 if not.",
    "koordlet_disruption_next_allowed_seconds": "Time until a DisruptionRate allows a disruption.",
    "koordlet_evictions_total": "Evictions asked for, by mover, cause and result.",
    "koordlet_migration_jobs": "Migration jobs that are under way, by phase.",
    "koordlet_migration_oldest_seconds": "Age of the oldest migration job that is under way.",
    "koordlet_migration_seconds": "Duration of the migration jobs that are over, by outcome.",
    "koordlet_headroom_nodes": "Nodes that have room for a pod of a size.",
    "koordlet_headroom_wanted_nodes": "Nodes that are to have room for a pod of a size.",
    "koordlet_move_plans": "Plans of moves, by phase.",
    "koordlet_scheduler_fronted_pods_total": "Replacements that came to the front of the queue.",
    "koordlet_scheduler_gang_cycle_seconds": "Duration of a cycle for a group of gangs, by result.",
    "koordlet_scheduler_gangs_waiting": "Gangs that wait for members or for room.",
    "koordlet_scheduler_held_places": "Reservations that hold the places of preemptors.",
    "koordlet_scheduler_node_avoidance_entries": "Live entries of the nodes' avoid lists.",
    "koordlet_scheduler_quota_refusals_total": "Pods that a quota did not admit.",
    "koordlet_scheduler_quota_revoked_pods_total": "Pods that a quota called back.",
    "koordlet_webhook_faults_total": "Profiles that new pods had to go without.",
    "koordlet_webhook_profiles": "ClusterColocationProfiles that new pods are compared with.",
    "koordlet_webhook_reviews_total": "New pods that API servers asked about, by result.",
    "leader_election_master_status": "1 if this process leads, 0 if another one does.",
    "scheduler_cache_size": "Nodes, pods, assumed pods and reporting nodes in the cache.",
    "scheduler_elastic_quota_status": "Amounts of a quota by resource and field.",
    "scheduler_homeless_pods": "Pods on nodes that the scheduler does not know.",
    "scheduler_pending_pods": "Pending pods by queue.",
    "scheduler_pod_scheduling_attempts": "Attempts until a pod was bound.",
    "scheduler_pod_scheduling_sli_duration_seconds": "Time from the queue until a pod was bound.",
    "scheduler_preemption_attempts_total": "Attempts to preempt.",
    "scheduler_preemption_victims": "Pods that a preemption evicted.",
    "scheduler_queue_incoming_pods_total": "Pods added to a queue, by event and queue.",
    "scheduler_schedule_attempts_total": "Scheduling attempts by profile and result.",
    "scheduler_scheduling_attempt_duration_seconds": "Duration of an attempt, by result.",
    "scheduler_store_requests_total": "Requests to the object store, by call and result.",
}


#: Movers with samples of their own, and places of pods that a descheduler proposed to evict.
_MOST_MOVERS, _MOST_PLACES = 64, 1000


def _head(name: str, kind: str) -> Iterator[str]:
    yield f"# HELP {name} {_HELP[name]}"
    yield f"# TYPE {name} {kind}"


def _steps(first: float, number: int) -> tuple[float, ...]:
    return tuple(first * 2**power for power in range(number))


class Histogram:
    """A histogram of fixed bounds."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect.bisect_left(self._bounds, value)] += 1
        self._sum += value

    @property
    def count(self) -> int:
        """Number of values."""
        return sum(self._counts)

    def lines(self, name: str, labels: Labels = ()) -> Iterator[str]:
        """The samples of the text format."""
        total = 0
        for bound, count in zip((*self._bounds, "+Inf"), self._counts, strict=True):
            total += count
            spelled = bound if isinstance(bound, str) else f"{bound:.6g}"
            yield _sample(f"{name}_bucket", (*labels, ("le", spelled)), total)
        yield _sample(f"{name}_sum", labels, self._sum)
        yield _sample(f"{name}_count", labels, total)


class SchedulerMetrics:
    """The metrics of one scheduler process."""

    def __init__(self) -> None:
        self._attempts: dict[tuple[str, str], Histogram] = {}
        #: Pods that came to a queue, by event and queue.
        self._incoming: Counter[tuple[str, str]] = Counter()
        self._placed = Histogram(_steps(1, 5))
        self._waited = Histogram(_steps(0.01, 20))
        #: Proposals of a descheduler, by result, strategy, profile, namespace and node.
        self.descheduled: Counter[tuple[str, str, str, str, str]] = Counter()
        self.victims = Histogram(_steps(1, 7))
        #: Rounds of a descheduler.
        self.rounds = Histogram(_steps(0.01, 14))
        #: Their strategies, by name and profile.
        self._strategies: dict[tuple[str, str], Histogram] = {}
        self.preemptions = 0
        #: Cycles for groups of gangs by result, and their seconds.
        self._gang_cycles: dict[str, Histogram] = {}
        #: Requests to the store by what they were for and how they ended.
        self.requests: Counter[tuple[str, str]] = Counter()
        #: What movers asked the limiter for: by whom, why, and what came of it.
        self.evictions: Counter[tuple[str, str, str]] = Counter()
        #: Replacements that came to the front of the queue.
        self.fronted = 0
        #: Seconds of migration jobs, by phase in which they ended.
        self._migrations: dict[str, Histogram] = {}
        #: Pods that were called back, by quota.
        self.revoked: Counter[tuple[str]] = Counter()
        #: Pods that a quota did not admit, by quota.
        self.quota_refusals: Counter[tuple[str]] = Counter()

    def attempted(self, profile: str, result: str, seconds: float) -> None:
        """Record an attempt."""
        known = self._attempts.get((profile, result))
        if known is None:
            known = self._attempts[profile, result] = Histogram(_steps(0.001, 15))
        known.observe(seconds)

    def gang_cycle(self, result: str, seconds: float) -> None:
        """Record a cycle for a group of gangs."""
        known = self._gang_cycles.get(result)
        if known is None:
            known = self._gang_cycles[result] = Histogram(_steps(0.001, 15))
        known.observe(seconds)

    def strategy_ran(self, strategy: str, profile: str, seconds: float) -> None:
        """Record a strategy's part of a round."""
        known = self._strategies.get((strategy, profile))
        if known is None:
            known = self._strategies[strategy, profile] = Histogram(_steps(0.001, 15))
        known.observe(seconds)

    def evicted(self, by: str, cause: str, result: str) -> None:
        """Record what came of an eviction that a mover asked for.

        A migration job may name anybody: beyond the first movers all others are one.
        """
        movers = {known for known, _, _ in self.evictions}
        known = by in movers or len(movers) < _MOST_MOVERS
        self.evictions[by if known else "others", cause, result] += 1

    def decided(self, result: str, strategy: str, profile: str, namespace: str, node: str) -> None:
        """Record what came of a descheduler's proposal; beyond the first places all are one."""
        key = result, strategy, profile, namespace, node
        if key not in self.descheduled and len(self.descheduled) >= _MOST_PLACES:
            key = result, strategy, profile, "others", "others"
        self.descheduled[key] += 1

    def migrated(self, outcome: str, seconds: float) -> None:
        """Record a migration job that is over."""
        known = self._migrations.get(outcome)
        if known is None:
            known = self._migrations[outcome] = Histogram(_steps(1, 12))
        known.observe(seconds)

    def incoming(self, queue: str, event: str, number: int = 1) -> None:
        """Count pods that were added to a queue."""
        self._incoming[event, queue] += number

    def placed(self, attempts: int, seconds: float) -> None:
        """Record a bound pod."""
        self._placed.observe(attempts)
        self._waited.observe(max(0.0, seconds))

    def asked(self, what: str, result: str) -> None:
        """Count a request to the store by its result."""
        self.requests[what, result] += 1

    def text(self, gauges: Gauges) -> str:
        """Everything in Prometheus' text format."""
        parts = [
            *self._families(),
            *family("scheduler_preemption_attempts_total", "counter", {(): self.preemptions}),
            *family("koordlet_scheduler_fronted_pods_total", "counter", {(): self.fronted}),
        ]
        by_name: dict[str, dict[Labels, float]] = {}
        for (name, labels), value in gauges.items():
            by_name.setdefault(name, {})[labels] = value
        for name, values in by_name.items():
            parts += family(name, "gauge", values)
        return "\n".join([*parts, ""])

    def _families(self) -> Iterator[str]:
        attempts = {
            (("profile", profile), ("result", result)): histogram
            for (profile, result), histogram in sorted(self._attempts.items())
        }
        name = "scheduler_schedule_attempts_total"
        yield from _head(name, "counter")
        for labels, histogram in attempts.items():
            yield _sample(name, labels, histogram.count)
        name = "scheduler_scheduling_attempt_duration_seconds"
        yield from _head(name, "histogram")
        for labels, histogram in attempts.items():
            yield from histogram.lines(name, labels)
        name = "koordlet_scheduler_gang_cycle_seconds"
        yield from _head(name, "histogram")
        for result, histogram in sorted(self._gang_cycles.items()):
            yield from histogram.lines(name, (("result", result),))
        if self._migrations:
            yield from _head("koordlet_migration_seconds", "histogram")
        for outcome, histogram in sorted(self._migrations.items()):
            yield from histogram.lines("koordlet_migration_seconds", (("outcome", outcome),))
        name = "descheduler_strategy_duration_seconds"
        if self._strategies:
            yield from _head(name, "histogram")
        for (strategy, profile), histogram in sorted(self._strategies.items()):
            yield from histogram.lines(name, (("strategy", strategy), ("profile", profile)))
        for name, histogram in (
            ("scheduler_pod_scheduling_attempts", self._placed),
            ("scheduler_pod_scheduling_sli_duration_seconds", self._waited),
            ("scheduler_preemption_victims", self.victims),
            *([("descheduler_loop_duration_seconds", self.rounds)] if self.rounds.count else ()),
        ):
            yield from _head(name, "histogram")
            yield from histogram.lines(name)
        families: tuple[tuple[str, tuple[str, ...], Mapping[Any, int]], ...] = (
            ("scheduler_queue_incoming_pods_total", ("event", "queue"), self._incoming),
            ("scheduler_store_requests_total", ("call", "result"), self.requests),
            ("koordlet_evictions_total", ("by", "cause", "result"), self.evictions),
            *(
                (name, ("result", "strategy", "profile", "namespace", "node"), self.descheduled)
                for name in (
                    "koordlet_descheduler_pods_evicted_total",
                    "descheduler_pods_evicted_total",
                )
                if self.descheduled
            ),
            ("koordlet_scheduler_quota_refusals_total", ("quota",), self.quota_refusals),
            ("koordlet_scheduler_quota_revoked_pods_total", ("quota",), self.revoked),
        )
        for name, keys, counts in families:
            values = {
                tuple(zip(keys, key, strict=True)): count for key, count in sorted(counts.items())
            }
            yield from family(name, "counter", values)


def family(name: str, kind: str, values: Mapping[Any, float]) -> Iterator[str]:
    """The lines of a counter or a gauge, by labels."""
    yield from _head(name, kind)
    for labels, value in values.items():
        yield _sample(name, labels, value)


def _sample(name: str, labels: Labels, value: float) -> str:
    spelled = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels)
    number = str(value) if isinstance(value, int) else f"{value:.9g}"
    return f"{name}{{{spelled}}} {number}" if spelled else f"{name} {number}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
