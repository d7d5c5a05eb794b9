"""What a body says: amounts, requests, selectors, tolerations."""

from __future__ import annotations

import functools
import json
import math
from fractions import Fraction
from typing import Any

Body = dict[str, Any]
#: Resource to amount: CPU in thousandths, all else in whole units.
Amounts = dict[str, int]

SUFFIXES = {
    **{s: Fraction(1024) ** (i + 1) for i, s in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))},
    **{s: Fraction(1000) ** (i + 1) for i, s in enumerate(("k", "M", "G", "T", "P", "E"))},
    "m": Fraction(1, 1000),
    "u": Fraction(1, 10**6),
    "n": Fraction(1, 10**9),
}
#: What the scores assume of a container that does not ask.
ASSUMED = {"cpu": 100, "memory": 200 << 20}
HARD = ("NoSchedule", "NoExecute")


@functools.cache
def quantity(text: str) -> Fraction:
    """Any spelling, exactly."""
    for suffix, factor in SUFFIXES.items():
        if text.endswith(suffix):
            return Fraction(text.removesuffix(suffix)) * factor
    return Fraction(text)


def amount(resource: str, text: str) -> int:
    """Rounded up, CPU in thousandths."""
    return math.ceil(quantity(str(text)) * (1000 if resource == "cpu" else 1))


def amounts(body: Body) -> Amounts:
    """A resource list."""
    return {name: amount(name, text) for name, text in body.items()}


def room(node: Body) -> Amounts:
    """What a node has for pods: without what its reservation annotation sets aside."""
    allocatable = amounts(node["status"]["allocatable"])
    text = node["metadata"].get("annotations", {}).get("node.koordinator.sh/reservation")
    aside = json.loads(text) if text else {}
    kept = amounts(aside.get("resources", {}))
    # Nobody can keep half a CPU from pods.
    kept["cpu"] = 1000 * math.ceil(kept.get("cpu", 0) / 1000)
    if aside.get("reservedCPUs"):
        first, _, last = aside["reservedCPUs"].partition("-")
        kept["cpu"] = 1000 * (int(last or first) - int(first) + 1)
    if aside.get("applyPolicy") == "ReservedCPUsOnly":
        return allocatable
    # What best-effort pods may use was computed without it already.
    return {
        resource: whole
        if resource.startswith("kubernetes.io/batch-")
        else max(0, whole - kept.get(resource, 0))
        for resource, whole in allocatable.items()
    }


def asked(container: Body, *, assume: bool) -> Amounts:
    """One container's requests; limits fill what is missing, as the API server does."""
    resources = container.get("resources", {})
    spelled = amounts({**resources.get("limits", {}), **resources.get("requests", {})})
    return {**ASSUMED, **spelled} if assume else spelled


def add(left: Amounts, right: Amounts) -> Amounts:
    """The sum, resource by resource."""
    return {k: left.get(k, 0) + right.get(k, 0) for k in {**left, **right}}


def most(left: Amounts, right: Amounts) -> Amounts:
    """The larger, resource by resource."""
    return {k: max(left.get(k, 0), right.get(k, 0)) for k in {**left, **right}}


def requests(pod: Body, *, assume: bool = False) -> Amounts:
    """What a pod needs at its most demanding moment, with overhead."""
    total: Amounts = {}
    for container in pod["spec"]["containers"]:
        total = add(total, asked(container, assume=assume))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod["spec"].get("initContainers", []):
        own = asked(container, assume=assume)
        if container.get("restartPolicy") == "Always":
            total = add(total, own)
            sidecars = add(sidecars, own)
            peak = most(peak, sidecars)
        else:
            peak = most(peak, add(own, sidecars))
    return add(most(total, peak), amounts(pod["spec"].get("overhead", {})))


def name(body: Body) -> str:
    """``metadata.name``."""
    return str(body["metadata"]["name"])


def key(pod: Body) -> str:
    """``namespace/name``."""
    return f"{namespace(pod)}/{name(pod)}"


def namespace(body: Body) -> str:
    """``metadata.namespace``."""
    return str(body["metadata"].get("namespace", "default"))


