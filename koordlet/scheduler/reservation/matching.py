"""Whether a pod may use a reservation: owners, affinity, taints, exact amounts.

Covers: the rules for one pod and one reservation that is bound to a node; the message that counts
the reservations that select a pod and do not serve it, in Koordinator's words and order:

    2 Reservation(s) is unschedulable, 1 Reservation(s) for node reason that Insufficient memory by
    node, 3 Reservation(s) matched owner total

Does not cover: whether there is room (``fit``), finding reservations among many (``claims``).

The order of the rules: owners; then, where the pod names a reservation, only its name and the exact
amounts; otherwise schedulability, taints, selectors, exact amounts.

Decided here, where the peer's rules are silent or look accidental:
1. A pod without a reservation affinity bears a reservation's taints by its own tolerations, as the
   manual says that pods must; the peer skips taints for such pods.
2. A resource that ``exact-match-reservation`` names and neither side has is equal on both sides;
   the peer ends the comparison there, and what comes later in the list is not looked at.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterable, Mapping

from koordlet.model.record import dataclass
from koordlet.scheduler.framework import Verdict
from koordlet.scheduler.objects import json_annotations, terms, wire
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.reservation import keys
from koordlet.scheduler.reservation.info import ReservationInfo
from koordlet.scheduler.reservation.spec import OwnerPattern, ReservationOwner, ReservationSpec

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_REQUIREMENTS = [dict.fromkeys(("key", "operator", "values"))]
_AFFINITY_STRUCTURE = {
    "name": None,
    "reservationSelector": None,
    _REQUIRED: {
        "reservationSelectorTerms": [
            {"matchExpressions": _REQUIREMENTS, "matchFields": _REQUIREMENTS}
        ]
    },
    "tolerations": [dict.fromkeys(("key", "operator", "value", "effect"))],
}


@dataclass(frozen=True, slots=True)
class Affinity:
    """The reservation affinity of a pod."""

    name: str = ""
    labels: Mapping[str, str] | None = None
    #: ``None``: no terms were given; empty: nothing can match.
    required: tuple[terms.NodeTerm, ...] | None = None
    tolerations: tuple[terms.Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class ReservationDemand:
    """What a pod class requires of reservations."""

    affinity: Affinity | None = None
    exact: tuple[str, ...] = ()
    ignores: bool = False


class Mismatch(enum.StrEnum):
    """Why an owner may not use a reservation, in the words of the peer's messages."""

    NAME = "didn't match the requested reservation name"
    UNSCHEDULABLE = "is unschedulable"
    TAINT = "had untolerated taint"
    AFFINITY = "didn't match affinity rules"
    EXACT = "is not exact matched"


_TOTAL = "matched owner total"
#: How a reason begins that is about a reservation and not about its node.
ABOUT = "Reservation(s) "
_EXACT_NAME = "exactly matches the requested reservation name"
#: The order of the peer's sentence.
_ORDER = (Mismatch.NAME, Mismatch.AFFINITY, Mismatch.UNSCHEDULABLE, Mismatch.EXACT)


def wish(pod_class: PodClass) -> ReservationDemand:
    """The demand of a class; ``BadObjectError`` where an annotation cannot be read."""
    return ReservationDemand(
        affinity=_affinity(pod_class.annotations),
        exact=wire.strings(
            json_annotations.meant(pod_class.annotations, keys.EXACT, {"resourceNames": None}),
            "resourceNames",
        ),
        ignores=pod_class.labels.get(keys.IGNORED) == "true",
    )


def _affinity(annotations: Mapping[str, str]) -> Affinity | None:
    if not annotations.get(keys.AFFINITY):
        return None
    body = json_annotations.meant(annotations, keys.AFFINITY, _AFFINITY_STRUCTURE)
    needed = wire.bodies(wire.mapping(body, _REQUIRED), "reservationSelectorTerms")
    return Affinity(
        name=wire.text(body, "name"),
        labels=wire.labels(body, "reservationSelector") or None,
        required=None if body.get(_REQUIRED) is None else tuple(map(terms.node_term, needed)),
        tolerations=tuple(map(terms.toleration, wire.bodies(body, "tolerations"))),
    )


def owned(spec: ReservationSpec, pod: Pod) -> bool:
    """Whether a pod matches any owner entry."""
    return not spec.fault and any(owns(owner, pod) for owner in spec.owners)


def owns(owner: ReservationOwner, pod: Pod) -> bool:
    """Whether a pod matches one owner entry."""
    wanted = owner.object
    if wanted is not None and not (
        wanted.uid in {"", pod.uid}
        and wanted.name in {"", pod.name}
        and wanted.namespace in {"", pod.namespace}
        and wanted.api_version in {"", "v1"}
    ):
        return False
    if owner.controller is not None and not _controls(owner.controller, pod):
        return False
    return owner.selector is None or terms.holds(owner.selector, pod.pod_class.labels)


