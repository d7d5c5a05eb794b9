"""The table of metric families: what each says, its labels, its bound, and where it comes from.

Covers: every series of our own. Pure. Does not cover: writing them (``metrics``), the agent's
``process_*`` series (``metrics.Process``).

Rules:
1. One stem for a feature: the family's name begins with the policy's or station's stem.
2. What is unknown has no sample: never a zero that nobody measured.
3. No label takes free text or something of unbounded variety; ``most`` cuts what is left.
4. Where one function gives the rows of one family, it is that family: the function's name is the
   family's, its docstring the help.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import operator
from collections.abc import Callable, Iterable

from koordlet.model import ledger, spread
from koordlet.model.record import dataclass
from koordlet.report import view

Rows = Iterable[tuple[tuple[str, ...], float | None]]
Read = Callable[[view.ReportView], Rows]

GAUGE = "gauge"
COUNTER = "counter"
#: Rows begin with what follows the name (``BUCKET``, ``SUM``, ``COUNT``), and a bucket's end with
#: its bound, which is no label of the family.
HISTOGRAM = "histogram"
BUCKET, SUM, COUNT = "_bucket", "_sum", "_count"
#: Groups of families that can be switched off (``report.metrics.without``); what is in none of them
#: is about the agent and the node, and always there.
PEER, CPUS, WORKLOADS, CONTAINERS, PRESSURE, DEPRECATED = GROUPS = (
    *("peer", "cpus", "workloads", "containers", "pressure", "deprecated"),
)
#: What most families have: so many series at most, and numbers printed so.
FEW, FORM = 256, "%.6g"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One family. The name of a counter is without ``_total``, which its samples end in."""

    name: str
    help: str
    rows: Read
    type: str = GAUGE
    labels: tuple[str, ...] = ()
    #: How many series there can be, in words.
    bound: str = "1"
    #: No more than this, whatever the machine says.
    most: int = FEW
    #: How a value is printed: counts as integers, so that none is rounded.
    form: str = FORM
    #: One of ``GROUPS``; empty: always there.
    group: str = ""


def spread_rows(labels: tuple[str, ...], measured: spread.Spread) -> Rows:
    """The rows of one histogram."""
    for bound, count in zip((*map(str, measured.bounds), "+Inf"), measured.counts, strict=True):
        yield (BUCKET, *labels, bound), count
    yield (SUM, *labels), measured.total
    yield (COUNT, *labels), measured.counts[-1]


class Families(list[Family]):
    """Families in the order in which they are exported; ``group`` of those that are added here."""

    def __init__(self, families: Iterable[Family] = (), *, group: str = "") -> None:
        super().__init__(families)
        self._group = group

    def family(
        self,
        *labels: str,
        bound: str = "1",
        most: int = 0,
        form: str = FORM,
        kind: str = GAUGE,
        text: str = "",
        group: str | None = None,
    ) -> Callable[[Read], Read]:
        """Append the function as a family (rule 4). ``text``: a help that is longer than a line."""

        def add(rows: Read) -> Read:
            self.append(
                Family(
                    name=rows.__name__,
                    help=text or rows.__doc__ or "",
                    rows=rows,
                    type=kind,
                    labels=labels,
                    bound=f"{bound}, at most {most}" if most else bound,
                    most=most or FEW,
                    form=form,
                    group=self._group if group is None else group,
                )
            )
            return rows

        return add

    def counters(self, **texts: str) -> None:
        """Append a family for each of these counters of the agent."""
        for name, text in texts.items():
            read = operator.attrgetter(f"counters.{name}")
            rows = _single(read)
            family = Family(name=f"koordlet_{name}", help=text, type=COUNTER, form="%d", rows=rows)
            self.append(family)


def _single(read: Callable[[view.ReportView], float]) -> Read:
    return lambda now: (((), read(now)),)


FAMILIES = Families()


