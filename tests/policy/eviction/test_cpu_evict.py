"""Eviction by satisfaction and by use of CPU, as the co-location peers have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from koordlet.model import cgroup, decision, knob, pod, resources, snapshot, strategies, wishes
from koordlet.policy.eviction import cpu_evict
from tests.kit import colocation, moments
from tests.kit.colocation import KubeQos, Qos

#: Four CPUs.
SHAPE = moments.machine(1, 2)
STARVED = strategies.Threshold(
    enable=True,
    cpu_evict_be_satisfaction_lower_percent=60,
    cpu_evict_be_satisfaction_upper_percent=80,
)
BUSY = strategies.Threshold(
    enable=True, cpu_evict_threshold_percent=80, evict_enabled_priority_threshold=9000
)


def be(name: str, milli: int, priority: int | None = 5500) -> pod.Pod:
    """A best-effort pod that asks for so much, and consents."""
    return colocation.kube(
        name,
        KubeQos.BEST_EFFORT,
        Qos.BE,
        priority=priority,
        requests={resources.BATCH_CPU: milli},
        wishes=wishes.Wishes(eviction=wishes.Eviction(enabled=True)),
    )


def group(now: snapshot.Snapshot, path: str, values: Mapping[str, str]) -> snapshot.Snapshot:
    """The same moment with other texts in a group's files."""
    before = now.groups[path]
    after = cgroup.Group(path=path, inode=before.inode, values={**before.values, **values})
    return replace(now, groups={**now.groups, path: after})


class Node:
    """A node on which a policy decides second by second."""

    def __init__(self, threshold: strategies.Threshold, *pods: pod.Pod) -> None:
        self.threshold = threshold
        self.pods = pods
        self.files: dict[str, str] = {}
        self.offered: dict[str, int] = {}
        self.state: cpu_evict.State | None = None

    def decide(
        self, used: dict[str, float], node: float = 3.0, *, at: float = 100.0
    ) -> decision.Decision[cpu_evict.State | None]:
        """Use in cores, by name of the pod; the tier's is their sum."""
        groups = {
            tenant.group: used.get(tenant.name, 0.0)
            for tenant in self.pods
            if tenant.group is not None
        }
        past = colocation.history(node, {**groups, colocation.TIER: sum(used.values())}, at=at)
        now = colocation.moment(SHAPE, self.pods, threshold=self.threshold, at=at)
        now = group(now, colocation.TIER, self.files)
        now = replace(now, node=replace(now.node, allocatable=self.offered))
        made = cpu_evict.decide(now, past, strategies.Threshold(), self.state)
        self.state = made.next_state
        return made

    def gone(self, used: dict[str, float], node: float = 3.0, *, at: float = 120.0) -> str:
        """Who goes after the first cool time."""
        self.decide(used, node)
        return "".join(victim.uid for victim in self.decide(used, node, at=at).evictions)


def test_satisfaction() -> None:
    """4 CPUs of 8: to 80 % 2.4 are missing; who uses more of its request goes first."""
    node = Node(STARVED, be("a", 2000), be("b", 2000), be("c", 4000))
    assert node.gone({"a": 1.0, "b": 2.0, "c": 0.9}) == "ba"


def test_priority_comes_first() -> None:
    """The lower one, whatever it uses."""
    node = Node(STARVED, be("a", 4000, 5001), be("b", 4000, 5000))
    assert node.gone({"a": 3.5, "b": 0.3}) == "b"


def test_the_first_cool_time_counts_from_the_start() -> None:
    """Twenty seconds."""
    assert Node(STARVED, be("a", 8000)).gone({"a": 4.0}, at=119.0) == ""
    assert Node(STARVED, be("a", 8000)).gone({"a": 4.0}, at=120.0) == "a"


def test_a_quota_is_a_limit_too() -> None:
    """The smaller of set and quota counts; without use of it nobody goes."""
    node = Node(STARVED, be("a", 4000))
    assert node.gone({"a": 2.0}) == ""
    node.files = {knob.CPU_CFS_QUOTA.name: "200000", knob.CPU_CFS_PERIOD.name: "100000"}
    node.state = None
    assert node.gone({"a": 2.0}) == "a"
    node.state = None
    assert node.gone({"a": 1.7}) == ""


def test_by_allocatable() -> None:
    """What is offered takes the place of the limit; without an offer nobody goes."""
    by = replace(STARVED, cpu_evict_policy="evictByAllocatable")
    node = Node(by, be("a", 4000))
    assert node.gone({"a": 4.0}) == ""
    assert node.decide({"a": 4.0}, at=121.0).signals[0].why == "the node offers no batch-cpu"
    node.offered = {resources.BATCH_CPU: 0}
    assert node.gone({"a": 0.0}) == "a"


def test_use_of_the_node() -> None:
    """3.3 of 4 CPUs are 82 %: down to 78 % 160 thousandths; the larger goes, and needs consent."""
    quiet = replace(be("c", 0), wishes=wishes.NONE)
    node = Node(BUSY, be("a", 0), be("b", 0), quiet)

    assert node.gone({"a": 0.1, "b": 0.15, "c": 2.0}, 3.3) == "ba"
    assert Node(BUSY, be("a", 0)).gone({"a": 3.0}, 3.19) == ""
    assert Node(BUSY, be("a", 0)).gone({"a": 3.0}, 3.2) == "a"


def test_without_a_bound_nobody() -> None:
    """And the signal says so."""
    node = Node(replace(BUSY, evict_enabled_priority_threshold=None), be("a", 0))
    assert node.gone({"a": 3.0}, 4.0) == ""
    assert "evictEnabledPriorityThreshold" in node.decide({"a": 3.0}, 4.0, at=121.0).signals[0].why


def test_both_at_once_share_their_victims() -> None:
    """Who was chosen for one counts as released for the other, in its own unit."""
    both = replace(STARVED, cpu_evict_threshold_percent=80, evict_enabled_priority_threshold=9000)
    node = Node(both, be("a", 4000), be("b", 4000))
    gone = node.gone({"a": 1.9, "b": 1.7}, 3.8)

    assert gone == "a"


def test_not_enabled_costs_nothing() -> None:
    """No signal, no state."""
    made = Node(replace(STARVED, enable=False), be("a", 8000)).decide({"a": 4.0})
    assert not made.signals
    assert made.next_state is None


def test_stale_input() -> None:
    """Evicts nobody."""
    assert Node(STARVED, replace(be("a", 8000), stale=True)).gone({"a": 4.0}) == ""
