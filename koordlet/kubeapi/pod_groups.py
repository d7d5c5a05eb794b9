"""Gangs as objects spell them: what a pod says of its gang, and both kinds of PodGroup.

Covers: the keys of every form, their defaults, which form counts. Does not cover: counting members
and deciding (``scheduler.gangs``).

Rules:
1. Of several forms on a pod the first of ``GangForm`` counts: it is the name, the namespace is the
   pod's.
2. What cannot be read is as if it were missing, with a problem each; a minimum that cannot be read
   is ``None``, never 0: a pod of such a gang must not pass alone.
3. Whole numbers are Go's: ASCII digits with a sign, within 32 bits.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from koordlet.kubeapi import shapes
from koordlet.model import moment
from koordlet.model.record import dataclass

#: Labels of pods: the name of a PodGroup; the name and the minimum of a group without an object.
POD_GROUP = "pod-group.scheduling.sigs.k8s.io"
LIGHT_NAME = f"{POD_GROUP}/name"
LIGHT_MINIMUM = f"{POD_GROUP}/min-available"
_MATCH_ALIAS = f"{POD_GROUP}/match-policy"
GANG_PREFIX = "gang.scheduling.koordinator.sh/"
#: Annotations of pods (name, minimum, waiting time); the others also of PodGroups.
GANG_NAME = f"{GANG_PREFIX}name"
GANG_MINIMUM = f"{GANG_PREFIX}min-available"
WAITING_TIME = f"{GANG_PREFIX}waiting-time"
TOTAL = f"{GANG_PREFIX}total-number"
MODE = f"{GANG_PREFIX}mode"
GROUPS = f"{GANG_PREFIX}groups"
MATCH_POLICY = f"{GANG_PREFIX}match-policy"
TOPOLOGY_SPEC = f"{GANG_PREFIX}network-topology-spec"
TOPOLOGY_INDEX = f"{GANG_PREFIX}network-topology-index"
TOPOLOGY_SELECTOR = "scheduling.koordinator.sh/network-topology-selector"

NATIVE_GROUP = "scheduling.k8s.io"
_WHOLE = re.compile(r"[+-]?[0-9]+")
_INT32 = 2**31
_LAYER = {
    "layer": ("layer", shapes.text),
    "strategy": ("strategy", shapes.choice("MustGather", "PreferGather")),
    "multiple": ("podCountMultiple", shapes.integer(1, _INT32 - 1)),
}


class GangForm(enum.Enum):
    """Where a pod names its gang, the form that counts first."""

    NATIVE = "spec.schedulingGroup.podGroupName"
    POD_GROUP = f"label {POD_GROUP}"
    LIGHT = f"label {LIGHT_NAME}"
    ANNOTATION = f"annotation {GANG_NAME}"

    @property
    def has_object(self) -> bool:
        """Whether a PodGroup of that name must exist."""
        return self is GangForm.POD_GROUP or self is GangForm.NATIVE


class MatchPolicy(enum.Enum):
    """Which members count towards the minimum."""

    ONLY_WAITING = "only-waiting"
    WAITING_AND_RUNNING = "waiting-and-running"
    ONCE_SATISFIED = "once-satisfied"


@dataclass(frozen=True, slots=True)
class GatherLayer:
    """How the members of a gang are gathered below the nodes of one topology layer."""

    layer: str
    strategy: str
    multiple: int = 1

    @property
    def must(self) -> bool:
        """Whether all members must share one place of the layer."""
        return self.strategy == "MustGather"


@dataclass(frozen=True, slots=True, kw_only=True)
class GangAnnotations:
    """What the annotations of a pod or of a PodGroup say of a gang."""

    total: int = 0
    strict: bool = True
    #: ``None``: the default of the configuration.
    match_policy: MatchPolicy | None = None
    #: Ids of gangs that are satisfied together, as they are spelled.
    groups: tuple[str, ...] = ()
    gather: tuple[GatherLayer, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """What a pod says of its gang."""

    namespace: str
    name: str
    form: GangForm
    #: Of a gang without an object; ``None``: missing, or unreadable.
    minimum: int | None = None
    #: Of a gang without an object; 0: the default.
    wait_seconds: float = 0.0
    annotations: GangAnnotations = field(default_factory=GangAnnotations)
    #: Its place among the members; ``None``: it has none.
    index: int | None = None
    #: Members with equal texts attract each other.
    selector: str = ""
    #: Other forms that it has and that do not count.
    ignored: tuple[GangForm, ...] = ()
    #: Whether it names a PodGroup of Kubernetes' own kind.
    native: bool = field(init=False)
    #: Whether a PodGroup of that name must exist.
    has_object: bool = field(init=False)
    #: The gang among all gangs: those of Kubernetes' own kind have names of their own.
    key: str = field(init=False)

    def __post_init__(self) -> None:
        # Asked for each pod in each decision.
        object.__setattr__(self, "native", self.form is GangForm.NATIVE)
        object.__setattr__(self, "has_object", self.form.has_object)
        object.__setattr__(self, "key", gang_key(self.id, native=self.native))

    @property
    def id(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """A PodGroup, of the peers' kind or of Kubernetes' own."""

    namespace: str
    name: str
    uid: str = ""
    native: bool = False
    #: ``None``: unreadable.
    minimum: int | None = 0
    #: 0: the default.
    wait_seconds: float = 0.0
    #: A resource list, as it is spelled.
    min_resources: Mapping[str, Any] = field(default_factory=dict)
    annotations: GangAnnotations = field(default_factory=GangAnnotations)
    #: Of Kubernetes' own kind: the label whose value all members must share.
    topology_key: str = ""
    priority: int | None = None
    #: Whether its pods are preempted all together or not at all.
    whole: bool = False
    created: str = ""
    generation: int = 0
    #: The stored status, for the writer of statuses.
    status: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"

    @property
    def key(self) -> str:
        """The gang among all gangs, as ``Membership.key`` has it."""
        return gang_key(self.id, native=self.native)


def gang_key(gang_id: str, *, native: bool) -> str:
    """The key of a gang: its id, marked where it is of Kubernetes' own kind."""
    return f"{gang_id}@{NATIVE_GROUP}" if native else gang_id


