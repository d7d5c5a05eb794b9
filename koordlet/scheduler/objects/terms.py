"""What pods demand of nodes and of other pods: selectors and terms, decoded once a class.

Covers: node selector terms, pod (anti-)affinity terms, spread constraints, tolerations.
Does not cover: judging them over all nodes (the plugins).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from koordlet.kubeapi import labels as syntax
from koordlet.kubeapi import selectors
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.wire import BadObjectError, Body

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
_MOST_WEIGHT = 100
#: Effects that keep a pod off a node.
HARD = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class NodeRequirement:
    """One condition on one label (or field) of a node."""

    key: str
    operator: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """Conditions that must hold together; one that cannot be read matches nothing."""

    labels: tuple[NodeRequirement, ...] = ()
    fields: tuple[NodeRequirement, ...] = ()
    broken: bool = False

    @property
    def empty(self) -> bool:
        """Matches nothing, as the API says."""
        return not self.labels and not self.fields


@dataclass(frozen=True, slots=True)
class Toleration:
    """Which taints a pod bears."""

    key: str
    operator: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Taint:
    """What keeps pods off a node."""

    key: str
    value: str
    effect: str


#: What a node that was cordoned counts as.
CORDONED = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


@dataclass(frozen=True, slots=True)
class PodTerm:
    """Other pods, and the topology in which they count. No selector matches nothing."""

    key: str
    namespaces: frozenset[str]
    namespace_selector: selectors.Compiled | None
    selector: selectors.Compiled | None

    def matches(self, namespace: str, labels: Mapping[str, str], known: Namespaces) -> bool:
        """Whether a pod is meant."""
        if namespace not in self.namespaces:
            # A namespace that is not in the input has the label that each one gets.
            own = known.get(namespace) or {"kubernetes.io/metadata.name": namespace}
            if not holds(self.namespace_selector, own):
                return False
        return holds(self.selector, labels)


Namespaces = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class SpreadConstraint:
    """How evenly matching pods are to lie over a topology."""

    key: str
    skew: int
    hard: bool
    selector: selectors.Compiled | None
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


def holds(selector: selectors.Compiled | None, labels: Mapping[str, str]) -> bool:
    """Whether labels satisfy a selector; none satisfy the one that is not there."""
    return selector is not None and all(
        requirement.matches(labels) for requirement in selector.labels
    )


def weight(body: Body) -> int:
    """The weight of a preferred term, within the API server's bounds."""
    amount = wire.integer(body, "weight")
    if not 1 <= amount <= _MOST_WEIGHT:
        raise BadObjectError(f"weight: {amount} is not from 1 to {_MOST_WEIGHT}")
    return amount


def node_term(body: Body) -> NodeTerm:
    """One term of a node selector."""
    try:
        labels = tuple(map(_requirement, wire.bodies(body, "matchExpressions")))
        fields = tuple(map(_requirement, wire.bodies(body, "matchFields")))
    except BadObjectError:
        return NodeTerm(broken=True)
    # A field is compared with exactly one value.
    good = all(_valid(label) and not syntax.fault(label.key, label.values) for label in labels)
    good = good and all(
        (field.key, len(field.values)) == ("metadata.name", 1) and field.operator in {"In", "NotIn"}
        for field in fields
    )
    return NodeTerm(labels, fields) if good else NodeTerm(broken=True)


def _requirement(body: Body) -> NodeRequirement:
    key, operator = wire.texts(body, "key", "operator")
    return NodeRequirement(key, operator, wire.strings(body, "values"))


def _valid(requirement: NodeRequirement) -> bool:
    values = requirement.values
    match requirement.operator:
        case "In" | "NotIn":
            return bool(values)
        case "Exists" | "DoesNotExist":
            return not values
        case "Gt" | "Lt":
            return len(values) == 1 and whole(values[0]) is not None
    return False


def whole(spelled: str) -> int | None:
    """A 64-bit integer as Go's ``ParseInt`` reads it."""
    digits = spelled.lstrip("+-")
    if len(spelled) - len(digits) > 1 or not digits.isascii() or not digits.isdigit():
        return None
    value = int(spelled) if len(digits) <= 40 else 2**64
    return value if -(2**63) <= value < 2**63 else None


def fulfils(term: NodeTerm, name: str, labels: Mapping[str, str]) -> bool:
    """Whether one object of this name and with these labels satisfies a term, alone."""
    if term.broken or term.empty or not all(_meets(label, labels) for label in term.labels):
        return False
    return all(
        (name in requirement.values) is (requirement.operator == "In")
        for requirement in term.fields
    )


