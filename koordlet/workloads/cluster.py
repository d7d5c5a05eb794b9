"""Objects of this node from the API server: pods, Node, NodeSLO, ConfigMap, reservations.

Covers: which objects are mirrored, and what is made of each.
Does not cover: listing and watching (``kubeapi.informer``), transport (``kube``), who wins
(``merging``).

Rules:
1. Objects are selected at the server: pods by ``spec.nodeName``, reservations by
   ``status.nodeName``, the others by their name. Where a definition does not make the field of
   reservations selectable, the mirror takes all of them and selects here.
2. A kind that the server does not know, or no object of it, is nothing, not a failure: the peer's
   definitions may not be installed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from koordlet.kubeapi import informer, kinds, objects, selectors
from koordlet.model import nodeslo, pod, reservation, snapshot
from koordlet.model.record import dataclass
from koordlet.workloads import nodes, poddecode, reservations, sloconfig, strategy_holding
from koordlet.workloads import nodeslo as slo

_Changed = Callable[[Any, Any, Any], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterInformers:
    """Informers of one node."""

    pods: informer.Informer[pod.Pod]
    node: informer.Informer[snapshot.NodeInfo]
    slo: informer.Informer[objects.Object]
    configuration: informer.Informer[objects.Object]
    reservations: informer.Informer[reservation.Reservation]

    def named(self) -> Mapping[str, informer.Informer[Any]]:
        """Each under the name of its source."""
        return {
            "cluster pods": self.pods,
            "cluster node": self.node,
            "cluster NodeSLO": self.slo,
            f"cluster {sloconfig.NAME}": self.configuration,
            "cluster reservations": self.reservations,
        }


class Strategies:
    """The strategies of one node; what cannot be read any more holds as it was."""

    def __init__(self, cluster: ClusterInformers) -> None:
        self._cluster = cluster
        self._made_of: tuple[object, ...] = ()
        self._last: nodeslo.NodeSlo | None = None
        #: What holds where newer words cannot be read; ``None``: nothing was ever said, or all of
        #: it was taken back.
        self.words: Mapping[str, object] | None = None
        #: The same for what the Node says for itself.
        self.words_of_node: Mapping[str, object] = {}
        self._node_seen: snapshot.NodeInfo | None = None
        self._node: snapshot.NodeInfo | None = None

    def node(self) -> snapshot.NodeInfo | None:
        """The Node with its own strategy in force; ``None`` if there is none."""
        seen = only(self._cluster.node)
        if seen is None:
            self._node = None
            if _answered(self._cluster.node):
                self.words_of_node = {}
        elif seen is not self._node_seen:
            self._node, self.words_of_node = strategy_holding.of_node(seen, self.words_of_node)
        self._node_seen = seen
        return self._node

    def newest(self) -> nodeslo.NodeSlo | None:
        """NodeSLO, or else the ConfigMap's settings for this node; ``None`` if there is neither."""
        slo_body, config = only(self._cluster.slo), only(self._cluster.configuration)
        node = only(self._cluster.node)
        made_of = (slo_body, config, None if slo_body is not None or node is None else node.labels)
        if made_of != self._made_of:
            self._last = self._decoded(slo_body, config, node)
            self._made_of = made_of
        self._hold()
        return self._last

    def _hold(self) -> None:
        """Take the newest words, unless they are what half of the sources say after a start.

        Until a kind was listed (or is known not to be served) its absence says nothing.
        """
        slo, config = self._cluster.slo, self._cluster.configuration
        if self._last is None:
            if _answered(slo) and _answered(config):
                self.words = None
        elif only(slo) is not None or _heard(slo, self._cluster.node):
            self.words = self._last.spec

    def _decoded(
        self,
        slo_body: objects.Object | None,
        config: objects.Object | None,
        node: snapshot.NodeInfo | None,
    ) -> nodeslo.NodeSlo | None:
        if slo_body is not None:
            return slo.decode(slo_body, before=self.words)
        if config is None:
            return None
        labels = node.labels if node is not None else {}
        return sloconfig.decode(config.get("data"), labels, before=self.words)


def _answered(mirror: informer.Informer[Any]) -> bool:
    return mirror.health.lists > 0 or mirror.health.state is informer.State.NOT_SERVED


def _heard(*several: informer.Informer[Any]) -> bool:
    """Whether each was asked once, and be it refused: an agent may not be let see its Node."""
    return all(mirror.health.state is not informer.State.STARTING for mirror in several)


def mirrors(store: objects.Objects, node: str, changed: _Changed) -> ClusterInformers:
    """Informers that an agent on this node needs."""

    def mirror(
        kind: kinds.Kind,
        convert: Callable[[objects.Object], informer.Value],
        field: str,
        value: str = node,
        namespace: str = "",
    ) -> informer.Informer[informer.Value]:
        wanted = selectors.Selector(fields=f"{field}={value}")
        return informer.Informer(
            store, kind, convert, namespace=namespace, selector=wanted, changed=changed
        )

    name, config = "metadata.name", (sloconfig.NAME, sloconfig.NAMESPACE)
    return ClusterInformers(
        pods=mirror(kinds.PODS, _pod, "spec.nodeName"),
        node=mirror(kinds.NODES, nodes.decode, name),
        slo=mirror(kinds.NODE_SLOS, lambda body: body, name),
        configuration=mirror(kinds.CONFIG_MAPS, lambda body: body, name, *config),
        reservations=mirror(kinds.RESERVATIONS, reservations.decode, reservations.NODE_FIELD),
    )


def only(mirror: informer.Informer[informer.Value]) -> informer.Value | None:
    """The object of a mirror of one name."""
    return next(iter(mirror.snapshot.values()), None)


def _pod(body: objects.Object) -> pod.Pod:
    namespace, name = objects.key(body)
    return poddecode.from_object(body, poddecode.CLUSTER, f"Pod {namespace}/{name}")
