"""Whether a quota admits a pod, before any node is looked at.

Covers: the checks and messages, sums of gangs. Does not cover: counting (``book``), who has to go
where a quota has no room (``preemption``).

Checks, in this order; only names that the pod asks for and that a quota bounds are compared:
1. What the quota uses, with the pod, is within its runtime.
2. Pods that are never preempted are within the minimum together.
3. The same as 1 for each quota above, below the root.
4. The same against the bound of the annotation ``admission``, and the bounds by priority.
"""

from __future__ import annotations

from collections.abc import Iterator

from koordlet.model.record import dataclass
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.quotas import book as quota_book
from koordlet.scheduler.quotas.amounts import Amounts, listed
from koordlet.scheduler.quotas.book import QuotaBook
from koordlet.scheduler.quotas.tree import QuotaNode


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound that a pod has to keep."""

    node: QuotaNode
    used: Amounts
    most: Amounts
    #: How the message begins, and how it names the bound.
    words: str
    label: str = "runtime"
    used_label: str = "used"


def refusal(
    book: QuotaBook, pod_class: PodClass, priority: int, drawn: Amounts | None = None
) -> str:
    """Why a pod of a class is not admitted; empty: it is.

    ``drawn``: what a reservation gives it.
    """
    node = book.of(pod_class)
    if node is None:
        return ""
    asked = quota_book.asked(pod_class, node)
    if drawn:
        rest = ((name, much - drawn.get(name, 0)) for name, much in asked.items())
        asked = {name: more for name, more in rest if more > 0}
    fixed = quota_book.is_fixed(pod_class)
    for bound in _bounds(book, node, asked, priority, fixed=fixed):
        if over := _over(bound, asked):
            return _message(bound, asked, over)
    return ""


def gang_refusal(book: QuotaBook, name: str, node: QuotaNode, asked: Amounts) -> str:
    """Why the members of a gang are not admitted together; empty: they may be."""
    asked = {key: much for key, much in asked.items() if key in node.spec.max}
    words = f"Insufficient quotas for gang {name}, quotaName: {node.name}"
    bound = Bound(node, node.used, book.limit(node), words)
    over = _over(bound, asked)
    return _message(bound, asked, over) if over else ""


def _bounds(
    book: QuotaBook, node: QuotaNode, asked: Amounts, priority: int, *, fixed: bool
) -> Iterator[Bound]:
    yield Bound(node, node.used, book.limit(node), f"Insufficient quotas, quotaName: {node.name}")
    if fixed:
        least = {name: node.spec.min.get(name, 0) for name in asked}
        words = f"Insufficient non-preemptible quotas, quotaName: {node.name}"
        yield Bound(node, node.non_preemptible_used, least, words, "min", "nonPreemptibleUsed")
    if book.settings.checks_parents:
        for above in reversed(node.path[1:-1]):
            topology = " ".join(each.name for each in node.path)
            words = f"Insufficient quotas, quotaNameTopo: [{topology}]"
            yield Bound(above, above.used, book.limit(above), words)
    for each in reversed(node.path):
        if each.spec.admission:
            words = f"Insufficient quotas, quotaName: {each.name}"
            yield Bound(each, each.used, each.spec.admission, words, "admission")
        for (least_priority, most), used in zip(
            each.spec.max_by_priority, each.used_by_priority, strict=True
        ):
            if priority >= least_priority:
                words = f"Insufficient quotas for priority >= {least_priority}"
                yield Bound(each, used, most, f"{words}, quotaName: {each.name}", "max")


def _over(bound: Bound, asked: Amounts) -> list[str]:
    """The names that would be beyond the bound; a name without one is not bounded."""
    most, used = bound.most, bound.used
    return sorted(
        name
        for name, much in asked.items()
        if name in most and used.get(name, 0) + much > most[name]
    )


def _message(bound: Bound, asked: Amounts, over: list[str]) -> str:
    return (
        f"{bound.words}, {bound.label}: {listed(bound.most)},"
        f" {bound.used_label}: {listed(bound.used, bound.most)},"
        f" pod's request: {listed(asked)}, exceedDimensions: [{' '.join(over)}]"
    )
