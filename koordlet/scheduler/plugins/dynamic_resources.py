"""DynamicResources: devices for the resource claims of pods.

Covers: whether a pod's claims are ready, which nodes have devices for them or reach those that they
have, the devices that they get, giving back what nobody uses. Does not cover: the search
(``scheduler.claims``), writing claims (``loop.claim_writer``).

Rules:
1. Pods are tried as a variant of their class for what their claims ask for, not for their names: a
   job of thousands has one view, and each of its pods costs a search on the node that changed.
2. A node is asked for devices first, then whether it reaches what other claims of the pod have.
   Nobody has to leave a node for it: devices are given back by claims, not by pods.
3. From the decision on, devices are promised. Where a claim is shared, pods count on one promise.
4. A claim that cannot be judged (a selector that fails, too many devices) ends the attempt; the pod
   waits until slices, classes or its claims change.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from koordlet.model.record import dataclass
from koordlet.scheduler import framework
from koordlet.scheduler.claims import allocator, explanation, node_answers, results
from koordlet.scheduler.claims.allocation_state import (
    AllocationState,
    ClaimProblemError,
    PodDemand,
)
from koordlet.scheduler.claims.demand import AllocationError, ClaimDemand
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.cluster.vectors import Bools, Ints, Rows
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.resource_claims import ClaimAllocation, ResourceClaim

#: Why nodes are refused whose devices a claim does not have.
OUT_OF_REACH = "resourceclaim not available on the node"
_NOTHING_TO_GIVE_BACK = "no new claims to deallocate"
_GAVE_BACK = "deallocation of ResourceClaim completed"
_STUCK = "still not schedulable"
#: Variants of classes that are kept; a view that is gone costs one look at all nodes.
_MOST_VARIANTS = 512


class ClaimWrites(Protocol):
    """Writes claims."""

    def bind(self, pod: Pod) -> Awaitable[None]:
        """Write what a pod's claims were promised, and that it uses them."""

    def waiting(self, pod: Pod) -> float:
        """Seconds after which to ask again whether a pod's devices are ready; 0: they are."""

    def release(self, pod: Pod, claim: ResourceClaim) -> None:
        """Write some time that a pod does not use a claim."""

    def deallocate(self, claim: ResourceClaim) -> None:
        """Write some time that a claim has no devices any more."""


@dataclass(frozen=True, slots=True, eq=False)
class ClassDemand:
    """What the claims of a class's pods need of nodes; compared by identity."""

    #: ``None``: all claims have devices.
    answers: node_answers.NodeAnswers | None = None
    held: tuple[ClaimAllocation, ...] = ()
    #: Why no node can help them now; empty: some may.
    problem: str = ""


def demand_of(pod_class: PodClass) -> ClassDemand | None:
    """What the claims of a class's pods need; ``None``: it has none."""
    return pod_class.demand if isinstance(pod_class.demand, ClassDemand) else None


