"""Kubernetes objects from a file, as kubectl prints them, into our own model.

Covers: JSON and YAML, ``List`` and several documents, Pods and one Node.
Does not cover: watching a cluster, which comes with the observe sources.

Rules:
1. A broken annotation costs that annotation: the pod stays, with a problem that is shown.
2. A document that is no object, or a Pod without a name, is an error that names its place.
3. Pods that have ended hold nothing and are left out. Kinds that we have no use for yet are skipped
   with a warning that counts them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from koordlet.model import cpuset, errors, pod, qos, snapshot

QOS_LABEL = "koordinator.sh/qosClass"
STATUS = "scheduling.koordinator.sh/resource-status"
MATCH = "koordlet.io/match"

_MAX_BYTES = 64 << 20
_ENDED = frozenset({"Succeeded", "Failed"})

Object = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifests:
    """What a file says."""

    pods: tuple[pod.Pod, ...] = ()
    node: snapshot.NodeInfo | None = None
    warnings: tuple[str, ...] = ()


def load(path: str) -> Manifests:
    """Read a file; ``ConfigError`` when it is no set of objects."""
    try:
        if Path(path).stat().st_size > _MAX_BYTES:
            raise errors.ConfigError(
                f"larger than {_MAX_BYTES >> 20} MiB", culprit=path, fix="split the file"
            )
        text = Path(path).read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.ConfigError(
            f"cannot be read: {error}", culprit=path, fix="give kubectl's JSON or YAML"
        ) from error
    return collect(_documents(text, path), path)


def _documents(text: str, path: str) -> list[object]:
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError):
        pass
    import yaml  # noqa: PLC0415 -- JSON, the usual case, does not pay for it

    try:
        return list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, RecursionError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise errors.ConfigError(
            f"neither JSON nor YAML: {first}", culprit=path, fix="give kubectl's JSON or YAML"
        ) from error


def collect(documents: list[object], where: str) -> Manifests:
    """The objects, Lists unfolded, as our model."""
    pods: list[pod.Pod] = []
    nodes: list[snapshot.NodeInfo] = []
    skipped: dict[str, int] = {}
    for place, body in _objects(documents, where):
        kind = str(body.get("kind", ""))
        if kind == "Pod":
            if _map(body.get("status")).get("phase") not in _ENDED:
                pods.append(_pod(body, place))
        elif kind == "Node":
            meta = _map(body.get("metadata"))
            nodes.append(
                snapshot.NodeInfo(
                    name=str(meta.get("name", "")),
                    labels=_texts(meta.get("labels")),
                    annotations=_texts(meta.get("annotations")),
                )
            )
        else:
            skipped[kind or "nothing"] = skipped.get(kind or "nothing", 0) + 1
    warnings = [f"{where}: {count} of kind {kind} not used" for kind, count in skipped.items()]
    if len(nodes) > 1:
        warnings.append(f"{where}: {len(nodes)} Nodes, {nodes[0].name} is used")
    return Manifests(pods=tuple(pods), node=nodes[0] if nodes else None, warnings=tuple(warnings))


def _objects(documents: list[object], where: str) -> Iterator[tuple[str, Object]]:
    for number, document in enumerate(documents, 1):
        place = f"{where}: document {number}"
        if document is None:
            continue
        if not isinstance(document, dict):
            raise errors.ConfigError(
                f"expected an object, found {type(document).__name__}",
                culprit=place,
                fix="give kubectl's JSON or YAML",
            )
        items = document.get("items")
        if str(document.get("kind", "")).endswith("List") and isinstance(items, list):
            for index, item in enumerate(items):
                if not isinstance(item, dict):
                    raise errors.ConfigError("not an object", culprit=f"{place}: items[{index}]")
                yield f"{place}: items[{index}]", cast("Object", item)
        else:
            yield place, cast("Object", document)


def _map(value: object) -> Object:
    return cast("Object", value) if isinstance(value, dict) else {}


def _texts(value: object) -> dict[str, str]:
    return {str(k): v for k, v in _map(value).items() if isinstance(v, str)}


def _pod(body: Object, place: str) -> pod.Pod:
    meta, spec, status = (_map(body.get(key)) for key in ("metadata", "spec", "status"))
    name = meta.get("name")
    if not isinstance(name, str) or not name:
        raise errors.ConfigError("a Pod without metadata.name", culprit=place)
    labels, notes = _texts(meta.get("labels")), _texts(meta.get("annotations"))
    problems: list[str] = []
    kube = _kube_qos(spec, status)
    cpus = _granted(notes, problems)
    namespace = str(meta.get("namespace") or "default")
    priority = spec.get("priority")
    return pod.Pod(
        uid=str(meta.get("uid") or f"{namespace}/{name}"),
        namespace=namespace,
        name=name,
        qos=_qos(labels, kube, problems),
        kube_qos=kube,
        source="manifest",
        priority=priority if isinstance(priority, int) else None,
        match=notes.get(MATCH) or f"pod={meta.get('uid', '')}",
        cpus=cpus,
        labels=labels,
        annotations=notes,
        problems=tuple(problems),
    )


def _qos(labels: Mapping[str, str], kube: qos.KubeQos, problems: list[str]) -> qos.Qos:
    text = labels.get(QOS_LABEL, "")
    if text:
        try:
            return qos.Qos(text)
        except ValueError:
            problems.append(f"label {QOS_LABEL}: {text[:40]!r} is no QoS class")
    return qos.DEFAULT_OF_KUBE[kube]


def _granted(notes: Mapping[str, str], problems: list[str]) -> cpuset.CPUSet | None:
    """The CPUs that a scheduler decided."""
    text = notes.get(STATUS)
    if text is None:
        return None
    try:
        listed = _map(json.loads(text)).get("cpuset")
        return cpuset.CPUSet.parse(listed) if isinstance(listed, str) and listed else None
    except (ValueError, RecursionError) as error:
        problems.append(f"annotation {STATUS}: {error}")
        return None


def _kube_qos(spec: Object, status: Object) -> qos.KubeQos:
    """The class in the status, else the kubelet's rule over cpu and memory of all containers."""
    try:
        return qos.KubeQos(status.get("qosClass"))
    except ValueError:
        pass
    containers = spec.get("containers")
    every = (
        [_map(_map(c).get("resources")) for c in containers] if isinstance(containers, list) else []
    )
    asks = [(_map(one.get("requests")), _map(one.get("limits"))) for one in every]
    named = ("cpu", "memory")
    if not any(name in one for pair in asks for one in pair for name in named):
        return qos.KubeQos.BEST_EFFORT
    # A limit without a request is its own request.
    if all(
        name in limits and requests.get(name, limits[name]) == limits[name]
        for requests, limits in asks
        for name in named
    ):
        return qos.KubeQos.GUARANTEED
    return qos.KubeQos.BURSTABLE
