"""What an API server makes of a new pod before it stores it, beyond defaults.

Covers: RuntimeClass, ``matchLabelKeys`` and ``mismatchLabelKeys`` merged into selectors, the
switches of ``--enable-admission-plugins``. Does not cover: priorities and other defaults
(``process.standalone_pods``), what is refused of its fields (``kubeapi.validation``), quotas.

Pods that an API server has stored come back unchanged: each step is a no-op on its own result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from koordlet.kubeapi import objects, refusals
from koordlet.model import resources

Body = Mapping[str, Any]
Spec = dict[str, Any]

_HOSTNAME = "kubernetes.io/hostname"
_NEEDS = "requiredDuringSchedulingIgnoredDuringExecution"
_WISHES = "preferredDuringSchedulingIgnoredDuringExecution"
_TERMS = ("podAffinity", "podAntiAffinity")
_MERGED = (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn"))


def with_runtime_class(spec: Spec, runtime_class: Body) -> Spec:
    """The overhead, the node labels and the tolerations of the pod's class; empty: it has none."""
    overhead = objects.part(objects.part(runtime_class, "overhead"), "podFixed")
    own = spec.get("overhead")
    if own is not None and _amounts(own) != _amounts(overhead):
        raise refusals.Invalid(
            "spec.overhead: is not that of the RuntimeClass", fix="leave it out: it is added"
        )
    scheduling = objects.part(runtime_class, "scheduling")
    wanted, chosen = objects.part(scheduling, "nodeSelector"), objects.part(spec, "nodeSelector")
    for key in wanted:
        if chosen.get(key, wanted[key]) != wanted[key]:
            raise refusals.Forbidden(
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {wanted[key]};"
                f" pod.spec.nodeSelector[{key}] = {chosen[key]}"
            )
    return {
        **spec,
        **({"overhead": dict(overhead)} if overhead else {}),
        **({"nodeSelector": {**chosen, **wanted}} if wanted else {}),
        **_tolerating(spec, objects.parts(scheduling, "tolerations")),
    }


def with_label_keys(spec: Spec, labels: Body) -> Spec:
    """The pod's own labels in the selectors of its terms and constraints that name their keys."""
    merged = dict(spec)
    if spread := objects.parts(spec, "topologySpreadConstraints"):
        path = "spec.topologySpreadConstraints"
        merged["topologySpreadConstraints"] = _all(spread, path, labels)
    affinity = dict(objects.part(spec, "affinity"))
    for kind in _TERMS:
        several = dict(objects.part(affinity, kind))
        path = f"spec.affinity.{kind}"
        if needs := objects.parts(several, _NEEDS):
            several[_NEEDS] = _all(needs, f"{path}.{_NEEDS}", labels)
        if wishes := objects.parts(several, _WISHES):
            terms = [objects.part(wish, "podAffinityTerm") for wish in wishes]
            pairs = zip(wishes, _all(terms, f"{path}.{_WISHES}", labels), strict=True)
            several[_WISHES] = [{**wish, "podAffinityTerm": term} for wish, term in pairs]
        if several:
            merged["affinity"] = affinity = {**affinity, kind: several}
    return merged


def _all(terms: Sequence[Body], path: str, labels: Body) -> list[Body]:
    return [_merged(term, f"{path}[{place}]", labels) for place, term in enumerate(terms)]


def _merged(term: Body, path: str, labels: Body) -> Body:
    if not isinstance(term.get("labelSelector"), Mapping):
        return term
    selector = objects.part(term, "labelSelector")
    expressions = objects.parts(selector, "matchExpressions")
    taken = {expression.get("key") for expression in expressions}
    taken |= objects.part(selector, "matchLabels").keys()
    more: list[Body] = []
    for field, operator in _MERGED:
        for key in map(str, objects.listed(term, field)):
            wanted = {"key": key, "operator": operator, "values": [labels.get(key)]}
            if key not in labels or wanted in expressions:
                continue
            if key in taken:
                raise refusals.Invalid(f"{path}.{field}: labelSelector has the key {key!r} as well")
            more.append(wanted)
    if not more:
        return term
    return {**term, "labelSelector": {**selector, "matchExpressions": [*expressions, *more]}}


def _extended_resource_toleration(spec: Spec) -> Spec:
    """ExtendedResourceToleration: whoever asks for x/y tolerates the taint x/y."""
    names = {
        name
        for container in _containers(spec)
        for name in objects.part(objects.part(container, "resources"), "requests")
        if "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")
    }
    return spec | _tolerating(spec, [{"key": name, "operator": "Exists"} for name in sorted(names)])


def _limit_pod_hard_anti_affinity_topology(spec: Spec) -> Spec:
    """LimitPodHardAntiAffinityTopology: nobody keeps others off more than one node."""
    anti = objects.part(objects.part(spec, "affinity"), "podAntiAffinity")
    for path, term in objects.each(anti, f"spec.affinity.podAntiAffinity.{_NEEDS}"):
        if term.get("topologyKey") != _HOSTNAME:
            raise refusals.Forbidden(
                f"{path}.topologyKey: {str(term.get('topologyKey'))[:100]!r} is not allowed here",
                fix=f"use {_HOSTNAME}, or prefer it instead of requiring it",
            )
    return spec


#: Admission plugins of Kubernetes that are off unless they are enabled by name.
SWITCHES = {
    "ExtendedResourceToleration": _extended_resource_toleration,
    "LimitPodHardAntiAffinityTopology": _limit_pod_hard_anti_affinity_topology,
}


def _containers(spec: Body) -> Iterator[Body]:
    for several in ("initContainers", "containers"):
        yield from objects.parts(spec, several)


def _tolerating(spec: Body, more: Sequence[Body]) -> Spec:
    """The tolerations of a pod with some more; nothing where it has them all."""
    has = objects.listed(spec, "tolerations")
    added = [dict(toleration) for toleration in more if toleration not in has]
    return {"tolerations": [*has, *added]} if added else {}


def _amounts(body: object) -> dict[str, int]:
    return resources.read(body, [], "overhead") if isinstance(body, Mapping) else {}
