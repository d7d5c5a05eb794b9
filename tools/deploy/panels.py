"""The panels of Grafana's dashboards, as short rows.

Covers: which panels a fleet, a node and a scheduler have, their queries, thresholds and links.
Does not cover: Grafana's form (``dashboards``).
"""

from __future__ import annotations

from typing import Any

from koordlet.model.record import dataclass

STAT, TABLE, LINES, TIMELINE = "stat", "table", "timeseries", "state-timeline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel: pairs of legend and query."""

    title: str
    queries: tuple[tuple[str, str], ...]
    kind: str = LINES
    unit: str = "short"
    #: Where a value turns orange, and red.
    orange: float | None = None
    red: float | None = None
    #: In Grafana's 24 columns.
    width: int = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """One dashboard."""

    name: str
    title: str
    #: The variable of instances: the metric whose instances it lists, and its label.
    listed: str
    label: str
    panels: tuple[Panel, ...]


def _one(title: str, query: str, legend: str = "", **more: Any) -> Panel:
    return Panel(title=title, queries=((legend, query),), **more)


def _of(name: str, /, **labels: str) -> str:
    """A metric of the chosen instances; a value that begins with ``~`` is a pattern."""
    chosen = {"instance": "~$instance", **labels}
    pairs = (
        f'{label}=~"{value[1:]}"' if value.startswith("~") else f'{label}="{value}"'
        for label, value in chosen.items()
    )
    return f"{name}{{{','.join(pairs)}}}"


def _stat(title: str, query: str, **more: Any) -> Panel:
    return _one(title, query, kind=STAT, width=4, **more)


def _rate(name: str, /, **labels: str) -> str:
    return f"rate({_of(name, **labels)}[5m])"


def _quantile(part: float, name: str, *labels: str) -> str:
    by = ", ".join((*labels, "le"))
    return f"histogram_quantile({part}, sum({_rate(f'{name}_bucket')}) by ({by}))"


