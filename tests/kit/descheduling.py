"""Clusters for tests of the descheduler: short objects, a configuration, the pods that go.

Covers: nodes, pods and owners as JSON, one round over them, how often a landing was searched. Does
not cover: assertions.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from koordlet.model import moment
from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.vectors import Bools, Rows
from koordlet.scheduler.descheduling import configuration, dump
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.disruption.answers import Refusal
from koordlet.scheduler.framework import profile
from koordlet.scheduler.objects.pods import PodClass

Body = dict[str, Any]
#: The moment of every test.
NOW = 1_800_000_000.0
GIB = 1 << 30


def ago(seconds: float) -> str:
    """A time so long before ``NOW``."""
    return moment.spell(NOW - seconds)


def node(name: str, cpu: str = "2", memory: str = "3Gi", pods: int = 10, **more: Any) -> Body:
    """A ready node; ``labels``, ``taints``, ``unschedulable``, ``ready``, ``annotations``."""
    amounts = {"cpu": cpu, "memory": memory, "pods": str(pods), **more.get("room", {})}
    labels = {"kubernetes.io/hostname": name, **more.get("labels", {})}
    spec = {key: more[key] for key in ("taints", "unschedulable") if key in more}
    ready = {"type": "Ready", "status": "True" if more.get("ready", True) else "False"}
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "annotations": more.get("annotations", {})},
        "spec": spec,
        "status": {"allocatable": amounts, "conditions": [ready]},
    }


def pod(name: str, on: str, cpu: str = "100m", memory: str = "0", **more: Any) -> Body:
    """A running pod of ReplicaSet ``rs``; ``owner`` is ``KIND/NAME`` or empty for none.

    ``age``: seconds. ``meta``, ``spec`` and ``status`` are merged in.
    """
    owner = more.get("owner", "ReplicaSet/rs")
    kind, _, owned = owner.partition("/")
    references = [
        {"apiVersion": "v1", "kind": kind, "name": owned, "uid": f"u-{owned}", "controller": True}
    ]
    asked = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value != "0"}
    meta = {
        "name": name,
        "namespace": more.get("namespace", "default"),
        "uid": f"uid-{more.get('namespace', 'default')}-{name}",
        "creationTimestamp": ago(more.get("age", 7200)),
        "labels": more.get("labels", {}),
        "annotations": more.get("annotations", {}),
        **({"ownerReferences": references} if owner else {}),
        **more.get("meta", {}),
    }
    spec = {
        "nodeName": on,
        "containers": [
            {"name": "c", "image": more.get("image", "i"), "resources": {"requests": asked}}
        ],
        **({"priority": more["priority"]} if "priority" in more else {}),
        **more.get("spec", {}),
    }
    status = {
        "phase": "Running",
        "startTime": meta["creationTimestamp"],
        "conditions": [{"type": "Ready", "status": "True"}],
        **more.get("status", {}),
    }
    return {"kind": "Pod", "metadata": meta, "spec": spec, "status": status}


def containers(restarts: int = 0, **state: Any) -> list[Body]:
    """The status of one container."""
    return [{"name": "c", "restartCount": restarts, "state": state}]


def policy(
    strategies: Mapping[str, Mapping[str, Any] | None] = {},
    evictor: Mapping[str, Any] | None = None,
    **top: Any,
) -> Body:
    """Upstream's configuration with these strategies and their arguments."""
    from koordlet.scheduler.descheduling import registry

    plugins = {
        point: {"enabled": [name for name in strategies if name in known]}
        for point, known in registry.POINTS.items()
    }
    arguments = [{"name": name, "args": dict(args or {})} for name, args in strategies.items()]
    arguments += [{"name": "DefaultEvictor", "args": dict(evictor or {})}]
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [{"name": "p", "pluginConfig": arguments, "plugins": plugins}],
        **top,
    }


class Searches(framework.Plugin):
    """A plugin that refuses no node, and counts how often the place of a pod is searched."""

    name = "Searches"

    def __init__(self) -> None:
        super().__init__({})
        self.number = 0

    def filter(self, _class: PodClass, _columns: Columns) -> framework.Filter:
        """One that is asked each time, whatever is kept of the others."""
        searches = self

        class Counting(framework.Filter):
            kind = framework.Kind.CONTEXT

            def allowed(self, rows: Rows) -> Bools:
                searches.number += 1
                return np.ones(rows.size, np.bool_)

        return Counting()

    def served(self) -> dict[str, profile.Profile]:
        """The default profile with this plugin beside the others, by the scheduler's name."""
        usual = profile.default()
        more = dataclasses.replace(
            usual, plugins=(*usual.plugins, self), filters=(*usual.filters, self)
        )
        return {usual.name: more}


def everybody(_proposal: rounds.EvictionProposal) -> None:
    """Whoever is proposed goes."""


def play(
    bodies: Sequence[Mapping[str, Any]],
    body: Mapping[str, Any],
    answer: Callable[[rounds.EvictionProposal], Refusal | None] = everybody,
) -> rounds.RoundResult:
    """One round of a configuration over a cluster."""
    settings = configuration.read(body, "test")
    state, _ = dump.state(bodies, NOW)
    return rounds.DeschedulingRound(settings.profiles, settings.limits, state).play(answer)


def evicted(
    bodies: Sequence[Mapping[str, Any]],
    body: Mapping[str, Any],
    answer: Callable[[rounds.EvictionProposal], Refusal | None] = everybody,
) -> list[str]:
    """The names of the pods that go, in their order; a strategy that fails fails the test."""
    result = play(bodies, body, answer)
    assert result.failures == []
    return [proposal.resident.pod.name for proposal in result.evicted]