def _meets(requirement: NodeRequirement, labels: Mapping[str, str]) -> bool:
    match requirement.operator:
        case "Exists":
            return requirement.key in labels
        case "DoesNotExist":
            return requirement.key not in labels
        case "In":
            return labels.get(requirement.key) in requirement.values
        case "NotIn":
            return labels.get(requirement.key) not in requirement.values
    return beyond(
        labels.get(requirement.key, ""), requirement.operator, whole(requirement.values[0])
    )


def beyond(value: str, operator: str, bound: int | None) -> bool:
    """Whether a label is an integer above (``Gt``) or below (``Lt``) a bound."""
    number = whole(value)
    if number is None or bound is None:
        return False
    return number > bound if operator == "Gt" else number < bound


def toleration(body: Body) -> Toleration:
    """One toleration of a pod."""
    return Toleration(*wire.texts(body, "key", "operator", "value", "effect"))


def taint(body: Body) -> Taint:
    """One taint of a node."""
    return Taint(*wire.texts(body, "key", "value", "effect"))


def tolerates(toleration: Toleration, mark: Taint) -> bool:
    """The rule of Kubernetes, with the comparisons of its alpha."""
    if toleration.effect not in {"", mark.effect} or toleration.key not in {"", mark.key}:
        return False
    if toleration.operator in {"", "Equal"}:
        return toleration.value == mark.value
    if toleration.operator in {"Gt", "Lt"}:
        left, right = _canonical(mark.value), _canonical(toleration.value)
        if left is None or right is None:
            return False
        return left > right if toleration.operator == "Gt" else left < right
    return toleration.operator == "Exists"


def tolerated(tolerations: Iterable[Toleration], mark: Taint) -> bool:
    """Whether any of these tolerations bears a taint."""
    return any(tolerates(toleration, mark) for toleration in tolerations)


def _canonical(spelled: str) -> int | None:
    value = whole(spelled)
    return value if value is not None and str(value) == spelled else None


def selector(body: Body, key: str, of_pod: Mapping[str, str] | None = None) -> Any:
    """A label selector with the pod's own ``matchLabelKeys`` and ``mismatchLabelKeys`` in it."""
    spelled = body.get(key)
    if spelled is not None and not isinstance(spelled, Mapping):
        raise BadObjectError(f"{key} is not a selector: {wire.show(spelled)}")
    try:
        compiled = selectors.from_object(spelled)
    except ValueError as error:
        raise BadObjectError(f"{key}: {error}") from error
    if compiled is None or of_pod is None:
        return compiled
    more = list(compiled.labels)
    for name, operator in (
        ("matchLabelKeys", selectors.Operator.IN),
        ("mismatchLabelKeys", selectors.Operator.NOT_IN),
    ):
        more += [
            selectors.Requirement(label, operator, frozenset((of_pod[label],)))
            for label in wire.strings(body, name)
            if label in of_pod
        ]
    return selectors.Compiled(tuple(more))


def pod_term(body: Body, namespace: str, labels: Mapping[str, str]) -> PodTerm:
    """One term of pod affinity or anti-affinity."""
    named = frozenset(wire.strings(body, "namespaces"))
    by_label: selectors.Compiled | None = selector(body, "namespaceSelector")
    if not named and by_label is None:
        named = frozenset((namespace,))
    key = wire.text(body, "topologyKey")
    if not key:
        raise BadObjectError("a pod affinity term without topologyKey")
    return PodTerm(key, named, by_label, selector(body, "labelSelector", labels))


def spread(body: Body, labels: Mapping[str, str]) -> SpreadConstraint:
    """One topology spread constraint."""
    unsatisfiable = wire.text(body, "whenUnsatisfiable", "DoNotSchedule")
    if unsatisfiable not in {"DoNotSchedule", "ScheduleAnyway"}:
        raise BadObjectError(f"whenUnsatisfiable is {unsatisfiable!r}")
    skew = wire.integer(body, "maxSkew", 1)
    if skew < 1:
        raise BadObjectError(f"maxSkew is {skew}, must be positive")
    return SpreadConstraint(
        key=wire.text(body, "topologyKey"),
        skew=min(skew, 2**31),
        hard=unsatisfiable == "DoNotSchedule",
        selector=selector(body, "labelSelector", labels),
        min_domains=max(1, wire.integer(body, "minDomains", 1)),
        honor_affinity=wire.text(body, "nodeAffinityPolicy", "Honor") == "Honor",
        honor_taints=wire.text(body, "nodeTaintsPolicy", "Ignore") == "Honor",
    )
