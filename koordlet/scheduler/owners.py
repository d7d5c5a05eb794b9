"""Services and controllers: which pods belong together, for the default spread constraints.

Covers: the merged selector of a pod's Services and of the controller that owns it.
Does not cover: anything else about those objects.
"""

from __future__ import annotations

from koordlet.model import selectors
from koordlet.scheduler import terms, wire
from koordlet.scheduler.pods import PodClass
from koordlet.scheduler.wire import Body

#: Controllers whose selector is a LabelSelector.
_BY_SELECTOR = ("ReplicaSet", "StatefulSet")


class Owners:
    """Services, ReplicationControllers, ReplicaSets and StatefulSets of the cluster."""

    def __init__(self) -> None:
        self._services: dict[str, list[dict[str, str]]] = {}
        self._controllers: dict[tuple[str, str, str], tuple[selectors.Requirement, ...]] = {}

    def add(self, body: Body) -> None:
        """One object; ``BadObjectError`` where its selector cannot be read."""
        meta, spec = wire.mapping(body, "metadata"), wire.mapping(body, "spec")
        namespace = wire.text(meta, "namespace") or "default"
        kind, name = wire.text(body, "kind"), wire.text(meta, "name")
        if kind in _BY_SELECTOR:
            found: selectors.Compiled | None = terms.selector(spec, "selector")
            if found is not None:
                self._controllers[namespace, kind, name] = found.labels
            return
        wanted = wire.labels(spec, "selector")
        if kind == "Service":
            if wanted:
                self._services.setdefault(namespace, []).append(wanted)
        else:
            self._controllers[namespace, kind, name] = _exact(wanted)

    def selector(self, sort: PodClass) -> selectors.Compiled | None:
        """Everything that must match, or ``None`` where nothing groups the pod."""
        merged: dict[str, str] = {}
        for wanted in self._services.get(sort.namespace, ()):
            if all(sort.labels.get(key) == value for key, value in wanted.items()):
                merged.update(wanted)
        found = (*_exact(merged), *self._controllers.get((sort.namespace, *sort.owner), ()))
        return selectors.Compiled(found) if found else None


def _exact(wanted: dict[str, str]) -> tuple[selectors.Requirement, ...]:
    return tuple(
        selectors.Requirement(key, selectors.Operator.IN, frozenset((value,)))
        for key, value in wanted.items()
    )