def labels(body: Body) -> dict[str, str]:
    """``metadata.labels``."""
    return dict(body["metadata"].get("labels", {}))


def annotation(body: Body, name: str) -> Body:
    """An annotation that is an object."""
    return dict(json.loads(body["metadata"].get("annotations", {}).get(name, "{}")))


def priority(pod: Body) -> int:
    """Zero where it is not set."""
    return int(pod["spec"].get("priority", 0))


def terminating(pod: Body) -> bool:
    """Deleted, and not gone yet."""
    return "deletionTimestamp" in pod["metadata"]


def holds(expression: Body, values: dict[str, str]) -> bool:
    """One requirement of a selector, of pods or of nodes."""
    operator, wanted = expression["operator"], expression.get("values", [])
    value = values.get(expression["key"])
    if operator == "NotIn":
        return value not in wanted
    if operator == "DoesNotExist":
        return value is None
    if value is None or operator == "Exists":
        return value is not None
    if operator == "In":
        return value in wanted
    try:
        mine, bound = int(value), int(wanted[0])
    except ValueError:
        return False
    return mine > bound if operator == "Gt" else mine < bound


def selects(selector: Body | None, values: dict[str, str]) -> bool:
    """A label selector; none selects nothing, an empty one everything."""
    if selector is None:
        return False
    pairs = selector.get("matchLabels", {})
    return all(values.get(k) == v for k, v in pairs.items()) and all(
        holds(expression, values) for expression in selector.get("matchExpressions", [])
    )


def with_label_keys(selector: Body | None, term: Body, values: dict[str, str]) -> Body | None:
    """The selector with ``matchLabelKeys`` and ``mismatchLabelKeys`` written out."""
    if selector is None:
        return None
    more = [
        {"key": label, "operator": operator, "values": [values[label]]}
        for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))
        for label in term.get(field, [])
        if label in values
    ]
    return {**selector, "matchExpressions": selector.get("matchExpressions", []) + more}


def tolerates(toleration: Body, taint: Body) -> bool:
    """Effect, key and operator agree."""
    if toleration.get("effect", "") not in ("", taint["effect"]):
        return False
    if toleration.get("key", "") not in ("", taint["key"]):
        return False
    operator = toleration.get("operator", "") or "Equal"
    if operator == "Exists":
        return True
    return operator == "Equal" and toleration.get("value", "") == taint.get("value", "")


def tolerated(pod: Body, taint: Body) -> bool:
    """Some toleration of the pod does."""
    return any(tolerates(toleration, taint) for toleration in pod["spec"].get("tolerations", []))


def taints(node: Body, *effects: str) -> list[Body]:
    """Those of a node with one of the effects."""
    return [taint for taint in node["spec"].get("taints", []) if taint["effect"] in effects]


def repelled(pod: Body, node: Body) -> bool:
    """A hard taint is not tolerated."""
    return any(not tolerated(pod, taint) for taint in taints(node, *HARD))


def term_matches(term: Body, node: Body) -> bool:
    """A node selector term; an empty one matches nothing."""
    expressions, fields = term.get("matchExpressions", []), term.get("matchFields", [])
    if not expressions and not fields:
        return False
    return all(holds(expression, labels(node)) for expression in expressions) and all(
        holds(field, {"metadata.name": name(node)}) for field in fields
    )


def affinity(pod: Body, kind: str) -> Body:
    """``nodeAffinity``, ``podAffinity`` or ``podAntiAffinity``."""
    return dict(pod["spec"].get("affinity", {}).get(kind, {}))


def required_terms(pod: Body) -> list[Body] | None:
    """Of the node affinity; None where there is none."""
    required = affinity(pod, "nodeAffinity").get("requiredDuringSchedulingIgnoredDuringExecution")
    return None if required is None else list(required["nodeSelectorTerms"])


def wants(pod: Body, node: Body) -> bool:
    """``nodeSelector`` and the required node affinity allow the node."""
    mine = labels(node)
    if any(mine.get(k) != v for k, v in pod["spec"].get("nodeSelector", {}).items()):
        return False
    terms = required_terms(pod)
    return terms is None or any(term_matches(term, node) for term in terms)
