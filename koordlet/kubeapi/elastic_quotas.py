"""Elastic quotas as objects spell them: ElasticQuota and ElasticQuotaProfile.

Covers: every field and key of both kinds, their defaults. Does not cover: whether a quota agrees
with the others (``scheduler.quotas.validation``), sharing and counting (``scheduler.quotas``).

Rules:
1. An object that cannot be read as a quota has ``errors``, and no such version is ever in force.
   What is merely passed over has a ``problem``.
2. Amounts are those of ``model.resources``, with any sign: a negative one is for the validation.
3. A shared weight that is missing, unreadable or zero throughout is the maximum; of a name that it
   leaves out, the maximum of that name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from fractions import Fraction
from typing import Any

from koordlet.kubeapi import kinds, selectors, shapes
from koordlet.model import quantity, resources
from koordlet.model.record import dataclass

_PREFIX = "quota.scheduling.koordinator.sh/"
#: Labels of quotas.
PARENT = f"{_PREFIX}parent"
IS_PARENT = f"{_PREFIX}is-parent"
LENDS = f"{_PREFIX}allow-lent-resource"
TREE_ID = f"{_PREFIX}tree-id"
IS_ROOT = f"{_PREFIX}is-root"
IGNORES_DEFAULT_TREE = f"{_PREFIX}ignore-default-tree"
FORCES_UPDATE = f"{_PREFIX}allow-force-update"
PROFILE = f"{_PREFIX}profile"
#: Annotations of quotas that their owners write.
WEIGHT = f"{_PREFIX}shared-weight"
NAMESPACES = f"{_PREFIX}namespaces"
ADMISSION = f"{_PREFIX}admission"
TOTAL = f"{_PREFIX}total-resource"
UNSCHEDULABLE = f"{_PREFIX}unschedulable-resource"
STRICT_KEYS = f"{_PREFIX}max-strict-check-resource-keys"
#: Ours: what pods of a priority and above may use together; whether pods leave the tree's nodes;
#: the condition that the scheduler writes: what is wrong with the object, and what is in force.
MAX_BY_PRIORITY = "koordlet.io/max-by-priority"
QUOTA_NODES = "koordlet.io/quota-nodes"
INVALID = "koordlet.io/invalid"
#: Annotation of a profile.
RESOURCE_KEYS = f"{_PREFIX}resource-keys"
#: Labels of pods.
NAME = f"{_PREFIX}name"
PREEMPTIBLE = f"{_PREFIX}preemptible"

#: Annotations of quotas that the scheduler writes, by the amount that each holds.
REPORTED = {
    amount: f"{_PREFIX}{amount}"
    for amount in (
        *("runtime", "request", "child-request", "guaranteed", "allocated"),
        *("non-preemptible-request", "non-preemptible-used"),
    )
}

ROOT, DEFAULT, SYSTEM = (
    "koordinator-root-quota",
    "koordinator-default-quota",
    "koordinator-system-quota",
)
BUILT_IN = frozenset({ROOT, DEFAULT, SYSTEM})

Amounts = Mapping[str, int]
_NONE: Amounts = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticQuota:
    """An ElasticQuota."""

    #: Which of the two that have this name.
    kind: kinds.Kind = kinds.ELASTIC_QUOTAS
    namespace: str
    name: str
    uid: str = ""
    created: str = ""
    #: ``ROOT`` where the object names none.
    parent: str = ROOT
    is_parent: bool = False
    lends: bool = True
    #: Empty: its parent's.
    tree_id: str = ""
    #: It is the root of the tree of its id.
    is_root: bool = False
    ignores_default_tree: bool = False
    forces_update: bool = False
    #: The ElasticQuotaProfile that made it.
    profile: str = ""
    min: Amounts = field(default_factory=dict)
    max: Amounts = field(default_factory=dict)
    weight: Amounts = field(default_factory=dict)
    #: Another upper bound; its names alone are bounded.
    admission: Amounts = field(default_factory=dict)
    namespaces: tuple[str, ...] = ()
    #: Of a tree's root; ``None``: it says nothing.
    total: Amounts | None = None
    unschedulable: Amounts | None = None
    strict_keys: tuple[str, ...] = ()
    #: Priorities, the highest first, and what pods of that priority and above may use.
    max_by_priority: tuple[tuple[int, Amounts], ...] = ()
    keeps_to_nodes: bool = True
    #: As the stored status says; the scheduler's own writes are no new version.
    used: Amounts = field(default_factory=dict, compare=False)
    errors: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    #: What the scheduler wrote, for the writer of statuses: amounts by name, as they are stored.
    reported: Mapping[str, str] = field(default_factory=dict, compare=False)
    invalid: str = field(default="", compare=False)
    status: Mapping[str, Any] = field(default_factory=dict, compare=False)
    #: All labels of the object, for the writer of a profile's root.
    labels: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def id(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticQuotaProfile:
    """An ElasticQuotaProfile: a pool of nodes that has a tree of quotas of its own."""

    kind: kinds.Kind = kinds.ELASTIC_QUOTA_PROFILES
    namespace: str
    name: str
    uid: str = ""
    created: str = ""
    quota_name: str
    #: What the labels of its nodes satisfy; empty: any.
    selector: tuple[selectors.Requirement, ...] = ()
    quota_labels: Mapping[str, str] = field(default_factory=dict)
    ratio: Fraction = Fraction(1)
    tree_id: str = ""
    resource_keys: tuple[str, ...] = (resources.CPU, resources.MEMORY)
    errors: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


def elastic_quota(body: Mapping[str, Any], kind: kinds.Kind = kinds.ELASTIC_QUOTAS) -> ElasticQuota:
    """An ElasticQuota, whatever is written in it (rule 1)."""
    errors: list[str] = []
    problems: list[str] = []
    meta, spec = shapes.section(body, "metadata", errors), shapes.section(body, "spec", errors)
    labels = shapes.texts(shapes.section(meta, "labels", problems), problems, "label")
    notes = shapes.texts(shapes.section(meta, "annotations", problems), problems, "annotation")
    status = shapes.section(body, "status", problems)
    most = _amounts(shapes.section(spec, "max", errors), errors, "spec.max")
    least = _amounts(shapes.section(spec, "min", errors), errors, "spec.min")
    weight = _noted(notes, WEIGHT, _amounts, problems) or _NONE
    total, rest = (_noted(notes, key, _amounts, problems) for key in (TOTAL, UNSCHEDULABLE))
    return ElasticQuota(
        kind=kind,
        namespace=str(meta.get("namespace") or "default"),
        name=str(meta.get("name") or ""),
        uid=str(meta.get("uid") or ""),
        created=str(meta.get("creationTimestamp") or ""),
        parent=labels.get(PARENT) or ROOT,
        is_parent=labels.get(IS_PARENT) == "true",
        lends=labels.get(LENDS) != "false",
        tree_id=labels.get(TREE_ID, ""),
        is_root=labels.get(IS_ROOT) == "true",
        ignores_default_tree=labels.get(IGNORES_DEFAULT_TREE) == "true",
        forces_update=labels.get(FORCES_UPDATE) == "true",
        profile=labels.get(PROFILE, ""),
        min=least,
        max=most,
        weight={**most, **weight} if any(weight.values()) else most,
        admission=_noted(notes, ADMISSION, _amounts, problems) or _NONE,
        namespaces=_noted(notes, NAMESPACES, _names, problems) or (),
        total=total,
        unschedulable=rest,
        strict_keys=_noted(notes, STRICT_KEYS, _names, problems) or (),
        max_by_priority=_noted(notes, MAX_BY_PRIORITY, _by_priority, problems) or (),
        keeps_to_nodes=notes.get(QUOTA_NODES) != "ignore",
        used=_amounts(shapes.section(status, "used", problems), problems, "status.used"),
        errors=tuple(errors),
        problems=tuple(problems),
        reported={amount: notes[key] for amount, key in REPORTED.items() if key in notes},
        invalid=notes.get(INVALID, ""),
        status=status,
        labels=labels,
    )


def elastic_quota_profile(body: Mapping[str, Any]) -> ElasticQuotaProfile:
    """An ElasticQuotaProfile, whatever is written in it (rule 1)."""
    errors: list[str] = []
    meta, spec = shapes.section(body, "metadata", errors), shapes.section(body, "spec", errors)
    labels = shapes.texts(shapes.section(meta, "labels", errors), errors, "label")
    notes = shapes.texts(shapes.section(meta, "annotations", errors), errors, "annotation")
    selector = shapes.section(spec, "nodeSelector", errors)
    requirements: tuple[selectors.Requirement, ...] = ()
    try:
        compiled = selectors.from_object(selector)
        requirements = compiled.labels if compiled is not None else ()
    except ValueError as error:
        errors.append(f"spec.nodeSelector: {error}")
    ratio, spelled = Fraction(1), spec.get("resourceRatio")
    try:
        ratio = ratio if spelled is None or spelled == "" else quantity.exact(str(spelled))
    except ValueError as error:
        errors.append(f"spec.resourceRatio: {error}")
    if not 0 < ratio <= 1:
        errors.append(
            f"spec.resourceRatio: expected more than 0 and at most 1, found {spelled!r:.40}"
        )
    if not spec.get("quotaName"):
        errors.append("spec.quotaName is missing")
    default = ElasticQuotaProfile(namespace="", name="", quota_name="")
    return ElasticQuotaProfile(
        namespace=str(meta.get("namespace") or "default"),
        name=str(meta.get("name") or ""),
        uid=str(meta.get("uid") or ""),
        created=str(meta.get("creationTimestamp") or ""),
        quota_name=str(spec.get("quotaName") or ""),
        selector=requirements,
        quota_labels=shapes.texts(
            shapes.section(spec, "quotaLabels", errors), errors, "spec.quotaLabels"
        ),
        ratio=ratio,
        tree_id=labels.get(TREE_ID, ""),
        resource_keys=_noted(notes, RESOURCE_KEYS, _names, errors) or default.resource_keys,
        errors=tuple(errors),
    )


def namespace_quota(meta: Mapping[str, Any]) -> str:
    """The quota that a Namespace names for its pods, by label or annotation; empty: none."""
    for key in ("labels", "annotations"):
        if name := shapes.section(meta, key, []).get(NAME):
            return str(name)
    return ""


def _amounts(value: object, problems: list[str], where: str = "amounts") -> dict[str, int]:
    """A resource list with any sign (rule 2); an entry that is no quantity costs itself."""
    amounts: dict[str, int] = {}
    for name, spelled in shapes.mapping(value).items():
        if isinstance(spelled, bool) or not isinstance(spelled, str | int | float):
            problems.append(f"{where}.{name[:80]} is not a quantity: {shapes.shown(spelled)}")
            continue
        try:
            amounts[resources.current_name(name)] = resources.amount(name, spelled)
        except ValueError as error:
            problems.append(f"{where}.{name[:80]}: {error}")
    return amounts


def _names(value: object, problems: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, shapes.listing(shapes.text)(value, problems))))


def _by_priority(value: object, problems: list[str]) -> tuple[tuple[int, Amounts], ...]:
    bounds: list[tuple[int, Amounts]] = []
    for spelled, listed in shapes.mapping(value).items():
        try:
            bounds.append((int(spelled), _amounts(listed, problems, spelled[:40])))
        except ValueError as error:
            problems.append(f"{shapes.shown(spelled)}: {error}")
    return tuple(sorted(bounds, key=lambda bound: -bound[0]))


def _noted(
    notes: Mapping[str, str],
    key: str,
    read: Callable[[object, list[str]], Any],
    problems: list[str],
) -> Any:
    """The value of an annotation that holds JSON; ``None`` where it says nothing."""
    if not notes.get(key):
        return None
    inner: list[str] = []
    value = None
    try:
        value = read(shapes.parse(notes[key]), inner)
    except ValueError as error:
        inner.append(str(error))
    problems += [f"annotation {key}: {problem}" for problem in inner]
    # Half a list would be another quota than the owner wrote.
    return None if inner else value