_STALLS = "koordlet_node_pressure_stalled_seconds_total"
_WORKLOAD_STALLS = "koordlet_workload_pressure_stalled_seconds_total"
FLEET = Board(
    name="fleet",
    title="koordlet: fleet",
    listed="koordlet_ready",
    label="Node",
    panels=(
        _stat("Agents", f"count({_of('koordlet_ready')})"),
        _stat("Not ready", f"sum({_of('koordlet_ready')} == bool 0)", red=1),
        _stat("Only observing", f"sum({_of('koordlet_enforcing')} == bool 0)", orange=1),
        _stat(
            "Policies rolled back",
            f"sum({_of('koordlet_condition', type='PolicyRolledBack')})",
            orange=1,
        ),
        _stat(
            "Evictions, 1 h",
            f"sum(increase({_of('koordlet_evictions_total', outcome='evicted')}[1h]))",
            orange=1,
        ),
        _stat("Failing checks", f"sum({_of('koordlet_check_healthy')} == bool 0)", red=1),
        _one(
            "CPU by class",
            f"sum({_of('koordlet_share_cpu_cores')}) by (class)",
            "{{class}}",
        ),
        _one(
            "CPU offered to best-effort work",
            f"sum({_of('koordlet_best_effort_offered', resource='~.*cpu')}) by (resource)",
            "{{resource}}",
        ),
        _one(
            "Nodes that stall most on CPU",
            f"topk(10, sum({_rate(_STALLS, degree='some', resource='cpu')}) by (instance))",
            "{{instance}}",
            kind=TABLE,
            unit="percentunit",
            orange=0.2,
            red=0.5,
        ),
        _one(
            "Conditions that are true",
            f"sum({_of('koordlet_condition')} == 1) by (instance, type)",
            "{{instance}} {{type}}",
            kind=TABLE,
        ),
        _one(
            "Ready",
            f"min({_of('koordlet_ready')}) by (instance)",
            "{{instance}}",
            kind=TIMELINE,
            width=24,
        ),
    ),
)
NODE = Board(
    name="koordlet",
    title="koordlet: node",
    listed="koordlet_ready",
    label="Node",
    panels=(
        _stat("Ready", f"min({_of('koordlet_ready')})", red=0),
        _stat("Enforcing", f"min({_of('koordlet_enforcing')})"),
        _stat("Reserved CPUs", f"sum({_of('koordlet_reserved_cpus')})"),
        _stat("Unapplied changes", f"sum({_of('koordlet_plan_steps')})", orange=1),
        _stat(
            "Evictions, 1 h",
            f"sum(increase({_of('koordlet_evictions_total', outcome='evicted')}[1h]))",
            orange=1,
        ),
        _stat(
            "Tick, p99",
            _quantile(0.99, "koordlet_tick_cpu_seconds"),
            unit="s",
            orange=0.1,
            red=0.5,
        ),
        Panel(
            title="CPU of the node",
            queries=(
                ("node", _rate("koordlet_node_cpu_usage_seconds_total")),
                ("{{class}}", f"sum({_of('koordlet_share_cpu_cores')}) by (instance, class)"),
            ),
        ),
        Panel(
            title="Memory of the node",
            queries=(
                ("{{kind}}", f"sum({_of('koordlet_node_memory_bytes')}) by (instance, kind)"),
                ("{{class}}", f"sum({_of('koordlet_share_memory_bytes')}) by (instance, class)"),
            ),
            unit="bytes",
        ),
        _one(
            "Stalls",
            _rate(_STALLS, degree="some"),
            "{{resource}}",
            unit="percentunit",
            orange=0.2,
            red=0.5,
        ),
        _one("Waiting for a CPU", _rate("koordlet_node_run_delay_seconds_total"), "seconds/s"),
        Panel(
            title="Pools",
            queries=(
                ("{{kind}}", f"sum({_of('koordlet_shared_pools_cpus')}) by (instance, kind)"),
                ("reserved", _of("koordlet_reserved_cpus")),
            ),
        ),
        Panel(
            title="Best-effort limit and use",
            queries=(
                ("limit by {{policy}}", _of("koordlet_best_effort_limit_cores")),
                ("use", _of("koordlet_share_cpu_cores", **{"class": "BE"})),
            ),
        ),
        _one(
            "Workloads with the most CPU",
            f"topk(10, {_rate('koordlet_workload_cpu_usage_seconds_total')})",
            "{{namespace}}/{{name}}",
            kind=TABLE,
        ),
        _one(
            "Workloads with the most memory",
            f"topk(10, {_of('koordlet_workload_memory_working_set_bytes')})",
            "{{namespace}}/{{name}}",
            kind=TABLE,
            unit="bytes",
        ),
        _one(
            "Throttled periods of workloads",
            f"topk(10, {_rate('koordlet_workload_cpu_cfs_throttled_periods_total')})",
            "{{namespace}}/{{name}}",
        ),
        _one(
            "Stalls of workloads on CPU",
            f"topk(10, {_rate(_WORKLOAD_STALLS, resource='cpu', degree='some')})",
            "{{namespace}}/{{name}}",
            unit="percentunit",
        ),
        Panel(
            title="Health",
            kind=TIMELINE,
            queries=(
                ("{{check}}", f"min({_of('koordlet_check_healthy')}) by (instance, check)"),
                ("{{source}}", f"min({_of('koordlet_source_healthy')}) by (instance, source)"),
            ),
        ),
        _one(
            "Conditions",
            f"max({_of('koordlet_condition')}) by (instance, type)",
            "{{type}}",
            kind=TIMELINE,
        ),
        Panel(
            title="Actions",
            unit="ops",
            queries=tuple(
                (name, _rate(f"koordlet_{name}_total"))
                for name in ("writes", "refusals", "contested")
            ),
        ),
        Panel(
            title="Cost of a tick, p99",
            unit="s",
            queries=(
                ("CPU time", _quantile(0.99, "koordlet_tick_cpu_seconds", "instance")),
                ("delay", _quantile(0.99, "koordlet_tick_delay_seconds", "instance")),
            ),
        ),
        _one(
            "Clients",
            f"sum({_rate('koordlet_surface_events_total')}) by (instance, surface, event)",
            "{{surface}} {{event}}",
            unit="ops",
        ),
        _one(
            "Evictions",
            f"sum(increase({_of('koordlet_evictions_total')}[15m])) by (policy, signal, outcome)",
            "{{policy}} {{signal}} {{outcome}}",
        ),
    ),
)
_SLI = "scheduler_pod_scheduling_sli_duration_seconds"
_ATTEMPT = "scheduler_scheduling_attempt_duration_seconds"
SCHEDULER = Board(
    name="scheduler",
    title="koordlet: scheduler",
    listed="scheduler_homeless_pods",
    label="Scheduler",
    panels=(
        _stat(
            "Leaders",
            f"sum({_of('leader_election_master_status', name='koordlet-scheduler')})",
            red=0,
        ),
        _stat(
            "Pods that wait",
            f"sum({_of('scheduler_pending_pods', queue='unschedulable')})",
            orange=1,
        ),
        _stat("Decisions/s", f"sum({_rate('scheduler_schedule_attempts_total')})"),
        _stat("Decision, p99", _quantile(0.99, _ATTEMPT), unit="s", orange=0.05, red=0.1),
        _stat("Gangs that wait", f"sum({_of('koordlet_scheduler_gangs_waiting')})"),
        _stat("Homeless pods", f"sum({_of('scheduler_homeless_pods')})", orange=1),
        _one("Queues", f"sum({_of('scheduler_pending_pods')}) by (queue)", "{{queue}}"),
        _one(
            "Decisions",
            f"sum({_rate('scheduler_schedule_attempts_total')}) by (profile, result)",
            "{{profile}} {{result}}",
            unit="ops",
        ),
        Panel(
            title="From a pod's creation to its place",
            unit="s",
            queries=(("p50", _quantile(0.5, _SLI)), ("p99", _quantile(0.99, _SLI))),
        ),
        Panel(
            title="Time of one decision",
            unit="s",
            queries=(
                ("p50 {{result}}", _quantile(0.5, _ATTEMPT, "result")),
                ("p99 {{result}}", _quantile(0.99, _ATTEMPT, "result")),
            ),
        ),
        _one(
            "Tries until a place was found, p99",
            _quantile(0.99, "scheduler_pod_scheduling_attempts"),
        ),
        _one(
            "What brings pods back to a queue",
            f"sum({_rate('scheduler_queue_incoming_pods_total')}) by (queue, event)",
            "{{queue}} {{event}}",
            unit="ops",
        ),
        _one(
            "Requests to the store",
            f"sum({_rate('scheduler_store_requests_total')}) by (call, result)",
            "{{call}} {{result}}",
            kind=TABLE,
            unit="ops",
        ),
        Panel(
            title="Preemption",
            unit="ops",
            queries=(
                ("attempts", f"sum({_rate('scheduler_preemption_attempts_total')})"),
                ("victims", f"sum({_rate('scheduler_preemption_victims_sum')})"),
            ),
        ),
        _one(
            "What it knows",
            f"sum({_of('scheduler_cache_size')}) by (instance, type)",
            "{{instance}} {{type}}",
        ),
        _one(
            "Who decides",
            _of("leader_election_master_status", name="koordlet-scheduler"),
            "{{instance}}",
            kind=TIMELINE,
        ),
    ),
)
BOARDS = (FLEET, NODE, SCHEDULER)