class DynamicResources(framework.Plugin):
    """Which nodes have the devices that a pod's claims ask for, and which devices they are."""

    name = "DynamicResources"
    listens = (
        ActionType.NODE_NEW | ActionType.NODE_LABELS | ActionType.DEVICES | ActionType.POD_GONE
    )

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self.state = AllocationState()
        self._writes: ClaimWrites | None = None
        self._columns: Columns | None = None
        self._variants: OrderedDict[tuple[object, ...], PodClass] = OrderedDict()

    def attach(self, state: AllocationState, writes: ClaimWrites | None) -> None:
        """Have the state that all profiles share, and whoever writes claims, if anybody does."""
        self.state, self._writes = state, writes

    def concerned(self, event: ClusterEvent) -> bool:
        # Only a pod that was not bound gives devices back itself.
        pod = event.pod
        return event.what is not ActionType.POD_GONE or bool(pod is not None and pod.claims)

    def pre_enqueue(self, pod: Pod) -> str:
        if not pod.claims:
            return ""
        self.state.use(pod)
        try:
            self.state.claims_of(pod)
        except ClaimProblemError as problem:
            return str(problem)
        return ""

    def pre_filter(self, pod: Pod) -> str:
        if not pod.claims or pod.reserve_pod_of:
            return ""
        try:
            wanted = self.state.demand(pod)
            if wanted.answers is not None and wanted.answers.broken:
                self._repeat(wanted, wanted.answers.broken)
        except (ClaimProblemError, AllocationError) as problem:
            return str(problem)
        return ""

    def _repeat(self, wanted: PodDemand, name: str) -> None:
        """Search again where the search for a like demand broke: the error names this claim."""
        columns = self._columns
        if columns is not None and name in columns.rows:
            view = self.state.pools.view(name, columns.chosen(columns.rows[name]).labels)
            allocator.search(self.state.prepared(wanted.pending), view, self.state.claims.in_use)

    def _allocations(self, wanted: PodDemand, name: str) -> tuple[ClaimAllocation, ...]:
        """What the pending claims get on a node; ``RefusedError``: it has nothing for them."""
        columns, answers = self._columns, wanted.answers
        if columns is None or answers is None:
            return ()
        labels = columns.chosen(columns.rows[name]).labels
        (answer,) = answers.of([(name, labels)])
        if answer.why_not:
            raise framework.RefusedError(answer.why_not)
        # Found for claims that ask for the same: these have their own settings of drivers.
        ready = [
            ClaimDemand(claim, shared.requests)
            for claim, shared in zip(wanted.pending, answers.claims, strict=True)
        ]
        return results.allocations(ready, answer.solution, name, lambda: str(uuid.uuid4()))

    def refine(self, pod: Pod, pod_class: PodClass) -> PodClass:
        if not pod.claims or pod.reserve_pod_of:
            return pod_class
        key: tuple[object, ...]
        try:
            wanted = self.state.demand(pod)
            asked = ClassDemand(wanted.answers, wanted.held)
            held = tuple(allocation.selector for allocation in wanted.held)
            key = pod_class, wanted.answers, held
        except (ClaimProblemError, AllocationError) as problem:
            asked = ClassDemand(problem=str(problem))
            key = pod_class, asked.problem
        known = self._variants.get(key)
        if known is None:
            known = self._variants[key] = dataclasses.replace(pod_class, demand=asked)
            if len(self._variants) > _MOST_VARIANTS:
                self._variants.popitem(last=False)
        self._variants.move_to_end(key)
        return known

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        self._columns = columns
        asked = demand_of(pod_class)
        if asked is not None and asked.problem:
            raise framework.RefusedError(asked.problem)
        return None if asked is None else DemandFilter(asked, columns)

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        asked = demand_of(pod_class)
        if asked is None or asked.answers is None or not asked.answers.has_wishes:
            return None
        return WishScore(asked.answers, columns)

    def outlook(self, pod_class: PodClass, columns: Columns, row: int) -> str:
        asked = demand_of(pod_class)
        if asked is None or asked.answers is None:
            return ""
        node = columns.chosen(row)
        view = self.state.pools.view(node.name, node.labels)
        solution = allocator.search(asked.answers.claims, view, self.state.claims.in_use)
        return ", ".join("/".join(choice.device.id) for choice in solution.devices)

    def details(self, pod: Pod, columns: Columns, row: int) -> Sequence[str]:
        try:
            pending = self.state.demand(pod).pending
            if not pending:
                return []
            node = columns.chosen(row)
            view = self.state.pools.view(node.name, node.labels)
            in_use = self.state.claims.in_use
            ready = self.state.prepared(pending)
            if not allocator.search(ready, view, in_use).why_not:
                return []
            return explanation.lines(ready, view, in_use)
        except (ClaimProblemError, AllocationError) as problem:
            return [str(problem)]

    def prepare(self, pod: Pod, node: str) -> None:
        if not pod.claims or pod.reserve_pod_of:
            return
        try:
            wanted = self.state.demand(pod)
            allocations = self._allocations(wanted, node)
        except (ClaimProblemError, AllocationError) as problem:
            raise framework.RefusedError(str(problem)) from problem
        for claim in wanted.claims:
            self.state.claims.count_on((claim.namespace, claim.name), pod.uid)
        for claim, allocation in zip(wanted.pending, allocations, strict=True):
            self.state.claims.make_promise(claim, allocation, pod.uid)

    def unreserve(self, pod: Pod, node: str) -> None:
        if not pod.claims:
            return
        self.state.claims.withdraw(pod.uid)
        for entry in pod.claims:
            claim = self.state.claims.get((pod.namespace, entry.claim))
            if claim is not None and self._writes is not None and claim.serves(pod.uid):
                self._writes.release(pod, claim)

    def pre_bind(self, pod: Pod, node: str) -> Awaitable[None] | None:
        if not pod.claims or self._writes is None:
            return None
        self._check_reach(pod, node)
        return self._writes.bind(pod)

    def _check_reach(self, pod: Pod, name: str) -> None:
        """``RefusedError`` where somebody has given a claim other devices since the decision."""
        columns = self._columns
        if columns is None or name not in columns.rows:
            return
        labels = columns.chosen(columns.rows[name]).labels
        for entry in pod.claims:
            allocation = self.state.claims.allocation((pod.namespace, entry.claim))
            if allocation is not None and not allocation.reaches(name, labels):
                raise framework.RefusedError(
                    f"claim {pod.namespace}/{entry.claim} got allocated elsewhere in the meantime"
                )

    def preparing(self, pod: Pod, node: str) -> float:
        return 0.0 if not pod.claims or self._writes is None else self._writes.waiting(pod)

    def post_filter(
        self, pod: Pod, refused: Mapping[str, framework.Verdict]
    ) -> framework.Rescue | None:
        if pod.reserve_pod_of:
            return None
        if not pod.claims or not refused:
            return framework.Rescue(_NOTHING_TO_GIVE_BACK)
        for claim in self._out_of_reach(pod, refused):
            others = [each for each in claim.reserved_for if each.uid != pod.uid]
            if not others and self._writes is not None:
                self._writes.deallocate(claim)
                return framework.Rescue(_GAVE_BACK)
        return framework.Rescue(_STUCK)

    def _out_of_reach(
        self, pod: Pod, refused: Mapping[str, framework.Verdict]
    ) -> list[ResourceClaim]:
        """The claims of a pod whose devices were out of reach of a node, in the pod's order."""
        columns = self._columns
        names = [name for name, verdict in refused.items() if OUT_OF_REACH in verdict.reasons]
        if columns is None or not names:
            return []
        nodes = [columns.chosen(columns.rows[name]) for name in names if name in columns.rows]
        try:
            claims = self.state.claims_of(pod)
        except ClaimProblemError:
            return []
        return [
            claim
            for claim in claims
            if (allocation := claim.allocation) is not None
            and not all(allocation.reaches(node.name, node.labels) for node in nodes)
        ]


