"""Which pods a strategy or an evictor looks at: by namespace, by label, by owner.

Covers: the values and reading them. Does not cover: who may be evicted (``evictability``).
"""

from __future__ import annotations

from collections.abc import Mapping

from koordlet.kubeapi import selectors
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.objects import terms
from koordlet.scheduler.objects.pods import PodClass


@dataclass(frozen=True, slots=True)
class Choice:
    """Names that count, or all but some; both empty: all."""

    include: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()

    def admits(self, name: str) -> bool:
        """Whether a name counts."""
        return name not in self.exclude and (not self.include or name in self.include)


EVERYTHING = Choice()


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSelection:
    """Pods by namespace and label."""

    namespaces: Choice = EVERYTHING
    selector: selectors.Compiled | None = None

    def admits(self, pod_class: PodClass) -> bool:
        """Whether pods of a class are meant."""
        return self.namespaces.admits(pod_class.namespace) and (
            self.selector is None or terms.holds(self.selector, pod_class.labels)
        )


ALL_PODS = PodSelection()


def choice(fields: Fields, key: str, *, exclude_only: bool = False) -> Choice:
    """``{include: […]}`` or ``{exclude: […]}``."""
    child = fields.child(key)
    include, exclude = frozenset(child.texts("include")), frozenset(child.texts("exclude"))
    child.done()
    if include and exclude:
        fields.fail(
            key,
            "only one of include and exclude can be set",
            "leave one of the two lists out: include alone excludes all others",
        )
    if include and exclude_only:
        fields.fail(f"{key}.include", "only exclude is supported here")
    return Choice(include, exclude)


def pods(fields: Fields) -> PodSelection:
    """The keys ``namespaces`` and ``labelSelector`` of nearly every strategy."""
    return PodSelection(
        namespaces=choice(fields, "namespaces"), selector=fields.selector("labelSelector")
    )


def matches(selector: selectors.Compiled | None, labels: Mapping[str, str]) -> bool:
    """Whether a node or namespace is meant; where no selector is given, each is."""
    return selector is None or terms.holds(selector, labels)