def _controls(wanted: OwnerPattern, pod: Pod) -> bool:
    if wanted.namespace not in {"", pod.namespace}:
        return False
    return any(
        wanted.controller in {None, reference.controller}
        and wanted.uid in {"", reference.uid}
        and wanted.name in {"", reference.name}
        and wanted.kind in {"", reference.kind}
        and wanted.api_version in {"", reference.api_version}
        for reference in pod.pod_class.references
    )


def mismatch(
    spec: ReservationSpec, pod: Pod, wanted: ReservationDemand, node_labels: Mapping[str, str]
) -> Mismatch | None:
    """Why an owner may not use a reservation; ``None``: it may."""
    plain = wanted.affinity is None and not wanted.exact
    if plain and not (spec.unschedulable or spec.deleting or spec.taints):
        return None
    return _mismatch(spec, pod, wanted, node_labels)


def _mismatch(
    spec: ReservationSpec, pod: Pod, wanted: ReservationDemand, node_labels: Mapping[str, str]
) -> Mismatch | None:
    affinity = wanted.affinity
    if affinity is not None and affinity.name:
        if affinity.name != spec.name:
            return Mismatch.NAME
    else:
        bears = affinity.tolerations if affinity is not None else ()
        if (spec.unschedulable or spec.deleting) and not terms.tolerated(bears, terms.CORDONED):
            return Mismatch.UNSCHEDULABLE
        if untolerated(spec, pod, wanted):
            return Mismatch.TAINT
        if affinity is not None and not _selected(affinity, spec, node_labels):
            return Mismatch.AFFINITY
    asked, has = pod.pod_class.requests.real, spec.allocatable
    if any(asked.get(name, 0) != has.get(name, 0) for name in wanted.exact):
        return Mismatch.EXACT
    return None


def untolerated(spec: ReservationSpec, pod: Pod, wanted: ReservationDemand) -> str:
    """The first taint that a pod does not tolerate, for the message; empty: none."""
    affinity = wanted.affinity
    bears = pod.pod_class.tolerations if affinity is None else affinity.tolerations
    hard = (taint for taint in spec.taints if taint.effect in terms.HARD)
    borne = (f"{{{t.key}: {t.value}}}" for t in hard if not terms.tolerated(bears, t))
    return next(borne, "")


def _selected(affinity: Affinity, spec: ReservationSpec, node_labels: Mapping[str, str]) -> bool:
    """Whether the affinity selects the labels of the node and of the reservation over them."""
    labels = {**node_labels, **spec.labels}
    wanted = affinity.labels or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    if affinity.required is None:
        return True
    return any(terms.fulfils(term, spec.name, labels) for term in affinity.required)


def refusal(
    pod: Pod,
    wish: ReservationDemand,
    several: Iterable[tuple[ReservationInfo, Mapping[str, str]]],
    refused: Mapping[str, Verdict],
) -> str:
    """The message; empty where no reservation selects a pod that asks for none.

    ``several`` are reservations that may be drawn on, with the labels of their nodes; ``refused``
    the verdicts by node. Each of their reasons that is about a reservation explains one of those on
    the node, and the others all that are left.
    """
    mismatches: Counter[Mismatch] = Counter()
    taints: Counter[str] = Counter()
    matching: Counter[str] = Counter()
    total = named = 0
    for info, labels in several:
        if not owned(info.spec, pod):
            continue
        total += 1
        why = mismatch(info.spec, pod, wish, labels)
        named += why is None and wish.affinity is not None and bool(wish.affinity.name)
        if why is Mismatch.TAINT:
            taints[untolerated(info.spec, pod, wish)] += 1
        elif why is not None:
            mismatches[why] += 1
        else:
            matching[info.node] += 1
    if not total:
        return "" if wish.affinity is None else f"0 Reservation(s) {_TOTAL}"
    nodes = _node_reasons(matching, refused)
    counted: list[tuple[int, str]] = [
        (named, _EXACT_NAME),
        *((mismatches[mismatch], mismatch) for mismatch in _ORDER),
        *((count, f"{Mismatch.TAINT} {taint}") for taint, count in sorted(taints.items())),
        *((count, f"for node reason that {reason}") for reason, count in sorted(nodes.items())),
        (total, _TOTAL),
    ]
    return ", ".join(f"{count} Reservation(s) {why}" for count, why in counted if count)


def _node_reasons(matching: Mapping[str, int], refused: Mapping[str, Verdict]) -> Counter[str]:
    """For how many reservations a reason of their node holds; ``matching``: of each node."""
    counted: Counter[str] = Counter()
    for node, count in matching.items():
        verdict = refused.get(node)
        reasons = verdict.reasons if verdict is not None else ()
        left = count - sum(reason.startswith(ABOUT) for reason in reasons)
        for reason in reasons if left > 0 else ():
            if not reason.startswith(ABOUT):
                counted[reason] += left
    return counted
