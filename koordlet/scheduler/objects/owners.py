"""Services and controllers: which pods belong together, for the default spread constraints.

Covers: the merged selector of a pod's Services and of the controller that owns it.
Does not cover: anything else about those objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from koordlet.kubeapi import selectors
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import terms, wire
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.objects.wire import Body

#: Controllers whose selector is a LabelSelector.
_BY_SELECTOR = ("ReplicaSet", "StatefulSet")


@dataclass(frozen=True, slots=True)
class PodOwner:
    """What one of those objects says about pods."""

    kind: str
    namespace: str
    name: str
    #: Labels that a Service or ReplicationController wants.
    wanted: Mapping[str, str]
    #: The selector of the others.
    selector: tuple[selectors.Requirement, ...] | None = None
    #: Pods that it wants; ``None``: it does not say. Grouping does not depend on it.
    replicas: int | None = field(default=None, compare=False)
    #: Kind and name of what controls it; empty where nothing does.
    controller: tuple[str, str] = field(default=("", ""), compare=False)

    def concerns(self, pod_class: PodClass) -> bool:
        """Whether a class may be grouped by it."""
        return pod_class.namespace == self.namespace


def decode(body: Body) -> PodOwner:
    """One object; ``BadObjectError`` where its selector cannot be read."""
    meta, spec = wire.mapping(body, "metadata"), wire.mapping(body, "spec")
    kind = wire.text(body, "kind")
    where = kind, wire.text(meta, "namespace") or "default", wire.text(meta, "name")
    if kind == "Service":
        return PodOwner(*where, wire.labels(spec, "selector"))
    own = wire.integer(spec, "replicas", 1), _controller(meta)
    if kind in _BY_SELECTOR:
        selector: selectors.Compiled | None = terms.selector(spec, "selector")
        return PodOwner(*where, {}, None if selector is None else selector.labels, *own)
    wanted = wire.labels(spec, "selector")
    return PodOwner(*where, wanted, _exact(wanted), *own)


def _controller(meta: Body) -> tuple[str, str]:
    references = wire.bodies(meta, "ownerReferences")
    several = (reference for reference in references if reference.get("controller") is True)
    return next(
        ((str(reference.get("kind")), str(reference.get("name"))) for reference in several),
        ("", ""),
    )


class PodOwners:
    """Services, ReplicationControllers, ReplicaSets and StatefulSets of the cluster."""

    def __init__(self) -> None:
        self._services: dict[str, dict[str, PodOwner]] = {}
        self._controllers: dict[tuple[str, str, str], tuple[selectors.Requirement, ...]] = {}

    def add(self, body: Body) -> None:
        """One object; ``BadObjectError`` where its selector cannot be read."""
        self.put(decode(body))

    def put(self, owner: PodOwner) -> None:
        """An object comes, or is another than before."""
        self.drop(owner)
        if owner.kind == "Service":
            if owner.wanted:
                self._services.setdefault(owner.namespace, {})[owner.name] = owner
        elif owner.selector is not None:
            self._controllers[owner.namespace, owner.kind, owner.name] = owner.selector

    def drop(self, owner: PodOwner) -> None:
        """It goes."""
        if owner.kind == "Service":
            self._services.get(owner.namespace, {}).pop(owner.name, None)
        else:
            self._controllers.pop((owner.namespace, owner.kind, owner.name), None)

    def selector(self, pod_class: PodClass) -> selectors.Compiled | None:
        """Everything that must match, or ``None`` where nothing groups the pod."""
        merged: dict[str, str] = {}
        for service in self._services.get(pod_class.namespace, {}).values():
            if all(pod_class.labels.get(key) == value for key, value in service.wanted.items()):
                merged.update(service.wanted)
        requirements = (
            *_exact(merged),
            *self._controllers.get((pod_class.namespace, *pod_class.owner), ()),
        )
        return selectors.Compiled(requirements) if requirements else None


def _exact(wanted: Mapping[str, str]) -> tuple[selectors.Requirement, ...]:
    return tuple(
        selectors.Requirement(key, selectors.Operator.IN, frozenset((value,)))
        for key, value in wanted.items()
    )
