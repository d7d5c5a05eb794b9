"""A Kubernetes Pod into our model.

Covers: identity, classes, containers with their effective amounts, phases, resizes, static pods.
Does not cover: the bytes (``podwire``), which of several sources wins (``merging``).

A static pod has two UIDs: the hash of its manifest, which the kubelet knows it by and which
names its cgroup, and the one that the API server gave its mirror. The annotation
``config.mirror`` (on the mirror) or ``config.hash`` is the first; it wins. The kubelet says
itself where its pods are from; at the API server anybody may write ``config.hash`` onto his
pod, but the kubelet deletes what calls itself a mirror and is none.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator, Mapping

from koordlet.kubeapi import classes, pod_amounts, pod_annotations, podwire, shapes
from koordlet.model import pod, qos, resources
from koordlet.workloads import matching, refused_starts
from koordlet.workloads.annotations import registry

#: The source of pods that the API server lists.
CLUSTER = "cluster"
CONFIG_SOURCE = "kubernetes.io/config.source"
CONFIG_HASH = "kubernetes.io/config.hash"
CONFIG_MIRROR = "kubernetes.io/config.mirror"

_PHASES = {phase.value: phase for phase in pod.Phase}


def from_bytes(data: bytes, source: str, where: str) -> pod.Pod:
    """One pod; ``ValueError`` names the place where nothing of it can be used."""
    return _placed(lambda problems: podwire.decode(data, problems), source, where)


def from_object(body: object, source: str, where: str) -> pod.Pod:
    """One pod from decoded JSON or YAML."""
    return _placed(lambda problems: podwire.convert(body, podwire.WirePod, problems), source, where)


def _placed(read: Callable[[list[str]], podwire.WirePod], source: str, where: str) -> pod.Pod:
    problems: list[str] = []
    try:
        return decode(read(problems), source, problems)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def decode(wire: podwire.WirePod, source: str, problems: list[str]) -> pod.Pod:
    """The model; ``ValueError`` for a pod without a name."""
    meta = wire.metadata
    spec, status = wire.spec or pod_amounts.NO_SPEC, wire.status or pod_amounts.NO_STATUS
    if meta is None or not meta.name:
        raise ValueError("a Pod without metadata.name")
    labels = shapes.texts(meta.labels, problems, "label")
    notes = shapes.texts(meta.annotations, problems, "annotation")
    namespace = meta.namespace or "default"
    uid, static = _identity(meta, notes, source)
    resize = pod_amounts.resize(status)
    key, decoder = pod_annotations.EXTENDED_RESOURCES, pod_annotations.extended
    extended = pod_annotations.read(key, notes, decoder, problems) or {}
    named = _named(spec, status)
    containers = tuple(
        _container(
            row,
            pod_amounts.of_container(row, extended, resize, problems),
            (*_claims(row, named), *_served(row, status)),
        )
        for row in pod_amounts.containers(spec, status)
    )
    own, overhead = pod_amounts.of_pod(spec, status, containers, problems)
    kube = classes.kube_qos(status.qos_class, classes.counted(containers, own))
    raw = classes.raw_qos(labels, problems)
    kind = raw or qos.DEFAULT_OF_KUBE[kube]
    wanted = registry.decode(labels, notes, problems)
    return pod.Pod(
        uid=uid or f"{namespace}/{meta.name}",
        namespace=namespace,
        name=meta.name,
        qos=kind,
        raw_qos=raw,
        kube_qos=kube,
        source=source,
        priority=spec.priority,
        priority_class=spec.priority_class_name or "",
        band=classes.band(labels, spec.priority, kind, problems),
        sub_priority=registry.int32(labels, classes.SUB_PRIORITY_LABEL, problems),
        phase=_PHASES.get(status.phase or "Pending", pod.Phase.UNKNOWN),
        created=shapes.guarded(
            shapes.instant, meta.creation_timestamp, "creationTimestamp", problems
        ),
        deleting=shapes.guarded(
            shapes.instant, meta.deletion_timestamp, "deletionTimestamp", problems
        ),
        static=static,
        node=spec.node_name or "",
        resize=resize,
        match=_match(notes, source, problems) or (f"pod={uid}" if uid else ""),
        cpus=wanted.grant.cpus if wanted.grant is not None else None,
        requests=pod_amounts.requests(containers, own[0], overhead),
        limits=pod_amounts.limits(containers, own[1], overhead),
        overhead=overhead,
        own_requests=own[0],
        grace_seconds=spec.termination_grace_period_seconds,
        addresses=_addresses(status, problems),
        host_network=bool(spec.host_network),
        volumes=tuple(_volume(volume, problems) for volume in spec.volumes or ()),
        containers=containers,
        labels=labels,
        annotations=notes,
        wishes=wanted,
        problems=tuple(dict.fromkeys(problems)),
    )


def _match(notes: Mapping[str, str], source: str, problems: list[str]) -> str:
    """Match of the operator's own manifests; pod writers must not name foreign cgroups."""
    text = notes.get(matching.ANNOTATION, "")
    if source != "manifest":
        if text:
            problems.append(f"{matching.ANNOTATION}: only used in manifests of this machine")
        return ""
    try:
        return matching.parse(text)
    except ValueError as error:
        problems.append(str(error))
        return ""