class DemandFilter(framework.Filter):
    """Nodes that can serve a demand; a node where something changed is asked when it matters."""

    kind = framework.Kind.CONTEXT
    blind = True
    pointwise = True

    def __init__(self, asked: ClassDemand, columns: Columns) -> None:
        self._asked, self._columns = asked, columns
        self._codes = np.zeros(columns.size, np.int64)
        self._passes = np.zeros(columns.size, np.bool_)
        self._given: list[framework.Verdict] = []
        self.verdicts = self._given
        #: Up to where changes were taken in; rows that have to be asked since.
        self._at, self._position = -1, (-1, -1)
        self._old: set[int] = set()
        self._reach = np.ones(columns.size, np.bool_)
        for row, node in enumerate(columns.nodes if asked.held else ()):
            if node is not None:
                self._reach[row] = all(each.reaches(node.name, node.labels) for each in asked.held)
        if asked.answers is None:
            self._put(np.arange(columns.size).tolist(), [""] * columns.size)

    def codes(self, rows: Rows) -> Ints:
        if error := self._ask():
            return np.full(rows.size, self._code(error), np.int64)
        return self._codes[rows]

    def allows(self, row: int) -> bool:
        return not self._ask(row) and bool(self._passes[row])

    def allowed(self, rows: Rows) -> Bools:
        if self._ask():
            return np.zeros(rows.size, np.bool_)
        return self._passes if rows.size == self._passes.size else self._passes[rows]

    def _ask(self, row: int = -1) -> str:
        """Ask all nodes that have to be asked, or one of them; why that is impossible, if it is."""
        answers = self._asked.answers
        if answers is None:
            return ""
        if answers.position != self._position:
            self._take_in(answers)
        old = [each for each in ([row] if row >= 0 else sorted(self._old)) if each in self._old]
        if not old:
            return ""
        nodes = map(self._columns.chosen, old)
        try:
            several = list(answers.of((node.name, node.labels) for node in nodes))
        except AllocationError as error:
            return str(error)
        self._put(old, [answer.why_not for answer in several])
        self._old.difference_update(old)
        return ""

    def _take_in(self, answers: node_answers.NodeAnswers) -> None:
        """Note the nodes where something changed."""
        answers.forget()
        columns = self._columns
        changed = None if self._at < 0 else answers.changes.since(self._at)
        if changed is None:
            self._old.update(columns.rows.values())
        else:
            self._old.update(columns.rows[name] for name in changed if name in columns.rows)
        self._position, self._at = answers.position, answers.changes.end

    def _put(self, rows: list[int], reasons: list[str]) -> None:
        for row, reason in zip(rows, reasons, strict=True):
            why_not = reason or ("" if self._reach[row] else OUT_OF_REACH)
            self._codes[row] = self._code(why_not) if why_not else 0
            self._passes[row] = not why_not

    def _code(self, reason: str) -> int:
        verdict = framework.Verdict((reason,), resolvable=False)
        if verdict not in self._given:
            self._given.append(verdict)
        return 1 + self._given.index(verdict)


class WishScore(framework.ContextScore):
    """Nodes by how early in their lists the wishes are that they can serve."""

    def __init__(self, answers: node_answers.NodeAnswers, columns: Columns) -> None:
        self._answers, self._columns = answers, columns

    def final(self, raw: Ints, rows: Rows) -> Ints:
        nodes = [self._columns.chosen(row) for row in rows.tolist()]
        several = self._answers.of((node.name, node.labels) for node in nodes)
        return framework.scaled(np.array([answer.rating for answer in several], np.int64))
