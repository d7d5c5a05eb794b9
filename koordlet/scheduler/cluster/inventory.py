"""The objects of a cluster, decoded into what the scheduler needs.

Covers: Nodes, Pods, Namespaces, PriorityClasses, PodDisruptionBudgets, Services, controllers,
storage, Reservations, NodeResourceTopologies, NodeMetrics, Devices, PodGroups, ElasticQuotas and
their profiles, the ClusterNetworkTopology, NodeAvoidances, ResourceSlices, DeviceClasses, claims
and their templates.
Does not cover: files (``kubeapi.manifests``).

One bad object costs that object: it is left out, and a warning names it and what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeVar

from koordlet.kubeapi import (
    elastic_quotas,
    network_topology,
    node_avoidances,
    pod_groups,
    validation,
)
from koordlet.model.record import dataclass
from koordlet.scheduler.allocation import devices, gpu_templates
from koordlet.scheduler.allocation.devices import Devices
from koordlet.scheduler.claims.allocation_state import AllocationState
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.disruption.avoidance_book import AvoidanceBook
from koordlet.scheduler.disruption.workloads import WorkloadIndex
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.objects import (
    deployments,
    device_classes,
    disruption,
    generated_claims,
    machines,
    nodes,
    owners,
    resource_claims,
    resource_slices,
    terms,
    unserved,
    usage,
    wire,
)
from koordlet.scheduler.objects.decoder import Decoder
from koordlet.scheduler.objects.machines import Machine
from koordlet.scheduler.objects.pods import Pod, Priority
from koordlet.scheduler.objects.storage import Storage
from koordlet.scheduler.objects.usage import NodeUsage
from koordlet.scheduler.objects.wire import BadObjectError, Body
from koordlet.scheduler.plugins.deviceshare import DeviceShare
from koordlet.scheduler.plugins.load_aware import LoadAwareScheduling
from koordlet.scheduler.plugins.node_avoidance import NodeAvoidance
from koordlet.scheduler.plugins.numa import NodeNUMAResource
from koordlet.scheduler.plugins.topology_spread import PodTopologySpread
from koordlet.scheduler.plugins.volumes import WithStorage

_T = TypeVar("_T")

_OWNERS = ("Service", "ReplicationController", "ReplicaSet", "StatefulSet")
_STORAGE = (
    "CSIDriver", "CSINode", "CSIStorageCapacity", "PersistentVolume", "PersistentVolumeClaim",
    "StorageClass", "VolumeAttachment",
)  # fmt: skip
_ENDED = ("Succeeded", "Failed")
#: What kinds that are not read do to pods, for whoever misses it.
_ELSEWHERE = {
    "ClusterColocationProfile": "changes new pods (koordlet sim --profiles FILE shows how)",
    "LimitRange": "completes new pods",
    "MovePlan": "has pods moved",
    "PodMigrationJob": "has pods moved",
    "ResourceQuota": "bounds new pods",
    "RuntimeClass": "completes new pods",
}


@dataclass(slots=True)
class Cluster:
    """The decoded input; ``warnings`` names what was ignored."""

    columns: Columns
    pending: list[Pod] = field(default_factory=list)
    rejected: list[tuple[str, str]] = field(default_factory=list)
    budgets: list[disruption.DisruptionBudget] = field(default_factory=list)
    owners: list[Body] = field(default_factory=list)
    storage: Storage = field(default_factory=Storage)
    reservations: list[Body] = field(default_factory=list)
    avoidances: list[Body] = field(default_factory=list)
    pod_groups: list[pod_groups.PodGroup] = field(default_factory=list)
    quotas: list[elastic_quotas.ElasticQuota] = field(default_factory=list)
    quota_profiles: list[elastic_quotas.ElasticQuotaProfile] = field(default_factory=list)
    #: The quotas that Namespaces name for their pods.
    namespace_quotas: dict[str, str] = field(default_factory=dict)
    network: network_topology.NetworkTopology | None = None
    machines: dict[str, Machine] = field(default_factory=dict)
    usages: dict[str, NodeUsage] = field(default_factory=dict)
    devices: dict[str, Devices] = field(default_factory=dict)
    templates: dict[tuple[str, str], gpu_templates.Templates] = field(default_factory=dict)
    #: Slices, device classes and claims; templates of claims by namespace and name.
    allocations: AllocationState = field(default_factory=AllocationState)
    claim_templates: dict[tuple[str, str], generated_claims.ClaimTemplate] = field(
        default_factory=dict
    )
    decoder: Decoder = field(default_factory=lambda: Decoder({}))
    warnings: list[str] = field(default_factory=list)

    def equip(self, profile: Profile, now: float) -> None:
        """Give a profile's plugins the objects that they ask for."""
        avoided = self._avoided(now)
        for plugin in profile.plugins:
            if isinstance(plugin, PodTopologySpread):
                self.each(self.owners, plugin.owners.add)
            elif isinstance(plugin, WithStorage):
                plugin.storage = self.storage
            elif isinstance(plugin, NodeNUMAResource):
                plugin.machines = self.machines
            elif isinstance(plugin, DeviceShare):
                for name, reported in self.devices.items():
                    self.columns.furnish(name, reported)
                for where, templates in self.templates.items():
                    plugin.teach(where, templates)
            elif isinstance(plugin, NodeAvoidance):
                plugin.book = avoided
            elif isinstance(plugin, LoadAwareScheduling):
                plugin.usages, plugin.wall = self.usages, lambda: now

    def _avoided(self, now: float) -> AvoidanceBook:
        """The avoid lists of all nodes."""
        known = WorkloadIndex(tuple)
        book = AvoidanceBook(known.signature, lambda: now)
        for body in self.avoidances:
            book.put(node_avoidances.node_avoidance(body))
        several = self.owners if self.avoidances else ()
        self.each(several, lambda body: known.put_owner(owners.decode(body)))
        return book

    def each(self, bodies: Iterable[Body], add: Callable[[Body], None]) -> None:
        """Take objects in; a warning names each that cannot be read."""
        for body in bodies:
            _guarded(body, self.warnings, add)