def membership(
    namespace: str, labels: Mapping[str, Any], notes: Mapping[str, Any], spec: Mapping[str, Any]
) -> Membership | None:
    """What a pod says of its gang; ``None``: it is of none."""
    own = spec.get("schedulingGroup")
    names = (
        (GangForm.NATIVE, own.get("podGroupName") if isinstance(own, Mapping) else None),
        (GangForm.POD_GROUP, labels.get(POD_GROUP)),
        (GangForm.LIGHT, labels.get(LIGHT_NAME)),
        (GangForm.ANNOTATION, notes.get(GANG_NAME)),
    )
    forms = [(form, name) for form, name in names if name]
    if not forms:
        return None
    form, name = forms[0]
    index = whole(notes.get(TOPOLOGY_INDEX))
    common: dict[str, Any] = {
        "namespace": namespace,
        "name": str(name),
        "form": form,
        "index": index,
        "selector": str(notes.get(TOPOLOGY_SELECTOR) or ""),
        # Forms 3 and 4 of one name are one gang: neither is in vain.
        "ignored": tuple(other for other, its in forms[1:] if its != name),
    }
    if form.has_object:
        return Membership(**common)
    minimum = labels.get(LIGHT_MINIMUM)
    return Membership(
        **common,
        minimum=whole(notes.get(GANG_MINIMUM) if minimum is None else minimum),
        wait_seconds=_wait(notes.get(WAITING_TIME)),
        annotations=gang_annotations(notes),
    )


def pod_group(body: Mapping[str, Any]) -> PodGroup:
    """A PodGroup of either kind, by its ``apiVersion``."""
    problems: list[str] = []
    meta, spec = shapes.section(body, "metadata", problems), shapes.section(body, "spec", problems)
    native = str(body.get("apiVersion", "")).startswith(f"{NATIVE_GROUP}/")
    common: dict[str, Any] = {
        "namespace": str(meta.get("namespace") or "default"),
        "name": str(meta.get("name") or ""),
        "uid": str(meta.get("uid") or ""),
        "created": str(meta.get("creationTimestamp") or ""),
        "generation": _number(meta.get("generation")) or 0,
        "status": shapes.section(body, "status", problems),
    }
    if native:
        return PodGroup(**common, native=True, **_native(spec, problems))
    seconds = _number(spec.get("scheduleTimeoutSeconds")) or 0
    notes = shapes.section(meta, "annotations", problems)
    return PodGroup(
        **common,
        minimum=None if problems else _number(spec.get("minMember") or 0),
        wait_seconds=float(max(0, seconds)),
        min_resources=shapes.section(spec, "minResources", problems),
        annotations=gang_annotations(notes),
    )


