"""ReservedResources: gives back to a node what it reserves, where pods take it.

Covers: nodes whose pods request what is reserved (``node.koordinator.sh/reservation``), pods bound
to reserved CPUs. Does not cover: the reservation itself (``kubeapi.node_annotations``).

Rules:
1. It only shows what it would do unless ``dryRun: false``.
2. First go the pods that hold a reserved CPU by its number, each of them.
3. Then, least important first, pods that request a resource of which more is requested than the
   reservation leaves. Batch and free pods request neither and are not counted.
4. With ``applyPolicy: ReservedCPUsOnly`` the amounts are the kubelet's affair: rule 2 alone.
"""

from __future__ import annotations

from koordlet.kubeapi import node_annotations
from koordlet.model import cpuset, resources
from koordlet.scheduler.descheduling import order
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.limits import EvictionAnswer
from koordlet.scheduler.descheduling.strategies import candidates
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod

#: Bands whose pods ask for nothing of what is reserved.
_UNCOUNTED = ("koord-batch", "koord-free")


class ReservedResources:
    """The strategy."""

    name = "ReservedResources"

    def __init__(self, fields: Fields) -> None:
        self._settings = candidates.read(fields, dry_run=True)
        fields.done()

    def intents(self, scene: rounds.Scene) -> rounds.Intents:
        """Node by node."""
        if self._settings.paused:
            scene.note("it is paused")
            return
        for row in self._settings.rows(scene):
            node = scene.state.node(row)
            text = node.annotations.get(node_annotations.RESERVATION)
            if text is None:
                continue
            reserved = node_annotations.reservation(text)
            amounts = {} if reserved.cpus_only else dict(reserved.amounts)
            if reserved.cpus and not reserved.cpus_only:
                amounts[resources.CPU] = 1000 * len(reserved.cpus)
            yield from self._node(scene, row, node, amounts)

    def _node(
        self, scene: rounds.Scene, row: int, node: Node, reserved: resources.Amounts
    ) -> rounds.Intents:
        bound = [
            pod for pod in scene.state.columns.pods[row].values() if _held(pod, node.reserved_cpus)
        ]
        scene.relieve(bool(bound or _taken(scene, row, reserved)))
        several = order.least_first(scene.evictable(row, self._settings.wants), scene.judge)
        several.sort(key=lambda each: not _held(each.pod, node.reserved_cpus))
        for resident in several:
            reason = self._reason(scene, resident, node, reserved)
            if not reason:
                continue
            text = f"pods take {reason} of the resources that are reserved on the node"
            answer = yield rounds.Intent(resident, text, shadow=self._settings.dry_run)
            if answer is EvictionAnswer.NODE_LIMIT:
                return

    def _reason(
        self, scene: rounds.Scene, resident: Resident, node: Node, reserved: resources.Amounts
    ) -> str:
        """What pods take that this one would give back; empty where it would give back nothing."""
        if held := _held(resident.pod, node.reserved_cpus):
            return f"CPUs {held}"
        asked = resident.pod.pod_class.requests.real if _counts(resident.pod) else {}
        taken = resources.canonical(_taken(scene, resident.row, reserved))
        return ", ".join(f"{name} {amount}" for name, amount in taken.items() if asked.get(name))


def _held(pod: Pod, reserved: cpuset.CPUSet) -> cpuset.CPUSet:
    """The reserved CPUs that a pod holds by their numbers."""
    return (pod.cpus or cpuset.CPUSet()) & reserved


def _counts(pod: Pod) -> bool:
    return pod.pod_class.band not in _UNCOUNTED


def _taken(scene: rounds.Scene, row: int, reserved: resources.Amounts) -> dict[str, int]:
    """By resource, how much of what is reserved pods request."""
    columns = scene.state.columns
    uncounted = [pod for pod in columns.pods[row].values() if not _counts(pod)]
    taken = {}
    for name, amount in reserved.items():
        line = columns.resource(name)
        requested = int(columns.requested[line, row])
        requested -= sum(pod.pod_class.requests.real.get(name, 0) for pod in uncounted)
        if (beyond := requested - int(columns.allocatable[line, row])) > 0:
            taken[name] = min(beyond, amount)
    return taken