def name_of(body: Body) -> str:
    """``Kind namespace/name`` as far as they are there, for messages."""
    meta = body.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    where = f"{meta['namespace']}/" if meta.get("namespace") else ""
    return f"{str(body.get('kind'))[:60]} {where}{str(meta.get('name', 'without a name'))[:253]}"


def load(
    bodies: Iterable[Body],
    deciding: Iterable[str] = (),
    *,
    ignores_keys: bool = False,
    admit: Callable[[Body], Body] = lambda pod: pod,
) -> Cluster:
    """Decode the objects; nothing raises. ``deciding``: annotations of pods that plugins read.

    ``admit``: what becomes of each pod first.
    """
    kinds: dict[str, list[Body]] = {}
    for body in bodies:
        kinds.setdefault(str(body.get("kind")), []).append(body)
    warnings: list[str] = []
    judge = unserved.UnservedKeys(ignores_keys=ignores_keys)
    columns = Columns()
    cluster = Cluster(columns, warnings=warnings)
    for name, labels, quota in _decoded(kinds, "Namespace", warnings, namespace):
        columns.namespaces[name] = labels
        cluster.namespace_quotas |= {name: quota} if quota else {}
    quotas = (elastic_quotas.elastic_quota(body) for body in kinds.pop("ElasticQuota", []))
    profiles = kinds.pop("ElasticQuotaProfile", [])
    if not ignores_keys:
        cluster.quotas += quotas
        cluster.quota_profiles += map(elastic_quotas.elastic_quota_profile, profiles)
    for problems in _decoded(kinds, "Node", warnings, lambda node: _node(node, columns)):
        warnings += problems
    cluster.budgets += _decoded(kinds, "PodDisruptionBudget", warnings, budget)
    priorities = dict(_decoded(kinds, "PriorityClass", warnings, priority))
    cluster.owners += [body for kind in _OWNERS for body in kinds.pop(kind, [])]
    for kind in _STORAGE:
        cluster.each(kinds.pop(kind, []), cluster.storage.add)
    cluster.decoder = Decoder(priorities, deciding, judge)
    pods = kinds.pop("Pod", [])
    for body in kinds.pop("Deployment", []):
        pods += _expanded(body, pods, warnings)
    _pods(map(admit, pods), cluster)
    cluster.reservations = kinds.pop("Reservation", [])
    cluster.avoidances = kinds.pop("NodeAvoidance", [])
    cluster.pod_groups = [pod_groups.pod_group(body) for body in kinds.pop("PodGroup", [])]
    for body in kinds.pop("ClusterNetworkTopology", []):
        network = network_topology.network_topology(body)
        warnings += [f"{name_of(body)} is ignored: {network.unused}"] if network.unused else []
        cluster.network = network if network.counts else cluster.network
    _reported(kinds, cluster)
    for kind, several in kinds.items():
        warnings.append(_unread(kind, len(several)))
    return cluster


def _unread(kind: str, count: int) -> str:
    """What is said of objects that are of no use here, and what they would do elsewhere."""
    objects_are = "1 object of kind {} is" if count == 1 else f"{count} objects of kind {{}} are"
    meaning = _ELSEWHERE.get(kind, "")
    return f"{objects_are.format(kind[:60])} ignored{meaning and f': the kind {meaning}'}"


