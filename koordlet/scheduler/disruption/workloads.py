"""Which pods belong to one workload: placed pods by namespace and class, and their controllers.

Covers: signatures, replicas that controllers want. Does not cover: pods that wait for a node.

Rules:
1. A signature is a pod's controller; of a ReplicaSet that a Deployment controls, the Deployment: a
   rollout does not forget.
2. A namespace is indexed when somebody first asks for it: most are never asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

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


#: By class, then by key of the pod.
PodsByClass = Mapping[PodClass, Mapping[str, Pod]]


class _Namespace:
    """The placed pods of one namespace."""

    def __init__(self) -> None:
        self.classes: dict[PodClass, dict[str, Pod]] = {}
        self._class_of: dict[str, PodClass] = {}

    def put(self, pod: Pod) -> None:
        if self._class_of.get(pod.key) is not pod.pod_class:
            self.drop(pod.key)
        self._class_of[pod.key] = pod.pod_class
        self.classes.setdefault(pod.pod_class, {})[pod.key] = pod

    def drop(self, key: str) -> None:
        pod_class = self._class_of.pop(key, None)
        if pod_class is not None:
            del self.classes[pod_class][key]
            if not self.classes[pod_class]:
                del self.classes[pod_class]


class WorkloadIndex:
    """Placed pods and their controllers."""

    def __init__(self, placed: Callable[[], Iterable[Pod]]) -> None:
        """``placed``: all pods that the store shows on a node."""
        self._placed = placed
        self._namespaces: dict[str, _Namespace] = {}
        self._owners: dict[tuple[str, str, str], PodOwner] = {}

    def put_owner(self, owner: PodOwner) -> None:
        """Add or update a controller; what does not count its pods is passed over."""
        if owner.replicas is not None:
            self._owners[owner.namespace, owner.kind, owner.name] = owner

    def drop_owner(self, owner: PodOwner) -> None:
        """Delete a controller."""
        self._owners.pop((owner.namespace, owner.kind, owner.name), None)

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
        known = self._namespaces.get(namespace)
        if known is None:
            known = self._namespaces[namespace] = _Namespace()
            for pod in self._placed():
                if pod.namespace == namespace:
                    known.put(pod)
        return known.classes

    def signature(self, pod_class: PodClass) -> Signature | None:
        """The workload of a class; ``None`` where nothing controls its pods."""
        kind, name = pod_class.owner
        return self.of_controller(pod_class.namespace, kind, name) if kind else None

    def of_controller(self, namespace: str, kind: str, name: str) -> Signature:
        """The workload that a controller stands for."""
        owner = self._owners.get((namespace, kind, name))
        if owner is not None and owner.controller[0]:
            kind, name = owner.controller
        return Signature(namespace, kind, name)

    def members(self, signature: Signature) -> dict[PodClass, Mapping[str, Pod]]:
        """The placed pods of a workload."""
        return {
            pod_class: pods
            for pod_class, pods in self.of(signature.namespace).items()
            if self.signature(pod_class) == signature
        }

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
