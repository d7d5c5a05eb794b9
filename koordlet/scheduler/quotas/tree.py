"""One tree of quotas: amounts that go up from pods, and runtime that comes down from the total.

Covers: self, child, limit and own requests, used, what may not be preempted, allocated, guaranteed,
bounds by priority; runtime, recomputed where something below its parent has changed.
Does not cover: which pods are whose (``book``), whether objects agree (``validation``).

Rules:
1. A change of a pod touches its quota and the quotas above, and ends where a limit hides it.
2. The runtime of siblings is one computation, made when somebody asks after their claims or their
   total have changed. A name that the parent does not bound is a total of zero for its children.
3. Amounts have no zeros: two that are equal are equal dictionaries.
4. Deep trees are ordinary: nothing here calls itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import NamedTuple

from koordlet.kubeapi import elastic_quotas
from koordlet.kubeapi.elastic_quotas import ElasticQuota
from koordlet.model.record import dataclass
from koordlet.scheduler.quotas import runtime
from koordlet.scheduler.quotas.amounts import NONE, Amounts, add, difference, exceeding, largest
from koordlet.scheduler.quotas.runtime import Claim, Trace


class Usage(NamedTuple):
    """What one pod counts for. A tuple: it is made for each pod twice, and compared."""

    amounts: Amounts
    #: What it has on a node; empty while it has none.
    used: Amounts = NONE
    non_preemptible: bool = False
    priority: int = 0


#: What a pod counts for that is not there.
NOTHING = Usage(NONE)


@dataclass(slots=True, eq=False)
class QuotaNode:
    """A quota in its tree. ``request`` and ``used`` include everything below."""

    spec: ElasticQuota
    tree: QuotaTree
    #: From the root down to this one.
    path: tuple[QuotaNode, ...] = ()
    children: dict[str, QuotaNode] = field(default_factory=dict)
    self_request: dict[str, int] = field(default_factory=dict)
    self_used: dict[str, int] = field(default_factory=dict)
    child_request: dict[str, int] = field(default_factory=dict)
    #: What the parent counts of it.
    limit_request: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    non_preemptible_request: dict[str, int] = field(default_factory=dict)
    non_preemptible_used: dict[str, int] = field(default_factory=dict)
    #: The sum of what its children are guaranteed.
    children_guaranteed: dict[str, int] = field(default_factory=dict)
    guaranteed: Amounts = field(default_factory=dict)
    #: Used by pods of at least the priority, for each bound of the quota.
    used_by_priority: list[dict[str, int]] = field(default_factory=list)
    #: Grows when the claims of its children change.
    version: int = 0
    #: Version and total that the runtime of its children was computed from.
    shared: tuple[int, Amounts] | None = None
    runtime: Amounts = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the quota."""
        return self.spec.name

    @property
    def parent(self) -> QuotaNode | None:
        """The quota above; ``None``: it is the root."""
        return self.path[-2] if len(self.path) > 1 else None

    @property
    def lends(self) -> bool:
        """Whether others may have what it leaves of its minimum; what is guaranteed is not lent."""
        return self.spec.lends and not self.tree.guarantees

    @property
    def request(self) -> dict[str, int]:
        """What it asks for, before its maximum."""
        if self.lends:
            return self.child_request
        names = dict.fromkeys((*self.child_request, *self.spec.min))
        return {name: amount for name in names if (amount := self._requested(name))}

    @property
    def allocated(self) -> dict[str, int]:
        """What a guarantee would have to cover."""
        own = {name: amount for name, amount in self.self_used.items() if name in self.spec.max}
        if not self.children:
            return own
        for name, amount in self.children_guaranteed.items():
            own[name] = own.get(name, 0) + amount
        return own

    def limited(self, name: str) -> int:
        """What the parent counts of a name."""
        most, asked = self.spec.max.get(name), self._requested(name)
        return asked if most is None else min(asked, most)

    def _requested(self, name: str) -> int:
        asked = self.child_request.get(name, 0)
        return asked if self.lends else max(asked, self.spec.min.get(name, 0))

    def below(self) -> Iterator[QuotaNode]:
        """This quota and all below it, parents first."""
        ahead = [self]
        while ahead:
            node = ahead.pop()
            yield node
            ahead += node.children.values()