def _reported(kinds: dict[str, list[Body]], cluster: Cluster) -> None:
    """Take in what agents report of their nodes."""
    warnings = cluster.warnings
    cluster.machines = dict(_decoded(kinds, "NodeResourceTopology", warnings, machines.decode))
    cluster.usages = dict(_decoded(kinds, "NodeMetric", warnings, usage.decode))
    cluster.devices = dict(_decoded(kinds, "Device", warnings, devices.decode))
    cluster.templates = dict(_decoded(kinds, "ConfigMap", warnings, gpu_templates.decode))
    state = cluster.allocations
    for device_class in _decoded(kinds, "DeviceClass", warnings, _read(device_classes.decode)):
        state.put_class(device_class)
    for content in _decoded(kinds, "ResourceSlice", warnings, _read(resource_slices.decode)):
        state.pools.put(content)
    for claim in _decoded(kinds, "ResourceClaim", warnings, _read(resource_claims.decode)):
        state.claims.put(claim)
    made = _read(generated_claims.decode_template)
    for template in _decoded(kinds, "ResourceClaimTemplate", warnings, made):
        cluster.claim_templates[template.namespace, template.name] = template


def _read(decode: Callable[[Body], _T]) -> Callable[[Body], _T]:
    """Decode what an API server would take."""
    return lambda body: decode(_validated(body))


def _decoded(
    kinds: dict[str, list[Body]], kind: str, warnings: list[str], make: Callable[[Body], _T]
) -> Iterator[_T]:
    """The objects of a kind that can be read."""
    for body in kinds.pop(kind, []):
        yield from _guarded(body, warnings, make)


def _guarded(body: Body, warnings: list[str], make: Callable[[Body], _T]) -> list[_T]:
    try:
        return [make(body)]
    except BadObjectError as error:
        warnings.append(f"{name_of(body)} is ignored: {error}")
        return []


def _expanded(body: Body, pods: list[Body], warnings: list[str]) -> Sequence[Body]:
    """The pods of a Deployment, where the input has none of them."""
    expanded = _guarded(body, warnings, lambda deployment: deployments.pods(deployment, pods))
    made: Sequence[Body] = expanded[0] if expanded else ()
    if made:
        warnings.append(
            f"{name_of(body)} has no pods in the input: {len(made)} pending pods are assumed"
        )
    return made


def namespace(body: Body) -> tuple[str, dict[str, str], str]:
    """The name of a Namespace, its labels, and the quota that it names for its pods."""
    meta = wire.mapping(body, "metadata")
    name = wire.text(meta, "name")
    labels = {"kubernetes.io/metadata.name": name, **wire.labels(meta)}
    return name, labels, elastic_quotas.namespace_quota(meta)


def _node(body: Body, columns: Columns) -> list[str]:
    """Take a node in; what of it cannot be read."""
    node = nodes.decode(_validated(body))
    _only_once(node.name, columns.rows)
    columns.put(node)
    return [f"{name_of(body)}: {problem}" for problem in node.problems]


def budget(body: Body) -> disruption.DisruptionBudget:
    """The PodDisruptionBudget, with the status that its controller has written."""
    meta, status = wire.mapping(body, "metadata"), wire.mapping(body, "status")
    return disruption.DisruptionBudget(
        namespace=wire.text(meta, "namespace") or "default",
        selector=terms.selector(wire.mapping(body, "spec"), "selector"),
        allowed=wire.integer(status, "disruptionsAllowed"),
        disrupted=frozenset(map(str, wire.mapping(status, "disruptedPods"))),
    )


def priority(body: Body) -> tuple[str, Priority]:
    """The name and value of a PriorityClass."""
    name = wire.text(wire.mapping(_validated(body), "metadata"), "name")
    preempts = wire.text(body, "preemptionPolicy") != "Never"
    default = wire.flag(body, "globalDefault")
    return name, Priority(wire.integer(body, "value"), preempts, default)


def _validated(body: Body) -> Body:
    """``BadObjectError`` where an API server would refuse an object."""
    if faults := validation.faults(body):
        raise BadObjectError("; ".join(faults))
    return body


def _pods(bodies: Iterable[Body], cluster: Cluster) -> None:
    seen: set[str] = set()
    for position, body in enumerate(bodies):
        status = body.get("status")
        if isinstance(status, Mapping) and status.get("phase") in _ENDED:
            continue
        try:
            pod = cluster.decoder.decode(body, position)
            if not pod.node:
                _validated(body)
            _only_once(pod.key, seen)
            seen.add(pod.key)
            if pod.node:
                cluster.columns.place(pod, _row_of(pod, cluster.columns))
            else:
                cluster.pending.append(pod)
        except BadObjectError as error:
            cluster.warnings.append(f"{name_of(body)} is ignored: {error}")
            spec = body.get("spec")
            if not (isinstance(spec, Mapping) and spec.get("nodeName")):
                cluster.rejected.append((name_of(body).removeprefix("Pod "), f"rejected: {error}"))


def _only_once(name: str, seen: Container[str]) -> None:
    if name in seen:
        raise BadObjectError("its name occurs twice, and the first object counts")


def _row_of(pod: Pod, columns: Columns) -> int:
    if pod.node not in columns.rows:
        raise BadObjectError(f"its node {pod.node[:253]!r} is not in the input")
    return columns.rows[pod.node]