def _volume(wire_volume: podwire.WireVolume, problems: list[str]) -> pod.Volume:
    """Memory, secrets and projected volumes take no room on the node's disk."""
    emptied = wire_volume.empty_dir
    others = (wire_volume.host_path, wire_volume.git_repo, wire_volume.config_map)
    local = others != (None, None, None) or (emptied is not None and not emptied.get("medium"))
    text = None if emptied is None else emptied.get("sizeLimit")
    if text is None:
        return pod.Volume(name=wire_volume.name, local=local)
    amounts = resources.read({"sizeLimit": text}, problems, f"volume {wire_volume.name[:80]}")
    return pod.Volume(
        name=wire_volume.name, local=local, limit=amounts.get("sizeLimit"), limit_text=str(text)
    )


def _addresses(status: podwire.WireStatus, problems: list[str]) -> tuple[str, ...]:
    """IP addresses without duplicates; invalid ones are reported and ignored."""
    listed = [pod_ip.ip for pod_ip in status.pod_ips or ()] or [status.pod_ip or ""]
    addresses: dict[str, None] = {}
    for text in filter(None, listed):
        try:
            addresses[str(ipaddress.ip_address(text))] = None
        except ValueError:
            problems.append(f"podIPs: not an address: {text[:64]!r}")
    return tuple(addresses)


def _identity(meta: podwire.Meta, notes: Mapping[str, str], source: str) -> tuple[str, bool]:
    """Rule 1: UID, and whether it is static."""
    mirrored = notes.get(CONFIG_MIRROR)
    written = source != CLUSTER and notes.get(CONFIG_SOURCE, "api") != "api"
    static = mirrored is not None or written
    known_by = mirrored or (notes.get(CONFIG_HASH) if static else "") or meta.uid or ""
    return known_by, static


def _named(spec: podwire.WireSpec, status: podwire.WireStatus) -> Mapping[str, str]:
    """The pod's own names of resource claims to the names of the objects."""
    listed = (*(spec.resource_claims or ()), *(status.resource_claim_statuses or ()))
    return {claim.name: name for claim in listed if (name := claim.resource_claim_name)}


def _claims(row: pod_amounts.Row, named: Mapping[str, str]) -> Iterator[str]:
    """The claims that a container names, as ``pod.Container.claims`` has them."""
    resources = row[0].resources
    for claim in (resources.claims if resources is not None else None) or ():
        if name := named.get(claim.name):
            yield f"{name}/{claim.request}" if claim.request else name


def _served(row: pod_amounts.Row, status: podwire.WireStatus) -> Iterator[str]:
    """The same of its extended resources that device classes serve."""
    made = status.extended_resource_claim_status or podwire.WireExtended()
    for part in made.request_mappings or ():
        if part.container_name == row[0].name:
            yield f"{made.resource_claim_name}/{part.request_name}"


def _container(
    row: pod_amounts.Row, demand: pod_amounts.Demand, claims: tuple[str, ...]
) -> pod.Container:
    container, status, kind = row
    url = (status.container_id or "") if status is not None else ""
    runtime, _, known_as = url.rpartition("://")
    return pod.Container(
        name=container.name,
        id=known_as,
        runtime=runtime,
        kind=kind,
        running=status is not None and "running" in (status.state or ()),
        refused=refused_starts.of(status),
        requests=demand[0],
        limits=demand[1],
        claims=claims,
    )