class QuotaTree:
    """The quotas of one tree id; those without a parent in it are below its root."""

    def __init__(
        self, tree_id: str = "", *, scales_minimum: bool = True, guarantees: bool = False
    ) -> None:
        self.id = tree_id
        self._scales, self.guarantees = scales_minimum, guarantees
        spec = ElasticQuota(
            namespace="", name=elastic_quotas.ROOT, parent="", is_parent=True, lends=False
        )
        self.root = QuotaNode(spec, self)
        self.root.path = (self.root,)
        self.nodes: dict[str, QuotaNode] = {spec.name: self.root}

    @property
    def total(self) -> Amounts:
        """What the tree divides."""
        return self.root.runtime

    def set_total(self, total: Amounts) -> bool:
        """Divide another total from now on; whether there is more of anything."""
        before = self.root.runtime
        if before != total:
            self.root.runtime = dict(total)
        return bool(exceeding(total, before))

    # Quotas.

    def put(self, spec: ElasticQuota, parent: QuotaNode | None = None) -> QuotaNode:
        """Take in a quota or its newer version, below a parent; ``None``: the root.

        ``ValueError``: the parent is below the quota.
        """
        above = self.root if parent is None else parent
        node = self.nodes.get(spec.name)
        if node is None:
            node = self.nodes[spec.name] = QuotaNode(spec, self)
        elif node in above.path:
            raise ValueError(f"quota {spec.name} cannot be below {above.name}: that is below it")
        else:
            self._detach(node)
        bounds = node.spec.max_by_priority
        node.spec = spec
        if spec.max_by_priority != bounds or len(node.used_by_priority) != len(bounds):
            node.used_by_priority = [{} for _ in spec.max_by_priority]
        self._attach(node, above)
        return node

    def drop(self, name: str) -> None:
        """A quota without pods goes; its children are below the root from now on."""
        node = self.nodes.pop(name)
        for child in list(node.children.values()):
            self._detach(child)
            self._attach(child, self.root)
        self._detach(node)

    def adopt(self, node: QuotaNode) -> None:
        """Take over a quota of another tree with everything below; ``put`` says where it goes."""
        node.tree.release(node)
        for each in node.below():
            self.nodes[each.name], each.tree = each, self

    def release(self, node: QuotaNode) -> None:
        """Give up a quota with everything below."""
        self._detach(node)
        for each in node.below():
            del self.nodes[each.name]

    def _detach(self, node: QuotaNode) -> None:
        above = node.parent
        if above is not None:
            self._carry(node, above, -1)
            del above.children[node.name]
            above.version += 1
            node.path = (node,)

    def _attach(self, node: QuotaNode, above: QuotaNode) -> None:
        above.children[node.name] = node
        above.version += 1
        node.version += 1
        node.path = (*above.path, node)
        for each in node.below():
            for child in each.children.values():
                child.path = (*each.path, child)
        names = dict.fromkeys((*node.child_request, *node.limit_request, *node.spec.min))
        node.limit_request = {name: much for name in names if (much := node.limited(name))}
        if self.guarantees:
            node.guaranteed = largest(node.allocated, node.spec.min)
        self._carry(node, above, 1)

    def _carry(self, node: QuotaNode, above: QuotaNode, sign: int) -> None:
        """Count what a quota adds to those above it, or count it out."""
        self._demand(above, {name: sign * much for name, much in node.limit_request.items()})
        for each in above.path:
            add(each.used, node.used, sign)
            add(each.non_preemptible_request, node.non_preemptible_request, sign)
            add(each.non_preemptible_used, node.non_preemptible_used, sign)
        add(above.children_guaranteed, node.guaranteed, sign)
        self._guarantee(above)

    # Pods.

    def count(self, node: QuotaNode, before: Usage, after: Usage) -> None:
        """Count what a pod of a quota is now, in place of what it was."""
        asked = difference(after.amounts, before.amounts)
        if asked:
            add(node.self_request, asked)
            self._demand(node, asked)
        used = difference(after.used, before.used)
        add(node.self_used, used)
        fixed = before.non_preemptible or after.non_preemptible
        for each in node.path:
            if used:
                add(each.used, used)
            if fixed:
                for usage, sign in ((before, -1), (after, 1)):
                    if usage.non_preemptible:
                        add(each.non_preemptible_request, usage.amounts, sign)
                        add(each.non_preemptible_used, usage.used, sign)
            if each.used_by_priority:
                self._count_priority(each, before, -1)
                self._count_priority(each, after, 1)
        if used:
            self._guarantee(node)

    def settle_priorities(self, node: QuotaNode, usages: Iterable[Usage]) -> None:
        """Count the pods of a quota and below it anew for its bounds by priority."""
        node.used_by_priority = [{} for _ in node.spec.max_by_priority]
        for usage in usages:
            self._count_priority(node, usage, 1)

    @staticmethod
    def _count_priority(node: QuotaNode, usage: Usage, sign: int) -> None:
        for (priority, _), used in zip(
            node.spec.max_by_priority, node.used_by_priority, strict=True
        ):
            if usage.priority >= priority:
                add(used, usage.used, sign)

    def _demand(self, node: QuotaNode, change: Amounts) -> None:
        """Let a change of requests go up until a limit hides it (rule 1)."""
        for each in reversed(node.path):
            if not change:
                return
            upward: dict[str, int] = {}
            add(each.child_request, change, 1)
            for name in change:
                before, after = each.limit_request.get(name, 0), each.limited(name)
                if after != before:
                    upward[name] = after - before
            if upward:
                add(each.limit_request, upward, 1)
                if (above := each.parent) is not None:
                    above.version += 1
            change = upward

    def _guarantee(self, node: QuotaNode) -> None:
        """Let what is guaranteed go up, where anything is."""
        if not self.guarantees:
            return
        for each in reversed(node.path[1:]):
            before, after = each.guaranteed, largest(each.allocated, each.spec.min)
            if after == before or each.parent is None:
                return
            each.guaranteed = after
            add(each.parent.children_guaranteed, before, -1)
            add(each.parent.children_guaranteed, after, 1)
            each.parent.version += 1

    # Runtime.

    def runtime(self, node: QuotaNode) -> Amounts:
        """What a quota may use now, for the names of its maximum."""
        for above in node.path[:-1]:
            known = above.shared
            if known is None or known[0] != above.version or known[1] is not above.runtime:
                self._share(above)
        return node.runtime

    def scaled_minimum(self, node: QuotaNode) -> Amounts:
        """The minimum of a quota, scaled where its parent has less than all minimums together."""
        above, least = node.parent, node.spec.min
        if above is None or not self._scales:
            return least
        total, scaled = self.runtime(above), dict[str, int]()
        for name in least:
            claims = self._claims(above, name)
            minimums = runtime.scaled_minimums(total.get(name, 0), claims)
            names = [claim.name for claim in claims]
            scaled |= {name: minimums[names.index(node.name)]} if node.name in names else {}
        return scaled

    def explain(self, node: QuotaNode) -> Iterator[tuple[str, str]]:
        """Each step towards the runtime of a quota: the name of the resource, and a sentence."""
        above = node.parent
        if above is None:
            return
        total = self.runtime(above)
        for name in sorted(node.spec.max):
            yield name, f"{above.name} has {total.get(name, 0)} to divide"
            steps: list[str] = []

            def trace(whose: str, step: str, steps: list[str] = steps) -> None:
                if whose == node.name:
                    steps.append(step)

            self._divide(above, name, total, trace)
            yield from ((name, step) for step in steps)

    def _share(self, above: QuotaNode) -> None:
        """Compute the runtime of the children of a quota (rule 2)."""
        total = above.runtime
        above.shared = above.version, total
        fresh: dict[str, dict[str, int]] = {name: {} for name in above.children}
        for name in dict.fromkeys(
            name for child in above.children.values() for name in child.spec.max
        ):
            for child_name, share in self._divide(above, name, total).items():
                fresh[child_name][name] = share
        for child in above.children.values():
            # The same object where nothing differs: those below have nothing to compute.
            if child.runtime != fresh[child.name]:
                child.runtime = fresh[child.name]

    def _divide(
        self, above: QuotaNode, name: str, total: Amounts, trace: Trace | None = None
    ) -> dict[str, int]:
        claims = self._claims(above, name)
        shares = runtime.runtimes(total.get(name, 0), claims, scales=self._scales, trace=trace)
        return {claim.name: share for claim, share in zip(claims, shares, strict=True)}

    @staticmethod
    def _claims(above: QuotaNode, name: str) -> list[Claim]:
        return [
            Claim(
                child.name,
                child.spec.min.get(name, 0),
                child.limit_request.get(name, 0),
                child.spec.weight.get(name, 0),
                child.lends,
                child.guaranteed.get(name, 0),
            )
            for child in above.children.values()
            if name in child.spec.max
        ]
