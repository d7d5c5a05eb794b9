"""Keys of pods that ask for what this scheduler lacks: quotas, hard hints, resource claims.

Covers: which keys mean that, in every dialect; which namespaces a quota means; the refusal's words.
Does not cover: who is told and when a pod is tried again (``scheduler.loop.core``,
``scheduler.sim.simulation``); gangs, but for the spellings that nothing serves any more.

Rules:
1. A pod that names one is refused by the key's name: one that was placed as if the key were not
   there would be half a gang, or a pod beyond its quota.
2. A pod's quota is that of its label; else that of its Namespace's label or annotation; else an
   ElasticQuota that is named as its namespace and lies in it; else one whose annotation lists the
   namespace. As Koordinator reads it: where an ElasticQuota lies means nothing otherwise.
3. Whom nothing names belongs to Koordinator's default quota. That one, and the system's, bound
   nobody as they are made: they refuse nobody.
4. Preferred nodes of a hint are a wish, and cost nothing to pass over. A hint that cannot be read
   may be a hard one.
5. Labels, annotations and quotas may be ignored on request, for clusters that carry them unused. A
   field of the specification never: the API server refuses those that nothing serves.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from koordlet.model.record import dataclass
from koordlet.scheduler.objects import json_annotations, peer_keys, wire
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.wire import BadObjectError, Body

#: Of ``koordlet scheduler`` and ``koordlet sim``.
OPTION = "--ignore-unknown-scheduling-keys"
#: Annotations of pods that are looked at.
ANNOTATIONS = peer_keys.HINTS

_LACKING = "not supported by this scheduler"
#: They hold everybody who is in no other quota, and are made practically without a bound.
_FOR_EVERYBODY = frozenset({"", "koordinator-default-quota", "koordinator-system-quota"})
#: Koordinator makes them with a fifth of what 64 bits can count.
_UNBOUNDED = (2**63 - 1) // 5 // 1000


def of_fields(spec: Body) -> str:
    """Why a pod of this specification is never placed here; empty where it may be."""
    if spec.get("resourceClaims"):
        return f"resource claims (spec.resourceClaims) are {_LACKING}"
    if spec.get("workloadRef"):
        return f"pod groups (spec.workloadRef) are {_LACKING}"
    return ""


def of_keys(labels: Mapping[str, str], annotations: Mapping[str, str]) -> dict[str, str]:
    """What a pod's labels and annotations ask for, in words, by what it is that we lack."""
    asked: dict[str, str] = {}
    if gang := labels.get(peer_keys.RENAMED_GANG):
        asked["gang"] = f"gang {wire.show(gang)} (label {peer_keys.RENAMED_GANG})"
    quota = labels.get(peer_keys.QUOTA, "")
    if quota not in _FOR_EVERYBODY:
        asked["quota"] = f"quota {wire.show(quota)} (label {peer_keys.QUOTA})"
    for key in peer_keys.HINTS:
        if why := _hard(annotations, key):
            asked.setdefault("hint", why)
    return asked


def of_bodies(bodies: Iterable[Body]) -> Iterator[dict[str, str]]:
    """What each pod among these objects asks for; what cannot be read asks for nothing."""
    quotas, pods = ElasticQuotas(), []
    for body in bodies:
        try:
            meta = wire.mapping(body, "metadata")
            if body.get("kind") == "Pod":
                pods.append((wire.text(meta, "namespace"), wire.labels(meta), _notes(meta)))
            elif body.get("kind") == "ElasticQuota":
                quotas.put(quota(body))
            elif body.get("kind") == "Namespace":
                quotas.name(wire.text(meta, "name"), named_by(meta))
        except BadObjectError:
            continue
    for namespace, labels, notes in pods:
        by_namespace = {} if labels.get(peer_keys.QUOTA) else quotas.of(namespace or "default")
        yield {**by_namespace, **of_keys(labels, notes)}


def _hard(annotations: Mapping[str, str], key: str) -> str:
    """The nodes that a hint restricts its pod to, in words; empty where it restricts to none."""
    try:
        hint = json_annotations.meant(annotations, key, {"nodeNames": None})
    except BadObjectError as error:
        return f"a scheduling hint that cannot be read ({error})"
    return (
        f"a hard scheduling hint (nodeNames of annotation {key})" if hint.get("nodeNames") else ""
    )


def refusal(asked: Mapping[str, str]) -> str:
    """What is asked for as a message, with the way out; empty where nothing is."""
    if not asked:
        return ""
    verb = "is" if len(asked) == 1 else "are"
    return (
        f"{' and '.join(asked.values())} {verb} {_LACKING}; {OPTION} places such pods all the same"
    )


