"""The cluster as one round of a descheduler sees it.

Covers: nodes in view, the pods on them, what else strategies ask. Does not cover: deciding.

Rules:
1. Everything is read while the round runs: a pod that left meanwhile is not there any more. The
   lists of pods are made once for each state of a node, and nobody changes them.
2. A node that is not ready is not looked at; one that is cordoned is, as the peers do it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field

from koordlet.kubeapi import selectors
from koordlet.kubeapi.node_avoidances import Avoidance
from koordlet.model.nodereport import NodeReport
from koordlet.model.record import dataclass
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.descheduling import selection
from koordlet.scheduler.descheduling.prometheus_source import QueryAnswer
from koordlet.scheduler.descheduling.traits import PodTraits, Resident
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.disruption.settings import Aggressiveness
from koordlet.scheduler.disruption.tracker import Pressed
from koordlet.scheduler.disruption.workloads import WorkloadIndex
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.gangs.book import GangBook
from koordlet.scheduler.objects import terms
from koordlet.scheduler.objects.disruption import DisruptionBudget
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.usage import NodeUsage

_NOT_READY = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})

#: How the UID of a replacement begins that is only expected (``landing``).
GHOST = "~"


def nothing(_resident: Resident) -> str:
    """Nothing that is under way forbids a pod."""
    return ""


@dataclass(slots=True, kw_only=True)
class ClusterState:
    """Nodes, pods and what describes them."""

    columns: Columns
    #: By name of a scheduler, the profile by which its pods are placed, with all that it reads.
    profile: Callable[[str], Profile]
    workloads: WorkloadIndex
    now: Clock
    #: By UID. Of a pod that is missing nobody knows whether it is protected: it is not looked at.
    traits: Mapping[str, PodTraits] = field(default_factory=dict)
    #: Pods that have ended and are still there, by node.
    ended: Mapping[str, Sequence[Pod]] = field(default_factory=dict)
    budgets: Sequence[DisruptionBudget] = ()
    usages: Mapping[str, NodeUsage] = field(default_factory=dict)
    #: What a Prometheus answered, by query.
    answers: Mapping[str, QueryAnswer] = field(default_factory=dict)
    #: What agents report that nodes suffer from now: conditions by node.
    pressures: Mapping[str, frozenset[str]] = field(default_factory=dict)
    #: What agents report, where they are heard.
    reports: Mapping[str, NodeReport] = field(default_factory=dict)
    #: Whom agents evicted from their nodes under pressure of late.
    pressed: Sequence[Pressed] = ()
    #: By node, the live entries of avoid lists about the workload of a class.
    avoids: Callable[[PodClass], Mapping[str, Avoidance]] = lambda _pod_class: {}
    #: Values of priority classes.
    priorities: Mapping[str, int] = field(default_factory=dict)
    #: The storage class of each claim by ``namespace/name``; empty where it has none.
    claim_classes: Mapping[str, str] = field(default_factory=dict)
    #: Why a pod may not be chosen, of what is under way: a migration job that exists. The seam for
    #: whoever makes jobs instead of evictions.
    held: Callable[[Resident], str] = nothing
    #: UIDs of pods that are said to be moved alive, though it may not show on them yet.
    evacuating: Collection[str] = frozenset()
    gangs: GangBook = field(default_factory=GangBook)
    #: How far strategies go that say nothing of it.
    aggressiveness: Aggressiveness = Aggressiveness.NORMAL
    _owned: Counter[str] | None = None
    _pressed: dict[str, list[Pressed]] | None = None
    #: By row, how often anything about its pods was another, and its residents.
    _residents: dict[int, tuple[int, list[Resident]]] = field(default_factory=dict)

    def node(self, row: int) -> Node:
        """The node of a row."""
        return self.columns.chosen(row)

    def rows(self, *wanted: selectors.Compiled | None) -> list[int]:
        """The rows of nodes that are ready and that all of these selectors mean."""
        return [
            row
            for row, node in enumerate(self.columns.nodes)
            if node is not None
            and is_ready(node)
            and all(selection.matches(selector, node.labels) for selector in wanted)
        ]

    def residents(self, row: int, *, ended: bool = False) -> list[Resident]:
        """The pods of a node; no reserve pods and no replacements that are only expected."""
        look, known = self.columns.looks[row], self._residents.get(row)
        if known is None or known[0] != look:
            several = [
                Resident(pod, traits, row)
                for pod in self.columns.pods[row].values()
                if (traits := self.traits.get(pod.uid)) is not None
                and not pod.reserve_pod_of
                and not pod.uid.startswith(GHOST)
            ]
            known = self._residents[row] = look, several
        return known[1] + self.ended_on(row) if ended and self.ended else known[1]

    def ended_on(self, row: int) -> list[Resident]:
        """The pods of a node that have ended and are still there."""
        return [
            Resident(pod, traits, row)
            for pod in self.ended.get(self.node(row).name, ())
            if (traits := self.traits.get(pod.uid)) is not None
        ]

    def pressed_on(self, row: int) -> Sequence[Pressed]:
        """Whom the agent of a node evicted under pressure of late."""
        if self._pressed is None:
            self._pressed = {}
            for pressed in self.pressed:
                self._pressed.setdefault(pressed.pod.node, []).append(pressed)
        return self._pressed.get(self.node(row).name, ())

    def owned(self, uid: str) -> int:
        """How many pods of the cluster an owner has."""
        if self._owned is None:
            self._owned = Counter(
                reference.uid for pod in self._all() for reference in pod.pod_class.references
            )
        return self._owned[uid]

    def _all(self) -> Iterator[Pod]:
        for pods in self.columns.pods:
            yield from pods.values()
        for ended in self.ended.values():
            yield from ended

    def under_way(self, resident: Resident) -> str:
        """What moves a pod already, so that it is asked no more; empty: nothing."""
        if resident.traits.evicting or resident.pod.uid in self.evacuating:
            return "pod is being moved alive"
        return self.held(resident)

    def moving_alive(self) -> list[Pod]:
        """All pods that are moved alive."""
        uids = {uid for uid, traits in self.traits.items() if traits.evicting}
        uids.update(self.evacuating)
        return [
            pod for pods in self.columns.pods for pod in pods.values() if pod.uid in uids
        ] if uids else []  # fmt: skip

    def age(self, resident: Resident) -> float:
        """Seconds since a pod was created."""
        return self.now.wall - resident.traits.created


def is_ready(node: Node) -> bool:
    """Whether the node's agent answers and says that it is ready."""
    return node.ready and not any(taint.key in _NOT_READY for taint in node.taints)


def is_cordoned(node: Node) -> bool:
    """Whether no new pod goes there."""
    return node.unschedulable or terms.CORDONED in node.taints