def _native(spec: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    policy = shapes.section(spec, "schedulingPolicy", problems)
    gang = policy.get("gang")
    limits = shapes.section(spec, "schedulingConstraints", problems)
    keys = [str(term.get("key") or "") for term in shapes.sections(limits, "topology", problems)]
    minimum: int | None = 0
    if gang is not None or "basic" not in policy:
        minimum = _number(gang.get("minCount")) if isinstance(gang, Mapping) else None
    return {
        "minimum": minimum,
        "topology_key": keys[0] if keys else "",
        "priority": _number(spec.get("priority")),
        "whole": spec.get("disruptionMode") == "PodGroup",
        "annotations": GangAnnotations(match_policy=MatchPolicy.WAITING_AND_RUNNING),
    }


def gang_annotations(notes: Mapping[str, Any]) -> GangAnnotations:
    """What annotations say of a gang; rule 2."""
    problems: list[str] = []
    mode = notes.get(MODE)
    if mode not in {None, "", "Strict", "NonStrict"}:
        problems.append(f"annotation {MODE}: expected Strict or NonStrict, found {mode!r:.60}")
    spelled = notes.get(MATCH_POLICY) or notes.get(_MATCH_ALIAS)
    policy = next((policy for policy in MatchPolicy if policy.value == spelled), None)
    if spelled and policy is None:
        words = ", ".join(policy.value for policy in MatchPolicy)
        problems.append(
            f"annotation {MATCH_POLICY}: expected one of {words}, found {spelled!r:.60}"
        )
    names, unread = _names(str(notes.get(GROUPS) or "[]"))
    problems += [f"annotation {GROUPS}: {problem}" for problem in unread]
    return GangAnnotations(
        total=whole(notes.get(TOTAL)) or 0,
        strict=mode != "NonStrict",
        match_policy=policy,
        groups=names,
        gather=_gather(notes, problems),
        problems=tuple(problems),
    )


@functools.lru_cache(maxsize=64)
def _names(spelled: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The texts of a JSON list, and problems; one that does not fit costs the list, as in Go.

    All gangs of a group carry the same list, which may be long: it is read and kept once.
    """
    problems: list[str] = []
    names: tuple[str, ...] = ()
    try:
        names = shapes.listing(shapes.text)(shapes.parse(spelled), problems)
    except ValueError as error:
        problems.append(str(error))
    return () if problems else tuple(dict.fromkeys(filter(None, names))), tuple(problems)


def _gather(notes: Mapping[str, Any], problems: list[str]) -> tuple[GatherLayer, ...]:
    inner: list[str] = []
    layers: tuple[GatherLayer, ...] = ()
    try:
        if spelled := notes.get(TOPOLOGY_SPEC):
            body = shapes.mapping(shapes.parse(str(spelled)))
            layer = shapes.record(GatherLayer, **_LAYER)
            layers = shapes.listing(layer)(shapes.find(body, "gatherStrategy") or [], inner)
    except ValueError as error:
        inner.append(str(error))
    problems += [f"annotation {TOPOLOGY_SPEC}: {problem}" for problem in inner]
    return layers


def whole(spelled: object) -> int | None:
    """A whole number by rule 3; ``None`` where a text is none."""
    text = str(spelled) if spelled is not None and not isinstance(spelled, bool) else ""
    if not _WHOLE.fullmatch(text) or len(text) > len("-0002147483648"):
        return None
    number = int(text)
    return number if -_INT32 <= number < _INT32 else None


def _number(value: object) -> int | None:
    """A field of an object that is a whole number of 32 bits."""
    fits = isinstance(value, int) and not isinstance(value, bool) and -_INT32 <= value < _INT32
    return int(str(value)) if fits else None


def _wait(spelled: object) -> float:
    try:
        return max(0.0, moment.duration(spelled)) if spelled else 0.0
    except ValueError:
        return 0.0
