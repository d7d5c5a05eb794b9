"""Whether a quota admits a pod, before any node is looked at.

Covers: the checks and messages, sums of gangs. Does not cover: counting (``book``), who has to go
where a quota has no room (``preemption``).

Checks, in this order; only names that the pod asks for and that a quota bounds are compared:
1. What the quota uses, with the pod, is within its runtime.
2. Pods that are never preempted are within the minimum together.
3. The same as 1 for each quota above, below the root, and for each quota on the way the bound of
   the annotation ``admission`` and the bounds by priority.
"""

from __future__ import annotations

import enum

from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.quotas import book as quota_book
from koordlet.scheduler.quotas.amounts import Amounts, listed
from koordlet.scheduler.quotas.book import QuotaBook
from koordlet.scheduler.quotas.tree import QuotaNode


class BoundKind(enum.Enum):
    """Which bound: how the message names it, and what is compared with it."""

    OWN = ("runtime", "used")
    PARENT = ("runtime", "used", "parent")
    NON_PREEMPTIBLE = ("min", "nonPreemptibleUsed")
    ADMISSION = ("admission", "used")
    PRIORITY = ("max", "used", "priority")


#: The bounded quota, what it uses, what it may use, of which kind, from which priority on.
_Bound = tuple[QuotaNode, Amounts, Amounts, BoundKind, int]


def refusal(
    book: QuotaBook, pod_class: PodClass, priority: int, drawn: Amounts | None = None
) -> str:
    """Why a pod of a class is not admitted; empty: it is.

    ``drawn``: what a reservation gives it.
    """
    node = book.of(pod_class)
    if node is None:
        return ""
    asked = book.asked(pod_class, node)
    if drawn:
        rest = ((name, much - drawn.get(name, 0)) for name, much in asked.items())
        asked = {name: more for name, more in rest if more > 0}
    fixed = quota_book.is_fixed(pod_class)
    # Asked first: after it the runtime of every quota above is up to date.
    limit = book.limit(node)
    for bound in _bounds(book, node, limit, asked, priority, fixed=fixed):
        if over := _over(bound[1], bound[2], asked):
            return f"{_words(node, bound)}, {_amounts(bound, asked, over)}"
    return ""


def gang_refusal(book: QuotaBook, name: str, node: QuotaNode, asked: Amounts) -> str:
    """Why the members of a gang are not admitted together; empty: they may be."""
    asked = {key: much for key, much in asked.items() if key in node.spec.max}
    bound = node, node.used, book.limit(node), BoundKind.OWN, 0
    over = _over(bound[1], bound[2], asked)
    words = f"Insufficient quotas for gang {name}, quotaName: {node.name}"
    return f"{words}, {_amounts(bound, asked, over)}" if over else ""


def _bounds(
    book: QuotaBook, node: QuotaNode, limit: Amounts, asked: Amounts, priority: int, *, fixed: bool
) -> list[_Bound]:
    """All bounds of a pod; no generator, as it would cost each pod more than its checks."""
    bounds: list[_Bound] = [(node, node.used, limit, BoundKind.OWN, 0)]
    if fixed:
        least = {name: node.spec.min.get(name, 0) for name in asked}
        bounds.append((node, node.non_preemptible_used, least, BoundKind.NON_PREEMPTIBLE, 0))
    checks_parents, uses_runtime = book.settings.checks_parents, book.settings.uses_runtime
    for each in node.path[:0:-1]:
        spec = each.spec
        if checks_parents and each is not node:
            most = each.runtime if uses_runtime else spec.max
            bounds.append((each, each.used, most, BoundKind.PARENT, 0))
        if spec.admission:
            bounds.append((each, each.used, spec.admission, BoundKind.ADMISSION, 0))
        if spec.max_by_priority:
            pairs = zip(spec.max_by_priority, each.used_by_priority, strict=True)
            bounds += (
                (each, used, bound, BoundKind.PRIORITY, least_priority)
                for (least_priority, bound), used in pairs
                if priority >= least_priority
            )
    return bounds


def _over(used: Amounts, most: Amounts, asked: Amounts) -> list[str]:
    """The names that would be beyond a bound; a name without one is not bounded."""
    over = []
    for name, much in asked.items():
        if name in most and used.get(name, 0) + much > most[name]:
            over.append(name)
    return sorted(over) if over else over


def _words(node: QuotaNode, bound: _Bound) -> str:
    bounded, _, _, kind, priority = bound
    if kind is BoundKind.PARENT:
        # From the one that refuses down to the pod's own: so the peer names them.
        below = node.path[len(bounded.path) - 1 :]
        return f"Insufficient quotas, quotaNameTopo: [{' '.join(each.name for each in below)}]"
    which = {
        BoundKind.NON_PREEMPTIBLE: "non-preemptible quotas",
        BoundKind.PRIORITY: f"quotas for priority >= {priority}",
    }
    return f"Insufficient {which.get(kind, 'quotas')}, quotaName: {bounded.name}"


def _amounts(bound: _Bound, asked: Amounts, over: list[str]) -> str:
    _, used, most, kind, _ = bound
    label, used_label = kind.value[:2]
    return (
        f"{label}: {listed(most)}, {used_label}: {listed(used, most)},"
        f" pod's request: {listed(asked)}, exceedDimensions: [{' '.join(over)}]"
    )
