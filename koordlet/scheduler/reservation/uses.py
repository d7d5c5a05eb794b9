"""What reservations are good for: moving a pod, preempting for one, scaling up.

Covers: the reservations of each use, and the order of writes that keeps its promise.
Does not cover: choosing who moves, who goes, or how many come (the caller).

Rules:
1. Move: reserve first, wait until it is available, then evict, as the disruption budget allows. A
   reservation that finds no place leaves the pod where it is; so does an eviction that is refused,
   and then the reservation is deleted.
2. Preempt: the reservation is bound before anybody goes, waits, and holds what each victim
   releases, for the preemptor alone. It is written first, then told to the victims, then they are
   deleted.
3. Scale up: one reservation for each pod to come, for whoever the workload's labels mean.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model import spelling
from koordlet.scheduler.objects import requests, wire
from koordlet.scheduler.objects.wire import Body
from koordlet.scheduler.reservation import keys

Made = dict[str, Any]

#: Of a pod's specification, what decides where it may go.
_DECIDING = (
    "containers", "initContainers", "nodeSelector", "affinity", "tolerations", "priority",
    "priorityClassName", "topologySpreadConstraints", "schedulerName", "overhead", "hostNetwork",
)  # fmt: skip


def for_move(pod: Body, *, ttl: str = "5m") -> Made:
    """Room for the successor of a pod, on another node; its controller's pods may use it."""
    meta, spec = wire.mapping(pod, "metadata"), wire.mapping(pod, "spec")
    inner = _inner(spec)
    if spec.get("nodeName"):
        inner["affinity"] = _elsewhere(inner.get("affinity") or {}, str(spec["nodeName"]))
    namespace, name = wire.text(meta, "namespace") or "default", wire.text(meta, "name")
    controllers = [one for one in wire.bodies(meta, "ownerReferences") if one.get("controller")]
    owner: Made = {"object": {"namespace": namespace, "name": name}}
    if controllers:
        owner = {"controller": {**controllers[0], "namespace": namespace}}
    return _made(f"move-{namespace}-{name}", meta, inner, [owner], ttl)


def for_preemptor(pod: Body, node: str, *, ttl: str = "5m") -> Made:
    """Room on a node for one pod: what the victims leave, and what is free beside it."""
    meta, spec = wire.mapping(pod, "metadata"), wire.mapping(pod, "spec")
    namespace, name = wire.text(meta, "namespace") or "default", wire.text(meta, "name")
    inner = {**_inner(spec), "nodeName": node}
    owner = {"object": {"namespace": namespace, "name": name, "uid": wire.text(meta, "uid")}}
    return _made(f"preempt-{namespace}-{name}", meta, inner, [owner], ttl)


def for_scale_up(template: Body, name: str, count: int, *, ttl: str = "1h") -> list[Made]:
    """Room for pods of a template that are yet to come."""
    meta, spec = wire.mapping(template, "metadata"), wire.mapping(template, "spec")
    owner = {"labelSelector": {"matchLabels": wire.labels(meta)}}
    return [
        _made(f"scale-{name}-{number}", meta, _inner(spec), [owner], ttl) for number in range(count)
    ]


def waiting(pod: Body, node: str, victims: Sequence[Body]) -> tuple[Made, Made]:
    """What a preemptor's reservation remembers and its status, before its victims go."""
    held = requests.of_pod(wire.mapping(pod, "spec"), {}).real
    total: dict[str, int] = {}
    for one in victims:
        for name, amount in requests.of_pod(wire.mapping(one, "spec"), {}).real.items():
            total[name] = total.get(name, 0) + amount
    amounts = {name: min(total.get(name, 0), amount) for name, amount in held.items()}
    uids = sorted(objects.text(one, "uid") for one in victims)
    told = {"pods": uids, "resources": spelling.resources(total)}
    note = {keys.ADOPTED: json.dumps(told, separators=(",", ":"))}
    status = {
        "phase": "Waiting",
        "nodeName": node,
        "allocatable": spelling.resources(held),
        "allocated": spelling.resources(amounts),
    }
    return note, status


