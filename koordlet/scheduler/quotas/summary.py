"""What a person is shown of each quota: bounds, use, runtime, who borrows, who is over, who waits.

Covers: the documents of ``koordlet get quotas``, ``describe quota``, ``explain quota``, of ``sim``
and of the scheduler's page. Does not cover: printing.

Per name: *borrows* is what a quota uses beyond its minimum, *lends* what of its minimum its
siblings may use now, *over* what it uses beyond its runtime and would have to give back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from koordlet.kubeapi import elastic_quotas
from koordlet.kubeapi.elastic_quotas import ElasticQuota
from koordlet.scheduler.quotas import status
from koordlet.scheduler.quotas.amounts import NONE, Amounts, quantities
from koordlet.scheduler.quotas.book import QuotaBook, QuotaPod
from koordlet.scheduler.quotas.pools import WHOLE
from koordlet.scheduler.quotas.settings import UNBOUNDED
from koordlet.scheduler.quotas.tree import QuotaNode

Document = dict[str, Any]

#: Amounts that bound nothing.
EVERYTHING = frozenset({UNBOUNDED, WHOLE, 1000 * WHOLE})
_OF_OTHERS = ("borrows", "lends", "over")


def documents(book: QuotaBook) -> list[Document]:
    """All quotas, parents first; the default and the system quota, and what is idle, at the end."""
    if not book:
        return []
    return [document(book, node) for node in ordered(book)] + list(idle(book))


def idle(book: QuotaBook) -> Iterator[Document]:
    """Objects of which no version is in force: what they say, and what is wrong with them."""
    if not book.invalid:
        return
    owners = {owner.id for name in book.nodes if (owner := book.stored(name)) is not None}
    unheeded = book.invalid.keys() - owners
    blank = dict.fromkeys(("used", *elastic_quotas.REPORTED, *_OF_OTHERS), NONE)
    several = (quota for quota in book.objects() if quota.id in unheeded)
    for quota in sorted(several, key=lambda each: each.id):
        above = None if quota.parent == elastic_quotas.ROOT else quota.parent
        amounts, problem = {**_bounds(quota), **blank}, book.invalid[quota.id]
        yield _document(quota, above, amounts, tree=quota.tree_id, problem=problem)


def ordered(book: QuotaBook) -> Iterator[QuotaNode]:
    """Tree by tree, each quota above its children, by name."""
    for _, tree in sorted(book.trees.items()):
        ahead = _by_name(tree.root)
        while ahead:
            node = ahead.pop()
            yield node
            ahead += _by_name(node)
    yield from reversed(_by_name(book.aside.root))


def _by_name(node: QuotaNode) -> list[QuotaNode]:
    """The children, the first by name at the end."""
    return sorted(node.children.values(), key=lambda child: child.name, reverse=True)


def document(book: QuotaBook, node: QuotaNode) -> Document:
    """One quota."""
    spec, above = node.spec, node.parent
    pods = list(book.counted(node))
    placed = sum(bool(each.usage.used) or bool(each.pod.node) for each in pods)
    owner = book.stored(spec.name)
    others = beyond(node.used, spec.min), lent(book, node), over(book, node)
    return {
        **_document(
            spec,
            above.name if above is not None and above.parent is not None else None,
            {**_amounts(book, node), **dict(zip(_OF_OTHERS, others, strict=True))},
            tree=node.tree.id,
            problem=book.invalid.get(owner.id) if owner is not None else None,
        ),
        "depth": len(node.path) - 2,
        "pods": len(pods),
        "waiting": len(pods) - placed,
    }


def _document(
    spec: ElasticQuota,
    above: str | None,
    amounts: Mapping[str, Amounts],
    *,
    tree: str,
    problem: str | None,
) -> Document:
    """A quota with these amounts, without pods."""
    return {
        "quota": spec.name,
        "namespace": spec.namespace,
        "parent": above,
        "tree": tree or None,
        "depth": 0,
        "isParent": spec.is_parent,
        "allowLentResource": spec.lends,
        **{_camel(name): _shown(much) for name, much in amounts.items()},
        "pods": 0,
        "waiting": 0,
        "problem": problem,
    }


def gauges(book: QuotaBook) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Each amount of each quota, by the peer's name, in the units of ``model.resources``."""
    values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
    for node in ordered(book) if book else ():
        above = node.parent
        for field, amounts in _amounts(book, node).items():
            for name, much in amounts.items():
                labels = {
                    "name": node.name,
                    "resource": name,
                    "field": field,
                    "tree": node.tree.id,
                    "is_parent": str(node.spec.is_parent).lower(),
                    "parent": above.name if above is not None else "",
                }
                values["scheduler_elastic_quota_status", tuple(labels.items())] = much
    return values


