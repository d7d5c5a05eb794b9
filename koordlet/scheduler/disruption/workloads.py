"""Which pods belong to one workload: placed pods by namespace and class, and their controllers.

Covers: signatures, replicas that controllers want, how many of them may go at once.
Does not cover: pods that wait for a node.

Rules:
1. A signature is a pod's controller; of a ReplicaSet that a Deployment controls, the Deployment: a
   rollout does not forget.
2. A namespace is indexed when somebody first asks for it: most are never asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from koordlet.kubeapi.disruption_rates import CountOrPercent
from koordlet.model.record import dataclass
from koordlet.scheduler.objects.owners import PodOwner
from koordlet.scheduler.objects.pods import Pod, PodClass


@dataclass(frozen=True, slots=True)
class Signature:
    """A workload: the controller of its pods."""

    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"


#: Controllers that are watched.
_COUNTING = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet"})
#: Replicas from which the formula of a workload's bounds changes.
_FEW, _MANY = 4, 10
#: By class, then by key of the pod.
PodsByClass = Mapping[PodClass, Mapping[str, Pod]]


class _Namespace:
    """The placed pods of one namespace."""

    def __init__(self) -> None:
        self.classes: dict[PodClass, dict[str, Pod]] = {}
        self._class_of: dict[str, PodClass] = {}
        #: The classes of each workload; ``None``: to be found anew.
        self._workloads: dict[Signature, dict[PodClass, Mapping[str, Pod]]] | None = None

    def forget(self) -> None:
        """Controllers or classes are others than before."""
        self._workloads = None

    def workloads(
        self, signature: Callable[[PodClass], Signature | None]
    ) -> dict[Signature, dict[PodClass, Mapping[str, Pod]]]:
        """The placed pods of each workload."""
        if self._workloads is None:
            self._workloads = {}
            for pod_class, pods in self.classes.items():
                workload = signature(pod_class)
                if workload is not None:
                    self._workloads.setdefault(workload, {})[pod_class] = pods
        return self._workloads

    def put(self, pod: Pod) -> None:
        if self._class_of.get(pod.key) is not pod.pod_class:
            self.drop(pod.key)
        self._class_of[pod.key] = pod.pod_class
        if pod.pod_class not in self.classes:
            self.classes[pod.pod_class] = {}
            self.forget()
        self.classes[pod.pod_class][pod.key] = pod

    def drop(self, key: str) -> None:
        pod_class = self._class_of.pop(key, None)
        if pod_class is not None:
            del self.classes[pod_class][key]
            if not self.classes[pod_class]:
                del self.classes[pod_class]
                self.forget()


class WorkloadIndex:
    """Placed pods and their controllers."""

    def __init__(self, placed: Callable[[], Iterable[Pod]]) -> None:
        """``placed``: all pods that the store shows on a node."""
        self._placed = placed
        self._namespaces: dict[str, _Namespace] = {}
        self._owners: dict[tuple[str, str, str], PodOwner] = {}
        #: How many of these a controller of theirs controls.
        self._controlled: Counter[tuple[str, str, str]] = Counter()

    def put_owner(self, owner: PodOwner) -> None:
        """Add or update a controller; what does not count its pods is passed over."""
        if owner.replicas is not None:
            key = owner.namespace, owner.kind, owner.name
            old, self._owners[key] = self._owners.get(key), owner
            if old is None or old.controller != owner.controller:
                self._count(old, -1)
                self._count(owner, 1)
                self._forget(owner.namespace)

    def drop_owner(self, owner: PodOwner) -> None:
        """Delete a controller."""
        self._count(self._owners.pop((owner.namespace, owner.kind, owner.name), None), -1)
        self._forget(owner.namespace)

    def _count(self, owner: PodOwner | None, change: int) -> None:
        if owner is not None and owner.controller[0]:
            key = owner.namespace, *owner.controller
            self._controlled[key] += change
            if not self._controlled[key]:
                del self._controlled[key]

    def _forget(self, namespace: str) -> None:
        known = self._namespaces.get(namespace)
        if known is not None:
            known.forget()

    def put(self, pod: Pod) -> None:
        """Add or update a pod that has a node."""
        namespace = self._namespaces.get(pod.namespace)
        if namespace is not None:
            namespace.put(pod)

    def drop(self, pod: Pod) -> None:
        """Remove a pod."""
        namespace = self._namespaces.get(pod.namespace)
        if namespace is not None:
            namespace.drop(pod.key)

    def of(self, namespace: str) -> PodsByClass:
        """The placed pods of a namespace."""
        return self._indexed(namespace).classes

    def _indexed(self, namespace: str) -> _Namespace:
        known = self._namespaces.get(namespace)
        if known is None:
            known = self._namespaces[namespace] = _Namespace()
            for pod in self._placed():
                if pod.namespace == namespace:
                    known.put(pod)
        return known

    def signature(self, pod_class: PodClass) -> Signature | None:
        """The workload of a class, or that it holds room for; ``None``: nothing controls it."""
        reserving = pod_class.reserving
        space, kind, name = ("", *pod_class.owner) if reserving is None else reserving.controller
        return self.of_controller(space or pod_class.namespace, kind, name) if kind else None

    def of_controller(self, namespace: str, kind: str, name: str) -> Signature:
        """The workload that a controller stands for."""
        owner = self._owners.get((namespace, kind, name))
        if owner is not None and owner.controller[0]:
            kind, name = owner.controller
        return Signature(namespace, kind, name)

    def stands(self, signature: Signature) -> bool:
        """Whether a workload is still there, as far as its kind's objects are watched."""
        if signature.kind not in {*_COUNTING, "Deployment"}:
            return True
        key = signature.namespace, signature.kind, signature.name
        return key in self._owners or key in self._controlled

    def members(self, signature: Signature) -> dict[PodClass, Mapping[str, Pod]]:
        """The placed pods of a workload."""
        known = self._indexed(signature.namespace).workloads(self.signature)
        return known.get(signature, {})

    def expected(self, pods_by_class: PodsByClass) -> int:
        """How many pods there should be: what controllers want, and others as they are."""
        total, wanted = 0, {}
        for pod_class, pods in pods_by_class.items():
            owner = self._owners.get((pod_class.namespace, *pod_class.owner))
            if owner is None or owner.replicas is None:
                total += len(pods)
            else:
                wanted[owner.kind, owner.name] = owner.replicas
        return total + sum(wanted.values())


def each(pods_by_class: PodsByClass) -> Iterator[Pod]:
    """All of these pods."""
    for pods in pods_by_class.values():
        yield from pods.values()


def of_replicas(configured: CountOrPercent | None, replicas: int) -> int:
    """How many pods of a workload may go: as configured, or by the peer's formula."""
    if configured is None:
        if replicas > _MANY:
            return max(1, replicas // 10)
        return 2 if replicas >= _FEW else 1
    return min(max(1, configured.floor(replicas)), max(1, replicas))