@FAMILIES.family(form="%d")
def koordlet_ready(now: view.ReportView) -> Rows:
    """1 after the first tick whose writes were verified, 0 before."""
    yield (), now.ready


@FAMILIES.family(form="%d")
def koordlet_enforcing(now: view.ReportView) -> Rows:
    """1 if the agent applies its decisions, 0 if it only observes."""
    yield (), now.mode == "enforce"


@FAMILIES.family("sha256", form="%d")
def koordlet_config_info(now: view.ReportView) -> Rows:
    """1, with the SHA-256 of the configuration file in force as label; absent without a file."""
    if now.config is not None:
        digest = hashlib.sha256(now.config.encode("utf-8", "surrogateescape"))
        yield (digest.hexdigest(),), 1


@FAMILIES.family("check", bound="one per check", form="%d")
def koordlet_check_healthy(now: view.ReportView) -> Rows:
    """1 if the named health check passes, 0 if it fails."""
    return (((check.name,), check.ok) for check in now.checks)


FAMILIES.counters(
    ticks="Ticks since the agent started.",
    late_ticks="Ticks that started more than half a period late.",
)


@FAMILIES.family(kind=HISTOGRAM, bound="13")
def koordlet_tick_cpu_seconds(now: view.ReportView) -> Rows:
    """CPU time of a tick."""
    return spread_rows((), now.counters.tick_cpu)


@FAMILIES.family(kind=HISTOGRAM, bound="13")
def koordlet_tick_delay_seconds(now: view.ReportView) -> Rows:
    """Delay of a tick's start."""
    return spread_rows((), now.counters.tick_delay)


_old = functools.partial(FAMILIES.family, group=DEPRECATED)


@_old()
def koordlet_tick_duration_seconds(now: view.ReportView) -> Rows:
    """CPU time of the last tick; now koordlet_tick_cpu_seconds."""
    yield (), now.counters.tick_cpu_seconds


@_old()
def koordlet_tick_lateness_seconds(now: view.ReportView) -> Rows:
    """Delay of the last tick's start; now koordlet_tick_delay_seconds."""
    yield (), now.counters.tick_lateness_seconds


@_old("quantile", bound="3")
def koordlet_tick_duration_quantile_seconds(now: view.ReportView) -> Rows:
    """CPU time of the last 600 ticks, by quantile; now koordlet_tick_cpu_seconds."""
    return (((share,), seconds) for share, seconds in now.counters.durations.items())


@_old("quantile", bound="3")
def koordlet_tick_lateness_quantile_seconds(now: view.ReportView) -> Rows:
    """Start delay of the last 600 ticks, by quantile; now koordlet_tick_delay_seconds."""
    return (((share,), seconds) for share, seconds in now.counters.lateness.items())


FAMILIES.counters(
    writes="Actions applied and verified by reading back.",
    refusals="Actions that the kernel rejected.",
)


@FAMILIES.family("errno", kind=COUNTER, bound="one per errno", form="%d")
def koordlet_refusals_by_errno(now: view.ReportView) -> Rows:
    """Actions that the kernel rejected, or whose cgroup was gone, by errno."""
    return (((name,), count) for name, count in sorted(now.counters.errnos.items()))


FAMILIES.counters(
    contested="Values set by koordlet that another writer overwrote.",
    conflicts="Values of one policy that were overridden by another policy.",
)


@FAMILIES.family("policy", kind=COUNTER, bound="one per policy", form="%d")
def koordlet_policy_failures(now: view.ReportView) -> Rows:
    """Ticks in which a policy failed; the other policies still ran."""
    stems = sorted({*now.plan.explanations, *now.counters.failures})
    return (((stem,), now.counters.failures.get(stem, 0)) for stem in stems)


@FAMILIES.family("source", bound="one per source", form="%d")
def koordlet_source_healthy(now: view.ReportView) -> Rows:
    """1 if the last request to the source succeeded, 0 if it failed."""
    return (((source.name,), source.ok) for source in now.snapshot.sources)