def _amounts(book: QuotaBook, node: QuotaNode) -> dict[str, Amounts]:
    known = {**_bounds(node.spec), "used": node.used}
    return known | status.amounts(node, book.limit(node))


def _bounds(spec: ElasticQuota) -> dict[str, Amounts]:
    return {
        "min": spec.min,
        "max": spec.max,
        "sharedWeight": spec.weight,
        "unschedulable-resource": spec.unschedulable or {},
    }


def named(book: QuotaBook, name: str, messages: Mapping[str, str]) -> list[Document]:
    """The quota of a name in full, or every object of that name that is not in force."""
    if not book:
        return []
    node = book.nodes.get(name)
    if node is not None:
        return [detail(book, node, messages)]
    return [{**quota, "steps": [], "members": []} for quota in idle(book) if quota["quota"] == name]


def detail(book: QuotaBook, node: QuotaNode, messages: Mapping[str, str]) -> Document:
    """One quota with its pods and every step of its runtime; ``messages``: why pods wait."""
    return {
        **document(book, node),
        "steps": [{"resource": name, "step": step} for name, step in node.tree.explain(node)],
        "members": [
            _member(each, messages)
            for each in sorted(book.counted(node), key=lambda each: each.pod.key)
        ],
    }


def beyond(amounts: Amounts, bound: Amounts, *, bounded: bool = False) -> dict[str, int]:
    """What amounts are beyond a bound; ``bounded``: of the names that it has."""
    return {
        name: much - bound.get(name, 0)
        for name, much in amounts.items()
        if much > bound.get(name, 0) and (name in bound or not bounded)
    }


def lent(book: QuotaBook, node: QuotaNode) -> dict[str, int]:
    """What of its minimum a quota's siblings may use now."""
    return beyond(node.spec.min, book.limit(node)) if node.spec.lends else {}


def over(book: QuotaBook, node: QuotaNode) -> dict[str, int]:
    """What a quota uses beyond its runtime."""
    return beyond(node.used, book.limit(node), bounded=True)


def peer(book: QuotaBook, node: QuotaNode) -> Document:
    """One quota as the peer's scheduler tells it."""
    above, tree = node.parent, node.tree
    known = {_camel(name): quantities(much) for name, much in _amounts(book, node).items()}
    return {
        "name": node.name,
        "parentName": above.name if above is not None else "",
        "tree": tree.id,
        "isParent": node.spec.is_parent,
        "allowLentResource": node.spec.lends,
        "allowForceUpdate": node.spec.forces_update,
        **known,
        "autoScaleMin": quantities(tree.scaled_minimum(node)),
        "podCache": {
            each.pod.key: {
                "isAssigned": bool(each.usage.used),
                "resource": quantities(each.usage.amounts),
            }
            for each in book.counted(node)
        },
    }


def _member(each: QuotaPod, messages: Mapping[str, str]) -> Document:
    pod = each.pod
    why = "" if pod.node else messages.get(pod.key, "") or pod.stored_condition[1]
    return {
        "pod": pod.key,
        "node": pod.node or None,
        "priority": pod.priority,
        "request": quantities(each.usage.amounts),
        "message": why or None,
    }


def _shown(amounts: Amounts) -> dict[str, str]:
    """As quantities; what is practically everything says nothing to a person."""
    return quantities({name: much for name, much in amounts.items() if much not in EVERYTHING})


def _camel(name: str) -> str:
    first, *rest = name.split("-")
    return first + "".join(word.capitalize() for word in rest)