class Uses:
    """Both of them over one store."""

    def __init__(self, store: objects.Objects, *, patience: float = 60.0) -> None:
        self._store = store
        self._patience = patience

    async def move(self, pod: objects.Ref) -> str:
        """Move a pod; the node where its successor has room. ``ObjectsError``: it stays."""
        body = await self._store.get(pod)
        made = await self._store.create(kinds.RESERVATIONS, for_move(body))
        ref = objects.Ref(kinds.RESERVATIONS, objects.text(made, "name"))
        try:
            node = await self._available(ref, objects.revision(made))
            await self._store.evict(pod, uid=objects.text(body, "uid"))
        except refusals.ObjectsError:
            await self._store.delete(ref, uid=objects.text(made, "uid"))
            raise
        return node

    async def preempt(self, pod: objects.Ref, node: str, victims: Iterable[objects.Ref]) -> str:
        """Let victims go for a pod, and keep their room for it; the reservation's name."""
        body = await self._store.get(pod)
        going = [await self._store.get(one) for one in victims]
        note, status = waiting(body, node, going)
        wanted = for_preemptor(body, node)
        wanted["metadata"]["annotations"] = note
        made = await self._store.create(kinds.RESERVATIONS, wanted)
        ref = objects.Ref(kinds.RESERVATIONS, objects.text(made, "name"))
        # Against the revision at birth: a scheduler may not have bound it meanwhile.
        patch = objects.Merge({"status": status}, objects.revision(made))
        await self._store.patch(ref, patch, subresource="status")
        told = {"name": ref.name, "uid": objects.text(made, "uid")}
        mark = {keys.ALLOCATED: json.dumps(told, separators=(",", ":"))}
        for one in going:
            namespace, name = objects.key(one)
            where = objects.Ref(kinds.PODS, name, namespace)
            await self._store.patch(where, objects.Merge({"metadata": {"annotations": mark}}))
        for one in going:
            namespace, name = objects.key(one)
            uid = objects.text(one, "uid")
            await self._store.delete(objects.Ref(kinds.PODS, name, namespace), uid=uid)
        return ref.name

    async def _available(self, ref: objects.Ref, since: str) -> str:
        """The node of a reservation, once it has one."""
        watch = self._store.watch(ref.kind, since)
        try:
            async with asyncio.timeout(self._patience):
                async for change in watch:
                    status = change.object.get("status")
                    known = objects.text(change.object, "name") == ref.name
                    if known and isinstance(status, Mapping) and status.get("phase") == "Available":
                        return str(status.get("nodeName"))
        except TimeoutError:
            pass
        finally:
            await watch.aclose()
        raise refusals.Refused(
            "no node had room in time", culprit=str(ref), fix="see its condition Scheduled"
        )


def _inner(spec: Body) -> Made:
    return {key: spec[key] for key in _DECIDING if spec.get(key) is not None}


def _made(name: str, meta: Body, inner: Made, owners: list[Made], ttl: str) -> Made:
    labels = wire.labels(meta)
    return {
        "apiVersion": kinds.RESERVATIONS.api_version,
        "kind": kinds.RESERVATIONS.name,
        "metadata": {"name": name[:253]},
        "spec": {
            "template": {
                "metadata": {"namespace": meta.get("namespace") or "default", "labels": labels},
                "spec": inner,
            },
            "owners": owners,
            "ttl": ttl,
        },
    }


def _elsewhere(affinity: Body, node: str) -> Made:
    """The affinity with "not on this node" in every term."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    of_nodes = wire.mapping(affinity, "nodeAffinity")
    terms = wire.bodies(wire.mapping(of_nodes, required), "nodeSelectorTerms") or [{}]
    away = {"key": "metadata.name", "operator": "NotIn", "values": [node]}
    several = [{**one, "matchFields": [*wire.sequence(one, "matchFields"), away]} for one in terms]
    return {**affinity, "nodeAffinity": {**of_nodes, required: {"nodeSelectorTerms": several}}}