@FAMILIES.family("source", bound="one per source")
def koordlet_source_age_seconds(now: view.ReportView) -> Rows:
    """Time since the last successful answer of the source."""
    for source in now.snapshot.sources:
        age = None if source.last_good is None else max(0.0, now.snapshot.at - source.last_good)
        yield (source.name,), age


@FAMILIES.family("feature", bound="one per feature", form="%d")
def koordlet_unsupported(now: view.ReportView) -> Rows:
    """1 for each feature that this machine lacks; /api/v1/node gives the reason."""
    return (((gap.feature,), 1) for gap in now.plan.unsupported)


_CONDITIONS = "condition types times (workloads + 1)"


@FAMILIES.family("type", "subject", bound=_CONDITIONS, most=1024, form="%d")
def koordlet_condition(now: view.ReportView) -> Rows:
    """1 if the condition is true, 0 if it is false."""
    for condition in now.plan.conditions:
        yield (condition.type, condition.subject), condition.status


#: Of the families of evictions.
EVICTING = "evicting policies times their signals"


@FAMILIES.family("policy", "signal", "outcome", kind=COUNTER, bound=EVICTING, most=128, form="%d")
def koordlet_evictions(now: view.ReportView) -> Rows:
    """Evictions by outcome: pods evicted and attempts refused."""
    return now.counters.evictions.items()


@FAMILIES.family("signal", "threshold", bound="configured thresholds", most=128, form="%d")
def koordlet_signal_met(now: view.ReportView) -> Rows:
    """1 if the eviction signal has met its threshold, 0 if not."""
    for signal in now.plan.signals:
        if signal.met is not None:
            yield (signal.name, signal.spelled or signal.threshold), signal.met


@FAMILIES.family(form="%d")
def koordlet_plan_steps(now: view.ReportView) -> Rows:
    """Changes in the last plan that are not applied yet."""
    yield (), len(now.plan.steps)


@FAMILIES.family(form="%d")
def koordlet_reserved_cpus(now: view.ReportView) -> Rows:
    """CPUs reserved for the system and withheld from workloads."""
    yield (), len(now.plan.ledger.held(ledger.Owner.RESERVED))


@FAMILIES.family("kind", "numa_node", bound="2 per NUMA node", form="%d")
def koordlet_shared_pools_cpus(now: view.ReportView) -> Rows:
    """CPUs of a shared pool by NUMA node (empty label: no NUMA node)."""
    sizes: dict[tuple[str, ...], int] = {}
    for pool in now.plan.ledger.pools:
        key = (pool.kind, "" if pool.node is None else str(pool.node))
        sizes[key] = sizes.get(key, 0) + len(pool.cpus)
    return sizes.items()


def _pool(kind: str, now: view.ReportView) -> Rows:
    """The peer's form: one series, labelled with the node's name."""
    if any(pool.kind == kind for pool in now.plan.ledger.pools):
        yield (now.snapshot.node.name,), len(now.plan.ledger.pool(kind))


@FAMILIES.family("node", form="%d", group=PEER)
def koordlet_cpuset_share_pool_cpu_cores(now: view.ReportView) -> Rows:
    """CPUs of the LS pool, under Koordinator's metric name."""
    return _pool("LS", now)


@FAMILIES.family("node", form="%d", group=PEER)
def koordlet_cpuset_be_share_pool_cpu_cores(now: view.ReportView) -> Rows:
    """CPUs of the BE pool, under Koordinator's metric name."""
    return _pool("BE", now)


@FAMILIES.family("qos", bound="one per QoS class, 5", form="%d")
def koordlet_workloads(now: view.ReportView) -> Rows:
    """Workloads by QoS class."""
    counted = collections.Counter(pod.qos.value for pod in now.snapshot.pods)
    return (((qos,), number) for qos, number in counted.items())
