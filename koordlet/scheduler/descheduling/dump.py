"""The state of a cluster of which there are objects in a file.

Covers: what a round needs, of the objects as kubectl prints them. Does not cover: a cluster that is
watched (``loop.cluster_watch``).
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.descheduling import traits
from koordlet.scheduler.descheduling.state import ClusterState
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.disruption.workloads import WorkloadIndex
from koordlet.scheduler.framework import profile
from koordlet.scheduler.gangs.book import GangBook
from koordlet.scheduler.objects import owners, wire
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.plugins.dynamic_resources import DynamicResources

_ENDED = ("Succeeded", "Failed")


def state(
    bodies: Iterable[Mapping[str, Any]],
    now: float,
    served: Mapping[str, profile.Profile] | None = None,
) -> tuple[ClusterState, tuple[str, ...]]:
    """The cluster, and what of the input is ignored; ``served``: profiles by name of scheduler."""
    listed = list(bodies)
    cluster = inventory.load(listed, profile.deciding((served or {}).values()))
    profiles: dict[str, profile.Profile] = {}

    def equipped(name: str) -> profile.Profile:
        """The profile of a scheduler; the default plugins for one that nobody knows."""
        known = profiles.get(name)
        if known is None:
            known = profiles[name] = (served or {}).get(name) or profile.default(name)
            cluster.equip(known, now)
            for plugin in profile.plugins({name: known}, DynamicResources):
                plugin.attach(cluster.allocations, None)
        return known

    pods = {pod.key: pod for pods in cluster.columns.pods for pod in pods.values()}
    workloads = WorkloadIndex(pods.values)
    for body in cluster.owners:
        _own(workloads, body)
    several = [body for body in listed if body.get("kind") == "Pod"]
    ended = _ended(several, cluster)
    uids = {pod.key: pod.uid for pod in itertools.chain(pods.values(), *ended.values())}
    return (
        ClusterState(
            columns=cluster.columns,
            profile=equipped,
            workloads=workloads,
            now=Clock(wall=now, steady=now),
            traits=_traits(several, uids),
            ended=ended,
            budgets=cluster.budgets,
            usages=cluster.usages,
            priorities={name: each.value for name, each in cluster.decoder.priorities.items()},
            claim_classes=dict(_claim_classes(listed)),
            gangs=_gangs(cluster, pods.values()),
        ),
        tuple(cluster.warnings),
    )


def _traits(bodies: Iterable[Body], uids: Mapping[str, str]) -> dict[str, traits.PodTraits]:
    """What only a descheduler asks of pods, by UID; of the pods that could be read."""
    known = {}
    for body in bodies:
        uid = uids.get(_key(body))
        if uid is not None:
            with contextlib.suppress(BadObjectError):
                known[uid] = traits.decode(body)
    return known


def _claim_classes(bodies: Iterable[Body]) -> Iterator[tuple[str, str]]:
    for body in bodies:
        if body.get("kind") == "PersistentVolumeClaim":
            with contextlib.suppress(BadObjectError):  # the plugins that read it warn
                yield claim_class(body)


def claim_class(body: Body) -> tuple[str, str]:
    """A claim by name, and its storage class; empty where it has none."""
    meta, spec = wire.mapping(body, "metadata"), wire.mapping(body, "spec")
    where = wire.text(meta, "namespace") or "default"
    return f"{where}/{wire.text(meta, 'name')}", wire.text(spec, "storageClassName")


def _gangs(cluster: inventory.Cluster, placed: Iterable[Pod]) -> GangBook:
    book = GangBook()
    for pod_group in cluster.pod_groups:
        book.put_pod_group(pod_group)
    for pod in (*placed, *cluster.pending):
        book.put(pod)
    return book


def _own(workloads: WorkloadIndex, body: Body) -> None:
    try:
        workloads.put_owner(owners.decode(body))
    except BadObjectError:
        return  # the plugins that read it warn


def _key(body: Mapping[str, Any]) -> str:
    meta = body.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    return f"{meta.get('namespace') or 'default'}/{meta.get('name')}"


def _ended(bodies: Iterable[Body], cluster: inventory.Cluster) -> dict[str, list[Pod]]:
    """The pods that have ended and are still there, by node."""
    ended: dict[str, list[Pod]] = {}
    for place, body in enumerate(bodies):
        try:
            if wire.text(wire.mapping(body, "status"), "phase") not in _ENDED:
                continue
            pod = cluster.decoder.decode(body, place)
        except BadObjectError as error:
            cluster.warnings.append(f"{inventory.name_of(body)} is ignored: {error}")
            continue
        if pod.node:
            ended.setdefault(pod.node, []).append(pod)
    return ended
