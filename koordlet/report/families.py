"""The table of metric families: what each says, its labels, its bound, and where it comes from.

Covers: every series of our own. Pure. Does not cover: writing them (``metrics``), the agent's
``process_*`` series (``metrics.Process``).

Rules:
1. One stem for a feature: the family's name begins with the policy's or station's stem.
2. What is unknown has no sample: never a zero that nobody measured.
3. No label takes free text or something of unbounded variety; ``most`` cuts what is left.
"""

from __future__ import annotations

import operator
import typing
from collections.abc import Callable, Iterable, Iterator

from koordlet.model import ledger
from koordlet.model.record import dataclass
from koordlet.report import view

if typing.TYPE_CHECKING:
    # A machine without a kubelet never loads it.
    from koordlet.model import spread

Rows = Iterable[tuple[tuple[str, ...], float | None]]

GAUGE = "gauge"
COUNTER = "counter"
#: Rows begin with what follows the name (``BUCKET``, ``SUM``, ``COUNT``), and a bucket's end with
#: its bound, which is no label of the family.
HISTOGRAM = "histogram"
BUCKET, SUM, COUNT = "_bucket", "_sum", "_count"
#: What most families have: so many series at most, and numbers printed so.
FEW, FORM = 256, "%.6g"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One family. The name of a counter is without ``_total``, which its samples end in."""

    name: str
    help: str
    rows: Callable[[view.ReportView], Rows]
    type: str = GAUGE
    labels: tuple[str, ...] = ()
    #: How many series there can be, in words.
    bound: str = "1"
    #: No more than this, whatever the machine says.
    most: int = FEW
    #: How a value is printed: counts as integers, so that none is rounded.
    form: str = FORM


def spread_rows(labels: tuple[str, ...], measured: spread.Spread) -> Rows:
    """The rows of one histogram."""
    for bound, count in zip((*map(str, measured.bounds), "+Inf"), measured.counts, strict=True):
        yield (BUCKET, *labels, bound), count
    yield (SUM, *labels), measured.total
    yield (COUNT, *labels), measured.counts[-1]


def _one(read: Callable[[view.ReportView], float | None]) -> Callable[[view.ReportView], Rows]:
    """The rows of a family without labels."""
    return lambda now: (((), read(now)),)


def _number(name: str, text: str, read: Callable[[view.ReportView], int]) -> Family:
    """A family of one whole number."""
    return Family(name=name, help=text, form="%d", rows=_one(read))


def _counts(**texts: str) -> Iterator[Family]:
    """A family for each counter of the agent."""
    for name, text in texts.items():
        rows = _one(operator.attrgetter(f"counters.{name}"))
        yield Family(name=f"koordlet_{name}", help=text, type=COUNTER, form="%d", rows=rows)


def _quantiles(what: str, text: str, of: str) -> Family:
    values = operator.attrgetter(f"counters.{of}")
    return Family(
        name=f"koordlet_tick_{what}_quantile_seconds",
        help=f"{text} of the last 600 ticks, by quantile; 1 is the maximum.",
        labels=("quantile",),
        bound="3",
        rows=lambda now: (((share,), seconds) for share, seconds in values(now).items()),
    )


def _failures(now: view.ReportView) -> Rows:
    stems = sorted({*now.plan.explanations, *now.counters.failures})
    return (((stem,), now.counters.failures.get(stem, 0)) for stem in stems)


def _ages(now: view.ReportView) -> Rows:
    for source in now.snapshot.sources:
        age = None if source.last_good is None else max(0.0, now.snapshot.at - source.last_good)
        yield (source.name,), age


def _signals(now: view.ReportView) -> Rows:
    for signal in now.plan.signals:
        if signal.met is not None:
            yield (signal.name, signal.spelled or signal.threshold), signal.met


def _pools(now: view.ReportView) -> Rows:
    sizes: dict[tuple[str, ...], int] = {}
    for pool in now.plan.ledger.pools:
        key = (pool.kind, "" if pool.node is None else str(pool.node))
        sizes[key] = sizes.get(key, 0) + len(pool.cpus)
    return sizes.items()


def _pool(kind: str) -> Callable[[view.ReportView], Rows]:
    """The peer's form: one series, labelled with the node's name."""

    def rows(now: view.ReportView) -> Rows:
        if any(pool.kind == kind for pool in now.plan.ledger.pools):
            yield (now.snapshot.node.name,), len(now.plan.ledger.pool(kind))

    return rows


def _workloads(now: view.ReportView) -> Rows:
    counted: dict[str, int] = {}
    for pod in now.snapshot.pods:
        counted[pod.qos.value] = counted.get(pod.qos.value, 0) + 1
    return (((qos,), number) for qos, number in counted.items())


FAMILIES = (
    _number(
        "koordlet_ready",
        "1 after the first tick whose writes were verified, 0 before.",
        lambda now: now.ready,
    ),
    _number(
        "koordlet_enforcing",
        "1 if the agent applies its decisions, 0 if it only observes.",
        lambda now: now.mode == "enforce",
    ),
    Family(
        name="koordlet_check_healthy",
        help="1 if the named health check passes, 0 if it fails.",
        labels=("check",),
        bound="one per check",
        rows=lambda now: (((check.name,), check.ok) for check in now.checks),
        form="%d",
    ),
    *_counts(
        ticks="Ticks since the agent started.",
        late_ticks="Ticks that started more than half a period late.",
    ),
    Family(
        name="koordlet_tick_duration_seconds",
        help="CPU time of the last tick.",
        rows=_one(lambda now: now.counters.tick_cpu_seconds),
    ),
    Family(
        name="koordlet_tick_lateness_seconds",
        help="Delay of the last tick's start.",
        rows=_one(lambda now: now.counters.tick_lateness_seconds),
    ),
    _quantiles("duration", "CPU time", "durations"),
    _quantiles("lateness", "Start delay", "lateness"),
    *_counts(
        writes="Actions applied and verified by reading back.",
        refusals="Actions that the kernel rejected.",
    ),
    Family(
        name="koordlet_refusals_by_errno",
        help="Actions that the kernel rejected, or whose cgroup was gone, by errno.",
        type=COUNTER,
        labels=("errno",),
        bound="one per errno",
        rows=lambda now: (((name,), count) for name, count in sorted(now.counters.errnos.items())),
        form="%d",
    ),
    *_counts(
        contested="Values set by koordlet that another writer overwrote.",
        conflicts="Values of one policy that were overridden by another policy.",
    ),
    Family(
        name="koordlet_policy_failures",
        help="Ticks in which a policy failed; the other policies still ran.",
        type=COUNTER,
        labels=("policy",),
        bound="one per policy",
        rows=_failures,
        form="%d",
    ),
    Family(
        name="koordlet_source_healthy",
        help="1 if the last request to the source succeeded, 0 if it failed.",
        labels=("source",),
        bound="one per source",
        rows=lambda now: (((source.name,), source.ok) for source in now.snapshot.sources),
        form="%d",
    ),
    Family(
        name="koordlet_source_age_seconds",
        help="Time since the last successful answer of the source.",
        labels=("source",),
        bound="one per source",
        rows=_ages,
    ),
    Family(
        name="koordlet_unsupported",
        help="1 for each feature that this machine lacks; /api/v1/node gives the reason.",
        labels=("feature",),
        bound="one per feature",
        rows=lambda now: (((gap.feature,), 1) for gap in now.plan.unsupported),
        form="%d",
    ),
    Family(
        name="koordlet_condition",
        help="1 if the condition is true, 0 if it is false.",
        labels=("type", "subject"),
        bound="condition types times (workloads + 1), at most 1024",
        most=1024,
        rows=lambda now: (
            ((condition.type, condition.subject), condition.status)
            for condition in now.plan.conditions
        ),
        form="%d",
    ),
    Family(
        name="koordlet_evictions",
        help="Evictions by outcome: pods evicted and attempts refused.",
        type=COUNTER,
        labels=("policy", "signal", "outcome"),
        bound="evicting policies times their signals, at most 128",
        most=128,
        rows=lambda now: now.counters.evictions.items(),
        form="%d",
    ),
    Family(
        name="koordlet_signal_met",
        help="1 if the eviction signal has met its threshold, 0 if not.",
        labels=("signal", "threshold"),
        bound="configured thresholds, at most 128",
        most=128,
        rows=_signals,
        form="%d",
    ),
    _number(
        "koordlet_plan_steps",
        "Changes in the last plan that are not applied yet.",
        lambda now: len(now.plan.steps),
    ),
    _number(
        "koordlet_reserved_cpus",
        "CPUs reserved for the system and withheld from workloads.",
        lambda now: len(now.plan.ledger.held(ledger.Owner.RESERVED)),
    ),
    Family(
        name="koordlet_shared_pools_cpus",
        help="CPUs of a shared pool by NUMA node (empty label: no NUMA node).",
        labels=("kind", "numa_node"),
        bound="2 per NUMA node",
        rows=_pools,
        form="%d",
    ),
    *(
        Family(
            name=f"koordlet_cpuset_{stem}share_pool_cpu_cores",
            help=f"CPUs of the {kind} pool, under Koordinator's metric name.",
            labels=("node",),
            rows=_pool(kind),
            form="%d",
        )
        for stem, kind in (("", "LS"), ("be_", "BE"))
    ),
    Family(
        name="koordlet_workloads",
        help="Workloads by QoS class.",
        labels=("qos",),
        bound="one per QoS class, 5",
        rows=_workloads,
        form="%d",
    ),
)
