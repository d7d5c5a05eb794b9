"""What a standalone scheduler does that a cluster's API server and controllers would do.

Covers: taking objects in, what runs where, why.
Does not cover: messages (``rpc.placing``), deciding (``scheduler.loop``), pods
(``standalone_pods``), quotas (``standalone_quotas``).

Rules:
1. An object is taken in as it is, with what an API server would have added: namespace, priority,
   preemption policy, overhead, tolerations, times of taints. What is there already is replaced in
   its wishes; a pod only where it has scheduling gates.
2. One bad object costs itself, and says why.
3. Objects are taken in one after the other: each sees what those before it have used of a quota.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import datetime as dt
import json
import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from typing import Any

from koordlet.kubeapi import (
    classes,
    disruption_rates,
    kinds,
    network_topology,
    node_avoidances,
    objects,
    pod_annotations,
    pod_groups,
    refusals,
    selectors,
    validation,
)
from koordlet.model import errors, moment, resources, surrogates
from koordlet.rpc import placing
from koordlet.scheduler.colocation import profile
from koordlet.scheduler.framework.queue import QueuePlace
from koordlet.scheduler.loop import runner
from koordlet.scheduler.migration import job
from koordlet.scheduler.objects import json_annotations, wire
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.process import standalone_pods, standalone_quotas
from koordlet.scheduler.rescheduling import move_plan
from koordlet.scheduler.reservation import keys, parsing
from koordlet.scheduler.standalone import claims, resource_quota, taints

_TAKEN = {
    kind.name: kind
    for kind in (
        *(kinds.NAMESPACES, kinds.NODES, kinds.PODS, kinds.PRIORITY_CLASSES, kinds.RUNTIME_CLASSES),
        *(kinds.POD_DISRUPTION_BUDGETS, kinds.SERVICES, kinds.RESERVATIONS, kinds.NODE_METRICS),
        *(kinds.NODE_RESOURCE_TOPOLOGIES, kinds.PERSISTENT_VOLUMES, kinds.STORAGE_CLASSES),
        *(kinds.PERSISTENT_VOLUME_CLAIMS, kinds.CSI_DRIVERS, kinds.STORAGE_CAPACITIES),
        *(kinds.DEVICES, kinds.POD_GROUPS, kinds.CLUSTER_NETWORK_TOPOLOGIES, kinds.CONFIG_MAPS),
        *(kinds.DISRUPTION_RATES, kinds.ELASTIC_QUOTAS, kinds.ELASTIC_QUOTA_PROFILES),
        *(kinds.DEVICE_CLASSES, kinds.RESOURCE_SLICES, kinds.RESOURCE_CLAIMS),
        *(kinds.RESOURCE_CLAIM_TEMPLATES, kinds.POD_MIGRATION_JOBS, kinds.NODE_AVOIDANCES),
        *(kinds.MOVE_PLANS, kinds.RESOURCE_QUOTAS, kinds.CLUSTER_COLOCATION_PROFILES),
    )
}
#: Objects that say themselves why they cannot be carried out.
_Read = (
    job.MigrationJob | move_plan.MovePlan | resource_quota.ResourceQuota | profile.ColocationProfile
)
_READERS: Mapping[kinds.Kind, Callable[[Mapping[str, Any]], _Read]] = {
    kinds.POD_MIGRATION_JOBS: job.read,
    kinds.MOVE_PLANS: move_plan.read,
    kinds.RESOURCE_QUOTAS: resource_quota.read,
    kinds.CLUSTER_COLOCATION_PROFILES: profile.read,
}
#: Whose selectors of devices are expressions.
_SELECTING = {kinds.DEVICE_CLASSES, kinds.RESOURCE_CLAIMS, kinds.RESOURCE_CLAIM_TEMPLATES}
_ADMIN_ACCESS = "resource.kubernetes.io/admin-access"
#: Kinds of Kubernetes' own gangs: a controller of a cluster makes and protects them.
_NATIVE_GANGS = {kinds.NATIVE_POD_GROUPS.name, "Workload"}
#: Whose status comes with them: there is no kubelet and no controller to write it.
_WITH_STATUS = {"Node", "NodeMetric", "PodDisruptionBudget"}


class StandaloneApi:
    """Answers for one standalone scheduler."""

    def __init__(
        self, store: objects.Objects, loop: runner.Loop, switches: Collection[str] = ()
    ) -> None:
        """``switches``: admission plugins that are enabled by name."""
        self._store, self._loop = store, loop
        self._taking = asyncio.Lock()
        self._pods = standalone_pods.PodIntake(store, loop.core.cycles, switches)

    def nodes(self, name: str) -> Sequence[placing.Node]:
        """One node, or all."""
        columns = self._loop.core.pod_cache.columns
        rows = {key: row for key, row in sorted(columns.rows.items()) if not name or key == name}
        if name and not rows:
            raise refusals.NotFound("no node has this name", culprit=name)
        names = sorted(columns.resources, key=columns.resources.__getitem__)
        nodes = []
        for key, row in rows.items():
            node, heard = columns.nodes[row], self._loop.agents.heard_at(key)
            allocatable, requested = (
                {
                    name: resources.text(name, int(table[columns.resources[name], row]))
                    for name in names
                    if table[columns.resources[name], row]
                }
                for table in (columns.allocatable, columns.requested)
            )
            nodes.append(
                placing.Node(
                    name=key,
                    allocatable=allocatable,
                    requested=requested,
                    pods=len(columns.pods[row]),
                    unschedulable=node is not None and node.unschedulable,
                    heard=None if heard is None else dt.datetime.fromtimestamp(heard, dt.UTC),
                    pressures=sorted(self._loop.agents.pressures.get(key, ())),
                )
            )
        return nodes

    async def assignments(self, node: str, revision: str) -> AsyncIterator[placing.AssignmentEvent]:
        """What shall run on a node, then what changes."""
        wanted = selectors.Selector(fields=f"spec.nodeName={node}")
        since = revision
        if not since:
            listing = await objects.collect(self._store.list(kinds.PODS, selector=wanted))
            since = listing.revision
            yield placing.AssignmentEvent(verb="RESET", revision=since)
            for body in listing.items:
                yield _assigned("SET", body, since)
            yield placing.AssignmentEvent(verb="SYNCED", revision=since)
        changes = self._store.watch(kinds.PODS, since, selector=wanted)
        async with contextlib.aclosing(changes):
            async for change in changes:
                if change.verb is not objects.Verb.BOOKMARK:
                    verb = "REMOVED" if change.verb is objects.Verb.DELETED else "SET"
                    yield _assigned(verb, change.object, change.revision)

    async def submit(self, manifests: Sequence[str], *, dry_run: bool) -> Sequence[placing.Taken]:
        """Take objects in, each by itself."""
        quotas = standalone_quotas.QuotaIntake(self._loop, dry_run=dry_run)
        taken = [await self._take(manifest, quotas) for manifest in manifests]
        while refused := [place for place, each in enumerate(taken) if _may_be_early(each)]:
            for place in refused:
                taken[place] = await self._take(manifests[place], quotas)
            if all(taken[place].error for place in refused):
                break
        return taken

    async def _take(self, manifest: str, quotas: standalone_quotas.QuotaIntake) -> placing.Taken:
        kind, namespace, name = "", "", ""
        try:
            body = _decoded(manifest)
            kind, name = str(body.get("kind")), objects.text(body, "name")
            known = _TAKEN.get(kind)
            group = str(body.get("apiVersion") or "").partition("/")[0]
            if kind in _NATIVE_GANGS and group == pod_groups.NATIVE_GROUP:
                raise refusals.Invalid(
                    f"{kind} of {group} exists in clusters only", fix=standalone_pods.USE_POD_GROUP
                )
            if known is None:
                raise refusals.Invalid(f"objects of kind {kind[:60]!r} are not accepted")
            namespace = objects.text(body, "namespace") or ("default" if known.namespaced else "")
            # An object that is new here, wherever it was before.
            meta = {key: value for key, value in objects.metadata(body).items() if key != "uid"}
            if faults := validation.faults({**body, "metadata": meta}):
                raise refusals.Invalid("; ".join(faults))
            async with self._taking:
                body = await self._completed(known, body)
                quotas.check(known, body)
                made = await self._written(known, body, dry_run=quotas.dry_run)
                quotas.take(known, made)
        except errors.KoordletError as error:
            return placing.Taken(kind=kind, namespace=namespace, name=name, error=str(error))
        return placing.Taken(
            kind=kind,
            namespace=namespace,
            name=objects.text(made, "name"),
            uid=objects.text(made, "uid"),
        )

    async def _written(
        self, kind: kinds.Kind, body: dict[str, Any], *, dry_run: bool
    ) -> objects.Object:
        status = body.get("status") if kind.name in _WITH_STATUS else None
        wish = {key: value for key, value in body.items() if key != "status"}
        try:
            made = await self._store.create(kind, wish, dry_run=dry_run)
        except refusals.AlreadyExists:
            if kind == kinds.PODS:
                updated = await self._pods.updated(wish, dry_run=dry_run)
                if updated is None:
                    raise
                return updated
            ref = objects.ref(kind, body)
            made = await self._store.patch(ref, objects.Merge(wish), dry_run=dry_run)
        if status is not None and not dry_run:
            patch = objects.Merge({"status": status})
            made = await self._store.patch(objects.ref(kind, made), patch, subresource="status")
        return made

    async def _completed(self, kind: kinds.Kind, body: dict[str, Any]) -> dict[str, Any]:
        """Rule 1."""
        metadata = dict(objects.metadata(body))
        if kind.namespaced:
            metadata.setdefault("namespace", "default")
        body = {**body, "metadata": metadata}
        if kind == kinds.RESERVATIONS:
            with contextlib.suppress(BadObjectError):  # the store says what cannot be read
                self._pods.check_served(parsing.read(body).scheduler)
        rate = disruption_rates.disruption_rate(body) if kind == kinds.DISRUPTION_RATES else None
        if rate is not None and rate.faults:
            raise refusals.Invalid("; ".join(rate.faults))
        avoids = kind == kinds.NODE_AVOIDANCES
        if avoids and (faults := node_avoidances.node_avoidance(body).faults):
            raise refusals.Invalid("; ".join(faults))
        reader = _READERS.get(kind)
        if reader is not None and (fault := reader(body).fault):
            raise refusals.Invalid(fault)
        network = kind == kinds.CLUSTER_NETWORK_TOPOLOGIES
        if network and (unused := network_topology.network_topology(body).unused):
            raise refusals.Invalid(unused)
        if kind == kinds.POD_GROUPS and pod_groups.pod_group(body).minimum is None:
            minimum = objects.part(body, "spec").get("minMember")
            raise refusals.Invalid(
                f"spec.minMember: expected a whole number, found {minimum!r:.60}"
            )
        if kind in _SELECTING:
            await self._check_devices(kind, body)
        if kind in {kinds.NODES, kinds.RESOURCE_SLICES}:
            return {**body, "spec": await self._dated(kind, body)}
        return await self._pods.completed(body) if kind == kinds.PODS else body

    async def _dated(self, kind: kinds.Kind, body: objects.Object) -> dict[str, Any]:
        """The specification of a node or slice whose taints say since when they are there."""
        known: objects.Object = {}
        with contextlib.suppress(refusals.NotFound):
            known = await self._store.get(objects.ref(kind, body))
        spec, before = objects.part(body, "spec"), objects.part(known, "spec")
        now = moment.spell(time.time())
        if kind == kinds.NODES:
            return taints.dated(spec, before, now)
        by_name = {wire.text(each, "name"): each for each in wire.bodies(before, "devices")}
        devices = [
            taints.dated(each, by_name.get(wire.text(each, "name"), {}), now)
            for each in wire.bodies(spec, "devices")
        ]
        return {**spec, **({"devices": devices} if devices else {})}

    async def _check_devices(self, kind: kinds.Kind, body: Mapping[str, Any]) -> None:
        """``Invalid`` where selectors mean nothing, and for admin access where it is not allowed.

        Devices of others may be asked for in namespaces that are labelled for it.
        """
        spec = objects.part(body, "spec")
        if wrong := list(claims.selector_faults(spec)):
            raise refusals.Invalid("; ".join(wrong))
        if kind == kinds.RESOURCE_CLAIM_TEMPLATES:
            spec = objects.part(spec, "spec")
        requests = objects.parts(objects.part(spec, "devices"), "requests")
        if not any(objects.part(each, "exactly").get("adminAccess") for each in requests):
            return
        name = objects.text(body, "namespace")
        labels: Mapping[str, Any] = {}
        with contextlib.suppress(refusals.NotFound):
            namespace = await self._store.get(objects.Ref(kinds.NAMESPACES, name))
            labels = objects.part(objects.metadata(namespace), "labels")
        if labels.get(_ADMIN_ACCESS) != "true":
            raise refusals.Invalid(
                "spec.devices.requests: admin access is not allowed in this namespace",
                culprit=name,
                fix=f'label the namespace {_ADMIN_ACCESS}="true"',
            )

    async def delete_quota(self, name: str, *, force: bool) -> None:
        """Delete a quota; with pods or children in it only by force."""
        await standalone_quotas.delete(self._store, self._loop.core.quotas.book, name, force=force)

    async def why(self, namespace: str, name: str) -> placing.Why:
        """Why a pod is where it is."""
        core, namespace = self._loop.core, namespace or "default"
        key = f"{namespace}/{name}"
        placed = core.pod_cache.get(key)
        if placed is not None and key not in core.pod_cache.assumed:
            return placing.Why(node=placed.node)
        entry = core.queue.get(key)
        if entry is None:
            return await self._unheard(objects.Ref(kinds.PODS, name, namespace))
        if await self._makes_claims(entry.pod):
            return placing.Why()
        stored = entry.pod.stored_condition[1] if entry.place is not QueuePlace.ACTIVE else ""
        refused: collections.Counter[str] = collections.Counter()
        if entry.place is QueuePlace.UNSCHEDULABLE:
            verdicts = core.cycles[entry.pod.pod_class.scheduler].failure(entry.pod).verdicts or {}
            refused.update(verdict.plugin for verdict in verdicts.values())
        return placing.Why(message=entry.why or stored, refusals=refused)

    async def _makes_claims(self, pod: Pod) -> bool:
        """Whether claims of a pod are not made yet, and will be: their templates are there."""
        unmade = [each.template for each in pod.claims if not (each.claim or each.needless)]
        for name in unmade:
            try:
                ref = objects.Ref(kinds.RESOURCE_CLAIM_TEMPLATES, name, pod.namespace)
                await self._store.get(ref)
            except refusals.NotFound:
                return False
        return bool(unmade)

    async def _unheard(self, ref: objects.Ref) -> placing.Why:
        """About a pod that was taken in a moment ago, of which the loop has not heard: nothing."""
        with contextlib.suppress(refusals.NotFound):
            spec = objects.part(await self._store.get(ref), "spec")
            if spec.get("schedulerName") in self._loop.core.cycles:
                return placing.Why(node=str(spec.get("nodeName") or ""))
        raise refusals.NotFound(
            "there is no such pod, or this scheduler does not serve its schedulerName",
            culprit=f"{ref.namespace}/{ref.name}",
        )


def _assigned(verb: str, body: objects.Object, revision: str) -> placing.AssignmentEvent:
    notes = objects.part(objects.metadata(body), "annotations")
    status = json_annotations.body(notes.get(pod_annotations.RESOURCE_STATUS), {"cpuset": None})
    drawn = json_annotations.body(notes.get(keys.ALLOCATED), {"name": None})
    labels = objects.part(objects.metadata(body), "labels")
    pod = placing.Assignment(
        namespace=objects.text(body, "namespace"),
        name=objects.text(body, "name"),
        uid=objects.text(body, "uid"),
        node=str(objects.part(body, "spec").get("nodeName") or ""),
        cpus=str(status.get("cpuset") or ""),
        reservation=str(drawn.get("name") or ""),
        qos=str(labels.get(classes.QOS_LABEL) or ""),
        manifest=json.dumps(body),
    )
    return placing.AssignmentEvent(verb=verb, revision=revision, assignment=pod)


def _may_be_early(taken: placing.Taken) -> bool:
    """Whether an object was refused that may stand before what it needs."""
    return bool(taken.error) and taken.kind == kinds.ELASTIC_QUOTAS.name


def _decoded(manifest: str) -> dict[str, Any]:
    try:
        whole = surrogates.whole(json.loads(manifest))
    except (ValueError, RecursionError) as error:
        raise refusals.Malformed(f"not JSON: {str(error)[:200]}") from error
    if not isinstance(whole, dict) or not objects.text(whole, "name"):
        raise refusals.Invalid("the object has no name")
    return whole
