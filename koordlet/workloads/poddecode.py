"""A Kubernetes Pod into our model.

Covers: identity, classes, containers with their effective amounts, phases, resizes, static pods.
Does not cover: the bytes (``podwire``), which of several sources wins (``merging``).

Rules:
1. A static pod has two UIDs: the hash of its manifest, which the kubelet knows it by and which
   names its cgroup, and the one that the API server gave its mirror. The annotation
   ``config.mirror`` (on the mirror) or ``config.hash`` is the first; it wins. The kubelet says
   itself where its pods are from; at the API server anybody may write ``config.hash`` onto his
   pod, but the kubelet deletes what calls itself a mirror and is none.
2. In-place resize: a request is the largest of spec, what is allocated and what is in force, since
   each may be true for a moment; where the resize is infeasible the spec is only a wish and does
   not count. A limit is what is in force where the status says it, else the spec's.
3. Ephemeral containers ask for nothing.
4. Amounts of ``extended-resource-spec`` fill in what a container's spec lacks.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koordlet.model import cpuset, pod, qos, resources, wishes
from koordlet.workloads import classes, effective, matching, podwire, refused_starts, shapes
from koordlet.workloads.annotations import eviction, extended_resources, registry

#: The source of pods that the API server lists.
CLUSTER = "cluster"
CONFIG_SOURCE = "kubernetes.io/config.source"
CONFIG_HASH = "kubernetes.io/config.hash"
CONFIG_MIRROR = "kubernetes.io/config.mirror"

_PHASES = {one.value: one for one in pod.Phase}
_NO_SPEC = podwire.WireSpec()
_NO_STATUS = podwire.WireStatus()
#: A condition that says how a resize is going, to what we call it.
_RESIZING = {"PodResizeInProgress": "InProgress"}
_INFEASIBLE = "Infeasible"

_Extended = Mapping[str, extended_resources.Extended]
_Statuses = Sequence[podwire.ContainerStatus] | None
#: Requests and limits.
_Asked = tuple[dict[str, int], dict[str, int]]


def from_bytes(data: bytes, source: str, where: str) -> pod.Pod:
    """One pod; ``ValueError`` names the place where nothing of it can be used."""
    problems: list[str] = []
    try:
        return decode(podwire.decode(data, problems), source, problems)
    except ValueError as error:
        msg = f"{where}: {error}"
        raise ValueError(msg) from error


def from_object(body: object, source: str, where: str) -> pod.Pod:
    """One pod from decoded JSON or YAML."""
    problems: list[str] = []
    try:
        return decode(podwire.convert(body, problems), source, problems)
    except ValueError as error:
        msg = f"{where}: {error}"
        raise ValueError(msg) from error


def decode(wire: podwire.WirePod, source: str, problems: list[str]) -> pod.Pod:
    """The model; ``ValueError`` for a pod without a name."""
    meta, spec, status = wire.metadata, wire.spec or _NO_SPEC, wire.status or _NO_STATUS
    if meta is None or not meta.name:
        msg = "a Pod without metadata.name"
        raise ValueError(msg)
    labels = _texts(meta.labels, problems, "label")
    notes = _texts(meta.annotations, problems, "annotation")
    namespace = meta.namespace or "default"
    uid, static = _identity(meta, notes, source)
    resize = _resize(status)
    containers = tuple(_containers(spec, status, _extended(notes, problems), resize, problems))
    of_pod = _asked(spec.resources, problems, "spec.resources")
    overhead = resources.read(spec.overhead or {}, problems, "spec.overhead")
    kube = classes.kube_qos(status.qos_class, _counted(containers, of_pod))
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
        sub_priority=eviction.int32(labels, classes.SUB_PRIORITY_LABEL, problems),
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
        cpus=_granted(wanted),
        requests=effective.requests(containers, of_pod[0], overhead),
        limits=effective.limits(containers, of_pod[1], overhead),
        overhead=overhead,
        own_requests=of_pod[0],
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
    beside = (
        wire_volume.host_path is not None
        or wire_volume.git_repo is not None
        or wire_volume.config_map is not None
    )
    local = beside or (emptied is not None and not emptied.get("medium"))
    text = None if emptied is None else emptied.get("sizeLimit")
    if text is None:
        return pod.Volume(name=wire_volume.name, local=local)
    found = resources.read({"sizeLimit": text}, problems, f"volume {wire_volume.name[:80]}")
    return pod.Volume(
        name=wire_volume.name, local=local, limit=found.get("sizeLimit"), limit_text=str(text)
    )


def _addresses(status: podwire.WireStatus, problems: list[str]) -> tuple[str, ...]:
    """IP addresses without duplicates; invalid ones are reported and ignored."""
    listed = [one.ip for one in status.pod_ips or ()] or [status.pod_ip or ""]
    found: dict[str, None] = {}
    for text in filter(None, listed):
        try:
            found[str(ipaddress.ip_address(text))] = None
        except ValueError:
            problems.append(f"podIPs: not an address: {text[:64]!r}")
    return tuple(found)


def _identity(meta: podwire.Meta, notes: Mapping[str, str], source: str) -> tuple[str, bool]:
    """Rule 1: UID, and whether it is static."""
    mirrored = notes.get(CONFIG_MIRROR)
    written = source != CLUSTER and notes.get(CONFIG_SOURCE, "api") != "api"
    static = mirrored is not None or written
    known_by = mirrored or (notes.get(CONFIG_HASH) if static else "") or meta.uid or ""
    return known_by, static


def _granted(wanted: wishes.Wishes) -> cpuset.CPUSet | None:
    return wanted.grant.cpus if wanted.grant is not None else None


def _texts(body: Mapping[str, Any] | None, problems: list[str], what: str) -> dict[str, str]:
    if not body:
        return {}
    for key, text in body.items():
        if not isinstance(text, str):
            problems.append(f"{what} {str(key)[:80]}: expected a text, found {shapes.shown(text)}")
    return {str(key): text for key, text in body.items() if isinstance(text, str)}


def _resize(status: podwire.WireStatus) -> str:
    """State of a resize: conditions since 1.33, ``status.resize`` before."""
    for condition in status.conditions or ():
        if condition.status == "True" and condition.type == "PodResizePending":
            return condition.reason or "Pending"
        if condition.status == "True" and condition.type in _RESIZING:
            return _RESIZING[condition.type]
    return status.resize or ""


def _extended(notes: Mapping[str, str], problems: list[str]) -> _Extended:
    found = registry.read(extended_resources.KEY, notes, extended_resources.decode, problems)
    return found if isinstance(found, dict) else {}


def _containers(
    spec: podwire.WireSpec,
    status: podwire.WireStatus,
    extended: _Extended,
    resize: str,
    problems: list[str],
) -> Iterator[pod.Container]:
    groups: tuple[tuple[Sequence[podwire.WireContainer], _Statuses, pod.Kind], ...] = (
        (spec.init_containers or (), status.init_container_statuses, pod.Kind.INIT),
        (spec.containers or (), status.container_statuses, pod.Kind.REGULAR),
        (spec.ephemeral_containers or (), status.ephemeral_container_statuses, pod.Kind.EPHEMERAL),
    )
    for listed, statuses, kind in groups:
        known = {one.name: one for one in statuses or ()}
        for one in listed:
            now = known.get(one.name)
            asked = _filled(one, extended.get(one.name), problems)
            if now is not None and (now.resources is not None or now.allocated_resources):
                asked = _resized(asked, now, resize, problems)
            yield _container(one, now, kind, asked)


def _container(
    wire_container: podwire.WireContainer,
    now: podwire.ContainerStatus | None,
    kind: pod.Kind,
    asked: _Asked,
) -> pod.Container:
    stays = kind is pod.Kind.INIT and wire_container.restart_policy == "Always"
    runtime, _, known_as = ((now.container_id or "") if now is not None else "").rpartition("://")
    asks = kind is not pod.Kind.EPHEMERAL
    return pod.Container(
        name=wire_container.name,
        id=known_as,
        runtime=runtime,
        kind=pod.Kind.SIDECAR if stays else kind,
        running=now is not None and "running" in (now.state or ()),
        refused=refused_starts.of(now),
        requests=asked[0] if asks else {},
        limits=asked[1] if asks else {},
    )


def _filled(
    wire_container: podwire.WireContainer,
    more: extended_resources.Extended | None,
    problems: list[str],
) -> _Asked:
    """Rule 4."""
    requests, limits = _asked(
        wire_container.resources, problems, f"container {wire_container.name[:80]}"
    )
    if more is None:
        return requests, limits
    return {**more.requests, **requests}, {**more.limits, **limits}


def _resized(
    asked: _Asked, now: podwire.ContainerStatus, resize: str, problems: list[str]
) -> _Asked:
    """Rule 2."""
    where = f"status of container {now.name[:80]}"
    in_force = _asked(now.resources, problems, where)
    allocated = resources.read(now.allocated_resources or {}, problems, where)
    known = resources.most((in_force[0], allocated))
    if not known or resize != _INFEASIBLE:
        known = resources.most((asked[0], known))
    return known, {**asked[1], **in_force[1]}


def _asked(asked: podwire.WireResources | None, problems: list[str], where: str) -> _Asked:
    """Requests and limits; a limit without a request is its own request."""
    if asked is None:
        return {}, {}
    requests = resources.read(asked.requests or {}, problems, where)
    limits = resources.read(asked.limits or {}, problems, where)
    return ({**limits, **requests} if limits else requests), limits


def _counted(
    containers: Sequence[pod.Container], of_pod: _Asked
) -> list[tuple[resources.Amounts, resources.Amounts]]:
    """Resources that determine the Kubernetes QoS class."""
    if of_pod[0] or of_pod[1]:
        return [of_pod]
    return [
        (container.requests, container.limits)
        for container in containers
        if container.kind is not pod.Kind.EPHEMERAL
    ]
