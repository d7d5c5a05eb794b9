"""What if a cluster were another one: changed objects, and what differs between simulations.

Covers: objects in place of others, more nodes, a node less, another number of replicas; the
document. Does not cover: printing (``cli.quotas``, ``cli.sim_report``).
"""

from __future__ import annotations

import copy
import itertools
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koordlet.model import errors
from koordlet.scheduler.sim.simulation import Result

Body = Mapping[str, Any]
_HOST = "kubernetes.io/hostname"
#: Objects of the same name as their node that say what it has.
_OF_NODE = ("NodeResourceTopology", "Device", "CSINode")
#: Annotations that a scheduler wrote when it placed a pod.
_DECIDED = ("resource-status", "allocated")
#: Pods that belong to their node.
_STAY = ("DaemonSet", "Node")


def replaced(bodies: Sequence[Body], changed: Sequence[Body]) -> list[Body]:
    """The objects, with some in place of those of the same kind and name."""
    names = {_named(body) for body in changed}
    return [*(body for body in bodies if _named(body) not in names), *changed]


def _named(body: Body) -> tuple[object, ...]:
    meta = body.get("metadata") or {}
    return body.get("kind"), meta.get("namespace") or "default", meta.get("name")


def with_nodes(bodies: Sequence[Body], number: int, like: str = "") -> list[Body]:
    """So many nodes more: copies of a node, else of the shape that most nodes have."""
    nodes = [body for body in bodies if body.get("kind") == "Node" and _name(body)]
    if like:
        nodes = [node for node in nodes if _name(node) == like]
    if not nodes:
        culprit, fix = like or "--add-nodes", "name a node of the input with --like"
        raise errors.ConfigError("there is no node to copy", culprit=culprit, fix=fix)
    shapes = [
        json.dumps(_part(node, "status").get("allocatable"), sort_keys=True) for node in nodes
    ]
    (shape, _), *_ = Counter(shapes).most_common(1)
    model = nodes[shapes.index(shape)]
    beside = [
        body for body in bodies if body.get("kind") in _OF_NODE and _name(body) == _name(model)
    ]
    taken = {_name(body) for body in bodies if body.get("kind") == "Node"}
    fresh = (name for n in itertools.count(1) if (name := f"{_name(model)}-new-{n}") not in taken)
    return [
        *bodies,
        *(
            _copy(body, name)
            for name in itertools.islice(fresh, number)
            for body in (model, *beside)
        ),
    ]


def without(bodies: Sequence[Body], name: str) -> list[Body]:
    """Without a node: its pods are to be placed anew, but for those that belong to it."""
    if not any(body.get("kind") == "Node" and _name(body) == name for body in bodies):
        raise errors.ConfigError("there is no such node", culprit=name, fix="kubectl get nodes")
    left: list[Body] = []
    for body in bodies:
        if body.get("kind") in ("Node", "NodeMetric", *_OF_NODE) and _name(body) == name:
            continue
        on_it = body.get("kind") == "Pod" and _part(body, "spec").get("nodeName") == name
        if not on_it:
            left.append(body)
        elif not _ended(body) and _owner(body)[0] not in _STAY:
            left.append(_unplaced(body))
    return left


def scaled(bodies: Sequence[Body], namespace: str, name: str, replicas: int) -> list[Body]:
    """Another number of pods of a Deployment or StatefulSet; those that wait go first."""
    left = [_sized(body, namespace, name, replicas) for body in bodies]
    own = [body for body in left if _is_of(body, namespace, name)]
    if not own:
        if any(body is not old for body, old in zip(left, bodies, strict=True)):
            return left  # a Deployment that is given without its pods
        culprit = f"{namespace}/{name}"
        fix = "the input needs a pod of it, or the Deployment itself"
        raise errors.ConfigError("no pod of such a workload", culprit=culprit, fix=fix)
    waiting_last = sorted(own, key=lambda body: not _part(body, "spec").get("nodeName"))
    gone = {id(body) for body in waiting_last[replicas:]}
    more = max(0, replicas - len(own))
    copies = (_unplaced(_copy(own[0], f"{name}-new-{n}")) for n in range(1, more + 1))
    return [*(body for body in left if id(body) not in gone), *copies]


def _sized(body: Body, namespace: str, name: str, replicas: int) -> Body:
    if _named(body) != ("Deployment", namespace, name):
        return body
    return {**body, "spec": {**_part(body, "spec"), "replicas": replicas}}


def _is_of(body: Body, namespace: str, name: str) -> bool:
    if body.get("kind") != "Pod" or _named(body)[1] != namespace or _ended(body):
        return False
    kind, owner = _owner(body)
    # A ReplicaSet is called as its Deployment, with a hash behind.
    return (kind == "StatefulSet" and owner == name) or (
        kind == "ReplicaSet" and name in (owner, owner.rpartition("-")[0])
    )


def _owner(body: Body) -> tuple[str, str]:
    for owner in _part(body, "metadata").get("ownerReferences") or ():
        if isinstance(owner, dict) and owner.get("controller"):
            return str(owner.get("kind")), str(owner.get("name"))
    return "", ""


def _ended(body: Body) -> bool:
    return _part(body, "status").get("phase") in ("Succeeded", "Failed")


def _copy(body: Body, name: str) -> dict[str, Any]:
    """The same object under another name."""
    made = copy.deepcopy(dict(body))
    meta = made["metadata"] = {**_part(made, "metadata"), "name": name}
    if "uid" in meta:
        meta["uid"] = f"what-if-{name}"
    labels = meta.get("labels")
    if isinstance(labels, dict) and _HOST in labels:
        labels[_HOST] = name
    return made


def _unplaced(body: Body) -> dict[str, Any]:
    """The same pod before anybody placed it."""
    meta, spec = dict(_part(body, "metadata")), dict(_part(body, "spec"))
    spec.pop("nodeName", None)
    notes = meta.get("annotations")
    if isinstance(notes, dict):
        meta["annotations"] = {key: notes[key] for key in notes if not key.endswith(_DECIDED)}
    return {**body, "metadata": meta, "spec": spec, "status": {}}


def _part(body: Body, key: str) -> Mapping[str, Any]:
    part = body.get(key)
    return part if isinstance(part, dict) else {}


def _name(body: Body) -> str:
    return str(_part(body, "metadata").get("name") or "")


def document(before: Result, after: Result) -> dict[str, Any]:
    """The pods whose node differs, and the quotas of both."""
    return {
        "pods": list(moves(before.document(), after.document())),
        "before": before.quotas,
        "after": after.quotas,
    }


def comparison(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Two documents of simulations: both summaries, and the pods whose node differs."""
    return {
        "before": before.get("summary"),
        "after": after.get("summary"),
        "pods": list(moves(before, after)),
    }


def moves(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Pods whose node differs; ``None``: it waits, or is not there."""
    old, new = _nodes(before), _nodes(after)
    for pod in sorted(old.keys() | new.keys()):
        if old.get(pod) != new.get(pod):
            yield {"pod": pod, "before": old.get(pod), "after": new.get(pod)}


def _nodes(result: Mapping[str, Any]) -> dict[str, str | None]:
    """The node of each pod that was tried; ``None``: it waits."""
    pending, placements = result.get("pending", ()), result.get("placements", ())
    return {
        **{waiting["pod"]: None for waiting in pending},
        **{placement["pod"]: placement["node"] for placement in placements},
    }
