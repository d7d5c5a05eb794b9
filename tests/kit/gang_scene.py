"""A core and its cluster, step by step, as the store shows them."""

from __future__ import annotations

import copy
from typing import Any

from koordlet.kubeapi import elastic_quotas, network_topology, pod_groups
from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind, Hold, Refusal
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.pods import Pod

Body = dict[str, Any]


class Scene:
    """A core and its cluster, as the store shows it."""

    def __init__(self, *bodies: Body, arguments: Body | None = None) -> None:
        """``arguments``: those of ``Coscheduling``."""
        served = profile.default("default-scheduler", {"Coscheduling": arguments or {}})
        self.core = Core({"default-scheduler": served})
        self.now = 0.0
        self.stored: dict[str, Pod] = {}
        self.messages: dict[str, str] = {}
        self._bodies: dict[str, Body] = {}
        self._position = 0
        self.put(*bodies)

    def put(self, *bodies: Body) -> None:
        """Objects come, or change."""
        for body in bodies:
            if body["kind"] == "Node":
                self.core.node(None, nodes.decode(body), self.now)
            elif body["kind"] == "PodGroup":
                self.core.gangs.put_pod_group(pod_groups.pod_group(body))
            elif body["kind"] == "ElasticQuota":
                self.core.quotas.put_quota(elastic_quotas.elastic_quota(body))
            elif body["kind"] == "ElasticQuotaProfile":
                self.core.quotas.put_profile(elastic_quotas.elastic_quota_profile(body))
            elif body["kind"] == "ClusterNetworkTopology":
                self.core.gangs.put_network(network_topology.network_topology(body))
            else:
                self._position += 1
                pod = self.core.decoder.decode(body, self._position)
                old, self.stored[pod.key] = self.stored.get(pod.key), pod
                self._bodies[pod.key] = body
                self.core.pod(old, pod, self.now)

    def change_node(self, body: Body) -> None:
        """A node has another value."""
        columns = self.core.pod_cache.columns
        old = columns.nodes[columns.rows[body["metadata"]["name"]]]
        self.core.node(old, nodes.decode(body), self.now)

    def drop(self, name: str) -> None:
        """A pod is deleted."""
        self.core.pod(self.stored.pop(f"d/{name}"), None, self.now)

    def decided(self, seconds: float = 400.0) -> dict[str, str]:
        """Everything that is decided now, by pod: its node, empty where there is none."""
        self.now += seconds
        places: dict[str, str] = {}
        self.messages = {}
        steps = 0
        while (outcome := self.core.step(self.now)) is not None or self.core.gangs.paused:
            steps += 1
            assert steps < 10_000, f"it goes on and on: {outcome}"
            if outcome is None:
                continue
            if isinstance(outcome, Bind | Hold):
                places[outcome.pod.name] = outcome.node
            else:
                assert isinstance(outcome, Refusal)
                places[outcome.pod.name] = ""
                self.messages[outcome.pod.name] = outcome.message
        return places

    def confirm(self, *names: str) -> None:
        """The store has taken the bindings of these pods; of all that are assumed without names."""
        assumed = self.core.pod_cache.assumed
        for key in [f"d/{name}" for name in names] or list(assumed):
            body = copy.deepcopy(self._bodies[key])
            body["spec"]["nodeName"] = assumed[key].node
            self.core.bound(assumed[key], self.now)
            self.put(body)

    def requested(self) -> int:
        """Thousandths of CPUs that are taken on all nodes."""
        columns = self.core.pod_cache.columns
        return int(columns.requested[0, : columns.size].sum())
