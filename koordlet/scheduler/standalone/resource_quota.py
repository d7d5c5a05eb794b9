"""ResourceQuotas of a standalone scheduler: what the pods of a namespace may ask for together.

Covers: which pods a quota counts, what they use, the refusal of a new one. Does not cover: quotas
between namespaces, which lend (ElasticQuota), objects other than pods.

Rules, those of an API server:
1. A pod counts until it has ended, by its requests (a limit without a request is one) and limits;
   as an object (``count/pods``) until it is gone.
2. A quota counts the pods that are in all of its scopes; one without scopes counts all.
3. Where a quota limits CPU or memory, each container of a pod that it counts names its amount.
4. Each quota of the namespace must have room for the pod.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from koordlet.kubeapi import objects, refusals
from koordlet.model import qos, resources
from koordlet.model.record import dataclass
from koordlet.scheduler.objects import requests
from koordlet.scheduler.objects.wire import BadObjectError

Body = Mapping[str, Any]

_OBJECTS = "count/pods"
#: What every container has to say where it is limited.
_EXPLICIT = (resources.CPU, resources.MEMORY)
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
_PRIORITY = "PriorityClass"


class BoundedPod:
    """A pod with what it asks for, which is read once for all limits."""

    def __init__(self, body: Body) -> None:
        self.spec = objects.part(body, "spec")
        self.ended = objects.part(body, "status").get("phase") in {"Succeeded", "Failed"}
        try:
            self.asked = requests.of_pod(self.spec, {}, problems=[])
        except BadObjectError as error:
            raise refusals.Invalid(f"spec: {error}") from error


def _best_effort(pod: BoundedPod) -> bool:
    return pod.asked.kube_qos is qos.KubeQos.BEST_EFFORT


def _ends(pod: BoundedPod) -> bool:
    return pod.spec.get("activeDeadlineSeconds") is not None


def _crosses_namespaces(pod: BoundedPod) -> bool:
    affinity = objects.part(pod.spec, "affinity")
    for several in (objects.part(affinity, kind) for kind in ("podAffinity", "podAntiAffinity")):
        terms = [
            *objects.parts(several, "requiredDuringSchedulingIgnoredDuringExecution"),
            *(
                objects.part(wish, "podAffinityTerm")
                for wish in objects.parts(
                    several, "preferredDuringSchedulingIgnoredDuringExecution"
                )
            ),
        ]
        if any(term.get("namespaces") or "namespaceSelector" in term for term in terms):
            return True
    return False


_SCOPES: Mapping[str, Callable[[BoundedPod], bool]] = {
    "BestEffort": _best_effort,
    "NotBestEffort": lambda pod: not _best_effort(pod),
    "Terminating": _ends,
    "NotTerminating": lambda pod: not _ends(pod),
    "CrossNamespacePodAffinity": _crosses_namespaces,
}


@dataclass(frozen=True, slots=True)
class QuotaScope:
    """One condition on the pods of a quota."""

    name: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()

    def covers(self, pod: BoundedPod) -> bool:
        """Whether a pod is in it."""
        if self.name != _PRIORITY:
            return _SCOPES[self.name](pod)
        known = str(pod.spec.get("priorityClassName") or "")
        match self.operator:
            case "Exists":
                return bool(known)
            case "DoesNotExist":
                return not known
            case "In":
                return known in self.values
            case _:
                return known not in self.values


@dataclass(frozen=True, slots=True)
class HardLimit:
    """The most of one resource."""

    #: As the quota spells it.
    name: str
    most: int

    @property
    def resource(self) -> str:
        """The resource of pods that it is about."""
        return self.name.removeprefix("limits.").removeprefix("requests.")

    def taken(self, pod: BoundedPod) -> int:
        """How much of it a pod takes."""
        if self.name == _OBJECTS:
            return 1
        if self.name == "pods" or pod.ended:
            return int(not pod.ended)
        amounts = pod.asked.limits if self.name.startswith("limits.") else pod.asked.real
        return amounts.get(resources.current_name(self.resource), 0)

    def text(self, amount: int) -> str:
        """An amount of it, with its name."""
        return f"{self.name}={resources.canonical({self.resource: amount})[self.resource]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceQuota:
    """What decides of a ResourceQuota."""

    name: str
    limits: tuple[HardLimit, ...] = ()
    scopes: tuple[QuotaScope, ...] = ()
    #: Why it cannot be in force; empty: it is.
    fault: str = ""

    def covers(self, pod: BoundedPod) -> bool:
        """Whether it counts a pod."""
        return all(scope.covers(pod) for scope in self.scopes)


def read(body: Body) -> ResourceQuota:
    """A ResourceQuota; what is not about pods is passed over."""
    spec, name = objects.part(body, "spec"), objects.text(body, "name")
    scopes = [QuotaScope(str(scope)) for scope in objects.listed(spec, "scopes")]
    for entry in objects.parts(objects.part(spec, "scopeSelector"), "matchExpressions"):
        values = tuple(map(str, objects.listed(entry, "values")))
        scopes.append(QuotaScope(str(entry.get("scopeName")), str(entry.get("operator")), values))
    limits, faults = [], list(filter(None, map(_fault, scopes)))
    for spelled, amount in objects.part(spec, "hard").items():
        if amount is None:
            continue  # null takes a limit away
        resource = HardLimit(spelled, 0).resource
        where = f"spec.hard.{spelled.removesuffix(resource)}".rstrip(".")
        amounts = resources.read({resource: amount}, faults, where)
        limits += [HardLimit(spelled, most) for most in amounts.values()]
    fault = "; ".join(faults)
    return ResourceQuota(name=name, limits=tuple(limits), scopes=tuple(scopes), fault=fault)


def _fault(scope: QuotaScope) -> str:
    known = {*_SCOPES, _PRIORITY}
    if scope.name not in known:
        return f"scope {scope.name[:80]!r} is none of {', '.join(sorted(known))}"
    if scope.operator not in _OPERATORS or (scope.name != _PRIORITY and scope.operator != "Exists"):
        return f"scope {scope.name}: operator {scope.operator[:80]!r} is not for it"
    if (scope.operator in {"In", "NotIn"}) != bool(scope.values):
        return f"scope {scope.name}: {len(scope.values)} values with operator {scope.operator}"
    return ""


def check(pod: Body, quotas: Iterable[ResourceQuota], others: Sequence[Body]) -> None:
    """``Forbidden`` where a quota has no room for a pod beside the others of its namespace."""
    asking, counting = BoundedPod(pod), list(map(BoundedPod, others))
    for quota in quotas:
        if not quota.covers(asking):
            continue
        if missing := _missing(asking.spec, quota):
            raise refusals.Forbidden(f"failed quota: {quota.name}: must specify {missing}")
        beside = [other for other in counting if quota.covers(other)]
        over = []
        for limit in quota.limits:
            asks, used = limit.taken(asking), sum(map(limit.taken, beside))
            if asks and asks + used > limit.most:
                over.append((limit, asks, used))
        if over:
            requested = ",".join(limit.text(asks) for limit, asks, _ in over)
            in_use = ",".join(limit.text(used) for limit, _, used in over)
            limited = ",".join(limit.text(limit.most) for limit, _, _ in over)
            raise refusals.Forbidden(
                f"exceeded quota: {quota.name}, requested: {requested}, used: {in_use},"
                f" limited: {limited}",
                fix="end other pods of the namespace, ask for less, or raise the quota",
            )


def _missing(spec: Body, quota: ResourceQuota) -> str:
    """What of its limits which containers leave out."""
    pod_level = objects.part(spec, "resources")

    def without(limit: HardLimit) -> Iterator[str]:
        keys = ("limits",) if limit.name.startswith("limits.") else ("limits", "requests")
        for kind in ("initContainers", "containers"):
            for container in objects.parts(spec, kind):
                own = objects.part(container, "resources")
                if not any(limit.resource in objects.part(own, key) for key in keys):
                    yield str(container.get("name"))

    return "; ".join(
        f"{limit.name} for: {','.join(names)}"
        for limit in sorted(quota.limits, key=lambda limit: limit.name)
        if limit.resource in _EXPLICIT and not pod_level and (names := list(without(limit)))
    )
