"""The quotas of a scheduler for its page: amounts for bars, who lends to whom, who is called back.

Covers: the panel's part of the document, the choice among many quotas, those not in force, the
past of each.
Does not cover: drawing it (``report/page/quotas.js``), the documents of commands
(``quotas.summary``).

Who lends is among siblings: what one may not use of its minimum now, others beyond theirs have.
The default and the system quota have no siblings: nobody lends them anything.
Of many quotas those are told that are above their runtime, then invalid ones, then those that wait,
with all above them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Any

from koordlet.model.record import dataclass
from koordlet.scheduler.quotas import summary
from koordlet.scheduler.quotas.book import QuotaBook
from koordlet.scheduler.quotas.history import QuotaHistory
from koordlet.scheduler.quotas.revoke import RevokeWatch
from koordlet.scheduler.quotas.summary import beyond
from koordlet.scheduler.quotas.tree import QuotaNode

#: Of quotas, of those that are not in force, and of pods that are called back.
MOST = 200
#: Of names on the other side of a loan.
_NAMES = 5

Body = dict[str, Any]


def panel(book: QuotaBook, history: QuotaHistory, wall: Callable[[float], float]) -> Body:
    """What the page shows of quotas; ``wall``: a time of the loop's clock as Unix time."""
    nodes = list(summary.ordered(book)) if book else []
    over = {node.name for node in nodes if summary.over(book, node)}
    back = [
        {"pod": revocation.pod.key, "quota": revocation.quota.name, "in": node.name}
        for revocation in (RevokeWatch(-1.0).look(book, 0.0) if over else ())
        if (node := book.of(revocation.pod.pod_class)) is not None
    ]
    idle = list(summary.idle(book))
    sides: dict[tuple[str, str], _Sides] = {}
    return {
        "quotas": [
            {**_quota(book, node, sides), "past": _past(history, node, wall)}
            for node in _chosen(book, nodes, over)
        ],
        "quotaCount": len(nodes),
        "quotasOver": len(over),
        "idleQuotas": [
            {key: quota[key] for key in ("quota", "namespace", "problem")} for quota in idle[:MOST]
        ],
        "idleQuotaCount": len(idle),
        "calledBack": back[:MOST],
        "calledBackCount": len(back),
        "callsBack": book.settings.monitors and book.settings.uses_runtime,
        "overcommitted": book.overcommitted() if book else "",
    }


def _chosen(book: QuotaBook, nodes: list[QuotaNode], over: set[str]) -> Iterator[QuotaNode]:
    """The quotas that are told, in the order of the tree."""

    def rank(node: QuotaNode) -> tuple[bool, bool, bool, int]:
        calm = node.spec.id not in book.invalid, node.self_request == node.self_used
        return node.name not in over, *calm, len(node.path)

    chosen = {above.name for node in sorted(nodes, key=rank)[:MOST] for above in node.path}
    return (node for node in nodes if node.name in chosen)


def _quota(book: QuotaBook, node: QuotaNode, sides: dict[tuple[str, str], _Sides]) -> Body:
    shown = summary.document(book, node)
    kept = ("quota", "parent", "depth", "isParent", "pods", "waiting", "problem")
    spec, above, alone = node.spec, node.parent, node.tree is book.aside
    known = {
        "min": spec.min,
        "used": node.used,
        "request": node.request,
        "runtime": book.limit(node),
    }
    names = {name for amounts in (*known.values(), spec.max) for name in amounts}
    beside = _Sides()
    if above is not None and not alone:
        where = node.tree.id, above.name
        beside = sides.get(where) or sides.setdefault(where, _Sides.below(book, above))
    return {
        **{key: shown[key] for key in kept},
        "tree": None if alone else shown["tree"],
        "amounts": {
            name: {
                **{what: amounts.get(name, 0) for what, amounts in known.items()},
                "max": None if (most := spec.max.get(name)) in summary.EVERYTHING else most,
            }
            for name in sorted(names)
        },
        "borrows": {} if alone else _with(beyond(node.used, spec.min), beside.lenders),
        "lends": _with(summary.lent(book, node), beside.borrowers),
        "over": summary.over(book, node),
    }


def _past(history: QuotaHistory, node: QuotaNode, wall: Callable[[float], float]) -> Body | None:
    """When a quota was over, and whom it refused or called back."""
    past = history.get(node.name)
    if past is None:
        return None
    return {
        "over": [
            {"from": wall(began), "to": None if ended is None else wall(ended)}
            for began, ended in past.over
        ],
        "marks": [
            {"at": wall(mark.at), "what": mark.act.value, "pod": mark.pod} for mark in past.marks
        ],
    }


@dataclass(slots=True)
class _Sides:
    """The children of a quota that lend and that borrow, by resource."""

    lenders: dict[str, list[str]] = field(default_factory=dict)
    borrowers: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def below(cls, book: QuotaBook, above: QuotaNode) -> _Sides:
        sides = cls()
        for _, child in sorted(above.children.items()):
            for several, amounts in (
                (sides.lenders, summary.lent(book, child)),
                (sides.borrowers, beyond(child.used, child.spec.min)),
            ):
                for name in amounts:
                    several.setdefault(name, []).append(child.name)
        return sides


def _with(amounts: dict[str, int], others: dict[str, list[str]]) -> Body:
    """Amounts by name, each with the siblings on the other side."""
    return {
        name: {
            "amount": much,
            "with": others.get(name, [])[:_NAMES],
            "of": len(others.get(name, [])),
        }
        for name, much in amounts.items()
    }