@dataclass(frozen=True, slots=True)
class UnservedQuota:
    """An ElasticQuota: which namespaces it means."""

    namespace: str
    name: str
    #: Of its annotation.
    listed: frozenset[str] = frozenset()
    #: The first resource that it bounds, with the bound; empty where it bounds none.
    bound: str = ""

    @property
    def means(self) -> frozenset[str]:
        """The namespaces whose pods are in it."""
        if self.name in _FOR_EVERYBODY:
            return frozenset()
        own = {self.name} if self.name == self.namespace else set()
        return self.listed | own

    @property
    def warning(self) -> str:
        """What is worth saying of one that refuses nobody although it bounds everybody."""
        if self.name not in _FOR_EVERYBODY or not self.bound:
            return ""
        return (
            f"ElasticQuota {self.name} bounds pods without a quota ({self.bound}), uncounted here"
        )


def quota(body: Body) -> UnservedQuota:
    """An ElasticQuota from its JSON; nonsense in its annotation lists nobody."""
    meta = wire.mapping(body, "metadata")
    names = json_annotations.decoded(_notes(meta).get(peer_keys.QUOTA_NAMESPACES))
    listed = names if isinstance(names, list) else []
    most = wire.mapping(wire.mapping(body, "spec"), "max")
    return UnservedQuota(
        namespace=wire.text(meta, "namespace") or "default",
        name=wire.text(meta, "name"),
        listed=frozenset(name for name in listed if isinstance(name, str)),
        bound=next((f"{key}: {amount}" for key, amount in most.items() if _bounds(amount)), ""),
    )


def _bounds(amount: object) -> bool:
    digits = str(amount)
    return not digits.isdecimal() or int(digits) < _UNBOUNDED


def named_by(meta: Body) -> str:
    """The quota that a Namespace names for its pods; empty where it names none."""
    for where, body in (("label", wire.labels(meta)), ("annotation", _notes(meta))):
        name = str(body.get(peer_keys.QUOTA) or "")
        if name not in _FOR_EVERYBODY:
            return f"quota {wire.show(name)} ({where} {peer_keys.QUOTA} of the namespace)"
    return ""


def _notes(meta: Body) -> dict[str, str]:
    return {key: str(value) for key, value in wire.mapping(meta, "annotations").items()}


class ElasticQuotas:
    """Which namespaces' pods are in a quota, of all ElasticQuotas and Namespaces."""

    def __init__(self) -> None:
        self._quotas: dict[tuple[str, str], UnservedQuota] = {}
        #: By namespace: what its own object says, and the quotas that mean it.
        self._named: dict[str, str] = {}
        self._means: dict[str, list[UnservedQuota]] = {}

    def put(self, elastic_quota: UnservedQuota) -> None:
        """A quota comes, or changes."""
        self.drop(elastic_quota)
        self._quotas[elastic_quota.namespace, elastic_quota.name] = elastic_quota
        for namespace in elastic_quota.means:
            self._means.setdefault(namespace, []).append(elastic_quota)

    def drop(self, elastic_quota: UnservedQuota) -> None:
        """A quota goes."""
        known = self._quotas.pop((elastic_quota.namespace, elastic_quota.name), None)
        if known is None:
            return
        for namespace in known.means:
            self._means[namespace].remove(known)
            if not self._means[namespace]:
                del self._means[namespace]

    def name(self, namespace: str, words: str) -> bool:
        """What a Namespace says for its pods (``named_by``); whether that is new."""
        before = self._named.pop(namespace, "")
        if words:
            self._named[namespace] = words
        return before != words

    def of(self, namespace: str) -> dict[str, str]:
        """The quota of a namespace's pods in words, as ``of_keys`` has it."""
        if words := self._named.get(namespace):
            return {"quota": words}
        several = self._means.get(namespace)
        if not several:
            return {}
        quota = next((quota for quota in several if quota.name == namespace), several[0])
        how = "lists" if namespace in quota.listed else "is named as"
        where = f"ElasticQuota {quota.namespace}/{quota.name} {how} namespace {namespace}"
        return {"quota": f"quota {wire.show(quota.name)} ({where})"}


class UnservedKeys:
    """Whether a pod may be tried at all."""

    def __init__(self, *, ignores_keys: bool = False) -> None:
        self.ignores_keys = ignores_keys
        self.quotas = ElasticQuotas()

    def of_class(
        self, labels: Mapping[str, str], annotations: Mapping[str, str], spec: Body
    ) -> str:
        """Why a pod of a class is never tried, by what it says itself."""
        return of_fields(spec) or (
            "" if self.ignores_keys else refusal(of_keys(labels, annotations))
        )

    def why(self, pod: Pod) -> str:
        """Why a pod is not tried now: what its class says, else its namespace's quota."""
        if (
            pod.pod_class.unsupported
            or self.ignores_keys
            or pod.pod_class.labels.get(peer_keys.QUOTA)
        ):
            return pod.pod_class.unsupported
        return refusal(self.quotas.of(pod.namespace))
