"""DynamicResources: devices for the resource claims of pods.

Covers: whether a pod's claims are ready, the devices that they get, giving back what nobody uses;
extended resources that a node lacks and a class of devices serves. Does not cover: which nodes have
devices (``claim_demand``), the search (``scheduler.claims``), writing claims
(``loop.claim_writer``).

Rules:
1. Pods are tried as a variant of their class for what their claims ask for, not for their names: a
   job of thousands has one view, and each of its pods costs a search on the node that changed.
2. A node is asked for devices first, then whether it reaches what other claims of the pod have.
   Nobody has to leave a node for it: devices are given back by claims, not by pods.
3. From the decision on, devices are promised. Where a claim is shared, pods count on one promise.
4. A claim that cannot be judged (a selector that fails, too many devices) ends the attempt; the pod
   waits until slices, classes or its claims change.
5. What a node lacks of a pod's extended resources is one more claim, which is made before the
   binding. It goes with the attempt: a claim that an earlier one has left is deleted first.
"""

from __future__ import annotations

import dataclasses
import functools
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

from koordlet.model import moment
from koordlet.scheduler import framework
from koordlet.scheduler.claims import allocator, explanation, results, search_time
from koordlet.scheduler.claims.allocation_state import (
    NOTHING,
    AllocationState,
    ClaimProblemError,
    PodDemand,
)
from koordlet.scheduler.claims.demand import AllocationError, ClaimDemand
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.objects import wire
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.resource_claims import ClaimAllocation, ResourceClaim
from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins.claim_demand import (
    OUT_OF_REACH,
    ClassDemand,
    DemandFilter,
    ExtendedFilter,
    WishScore,
    demand_of,
)

_NOTHING_TO_GIVE_BACK = "no new claims to deallocate"
_GAVE_BACK = "deallocation of ResourceClaim completed"
_DELETED = "deletion of ResourceClaim completed"
_STUCK = "still not schedulable"
#: Seconds for a pod's devices to become ready, where the arguments name none.
_PATIENCE = 600.0
#: What ``filterTimeout``, which has no effect, may say: kube-scheduler's own, in seconds.
_HARMLESS = 10.0
_ARGUMENTS = frozenset({"apiVersion", "kind", "bindingTimeout", "filterTimeout"})
#: Variants of classes that are kept; a view that is gone costs one look at all nodes.
_MOST_VARIANTS = 512


class ClaimWrites(Protocol):
    """Writes claims."""

    def bind(self, pod: Pod, patience: float) -> Awaitable[None]:
        """Write what a pod's claims were promised, and that it uses them."""

    def waiting(self, pod: Pod, patience: float) -> float:
        """Seconds after which to ask again whether a pod's devices are ready; 0: they are.

        ``RefusedError``: they will not be, or have not been for so many seconds.
        """

    def release(self, pod: Pod, claim: ResourceClaim) -> None:
        """Write some time that a pod does not use a claim."""

    def deallocate(self, claim: ResourceClaim) -> None:
        """Write some time that a claim has no devices any more."""

    def delete(self, claim: ResourceClaim) -> None:
        """Delete some time a claim that was made for the extended resources of a pod."""


def _seconds(args: Mapping[str, Any], key: str, default: float) -> float:
    spelled = wire.text(args, key)
    try:
        return moment.duration(spelled) if spelled else default
    except ValueError as error:
        raise BadObjectError(f"DynamicResources: {key}: {error}") from error


class DynamicResources(framework.Plugin):
    """Which nodes have the devices that a pod's claims ask for, and which devices they are."""

    name = "DynamicResources"
    listens = (
        ActionType.NODE_NEW
        | ActionType.NODE_LABELS
        | ActionType.NODE_ROOM
        | ActionType.DEVICES
        | ActionType.POD_GONE
    )

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self.patience = _seconds(args, "bindingTimeout", _PATIENCE)
        if self.patience < 1:
            raise BadObjectError("DynamicResources: bindingTimeout: must be at least 1 second")
        if _seconds(args, "filterTimeout", _HARMLESS) < 0:
            raise BadObjectError("DynamicResources: filterTimeout: must be zero or positive")
        self.state = AllocationState()
        self._writes: ClaimWrites | None = None
        self._columns: Columns | None = None
        self._variants: OrderedDict[tuple[object, ...], PodClass] = OrderedDict()

    @property
    def warnings(self) -> Sequence[str]:
        stray = sorted(self.args.keys() - _ARGUMENTS)
        warnings = [f"{self.name}: {key!r} is unknown and ignored" for key in stray]
        if _seconds(self.args, "filterTimeout", _HARMLESS) != _HARMLESS:
            why = f"all searches of one look share {search_time.MOST_SECONDS:g} s"
            warnings.append(f"{self.name}: filterTimeout has no effect: {why}")
        return warnings

    def attach(self, state: AllocationState, writes: ClaimWrites | None) -> None:
        """Have the state that all profiles share, and whoever writes claims, if anybody does."""
        self.state, self._writes = state, writes

    def concerned(self, event: ClusterEvent) -> bool:
        # Only a pod that was not bound gives devices back itself.
        pod = event.pod
        return event.what is not ActionType.POD_GONE or bool(pod is not None and _claims(pod))

    def helps(self, event: ClusterEvent, pod_class: PodClass) -> bool:
        # Room helps where a node may give an extended resource itself.
        return event.what is not ActionType.NODE_ROOM or bool(pod_class.extended)

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
        claimable = self.state.claimable(pod.pod_class)
        if not (pod.claims or claimable) or pod.reserve_pod_of:
            return ""
        try:
            self.state.demand(pod, claimable)
        except (ClaimProblemError, AllocationError) as problem:
            return str(problem)
        return ""

    def _lacking(self, pod: Pod, node: Node) -> frozenset[str]:
        """Which of a pod's extended resources a node does not have itself, and a class serves."""
        claimable = self.state.claimable(pod.pod_class)
        return frozenset(name for name in claimable if not node.allocatable.get(name))

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
        claimable = self.state.claimable(pod_class)
        if not (pod.claims or claimable) or pod.reserve_pod_of:
            return pod_class
        key: tuple[object, ...]
        try:
            wanted = self.state.demand(pod, claimable)
            held = tuple(allocation.selector for allocation in wanted.held)
            key = pod_class, wanted.answers, held, claimable
        except (ClaimProblemError, AllocationError) as problem:
            key = pod_class, str(problem)
        known = self._variants.get(key)
        if known is None:
            asked = self._class_demand(pod, claimable)
            known = dataclasses.replace(pod_class, demand=asked, claimable=claimable)
            self._variants[key] = known
            if len(self._variants) > _MOST_VARIANTS:
                self._variants.popitem(last=False)
        self._variants.move_to_end(key)
        return known

    def _class_demand(self, pod: Pod, claimable: frozenset[str]) -> ClassDemand:
        try:
            wanted = self.state.demand(pod, claimable)
        except (ClaimProblemError, AllocationError) as problem:
            return ClassDemand(problem=str(problem))
        if not claimable:
            return ClassDemand(lambda _: wanted.answers, wanted.held)
        own = self.state.demand(pod).pending
        return ClassDemand(
            functools.partial(self.state.answers_for, pod, own),
            wanted.held,
            tuple(sorted(claimable)),
        )

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        self._columns = columns
        asked = demand_of(pod_class)
        if asked is None:
            return None
        if asked.problem:
            raise framework.RefusedError(asked.problem)
        if asked.resources:
            return ExtendedFilter(asked, columns)
        return DemandFilter(asked.answers_for(NOTHING), asked.held, columns)

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score | None:
        asked = demand_of(pod_class)
        answers = None if asked is None or asked.problem else asked.answers_for(NOTHING)
        # What stands for extended resources has no wishes.
        if asked is None or answers is None or not answers.has_wishes:
            return None
        return WishScore(asked, columns)

    def outlook(self, pod_class: PodClass, columns: Columns, row: int) -> str:
        asked = demand_of(pod_class)
        answers = None if asked is None else asked.answers_for(asked.lacking(columns, row))
        if answers is None:
            return ""
        node = columns.chosen(row)
        view = self.state.pools.view(node.name, node.labels)
        time = self.state.search_time()
        solution = allocator.search(answers.claims, view, self.state.claims.in_use, time)
        return ", ".join("/".join(choice.device.id) for choice in solution.devices)

    def details(self, pod: Pod, columns: Columns, row: int) -> Sequence[str]:
        try:
            node = columns.chosen(row)
            pending = self.state.demand(pod, self._lacking(pod, node)).pending
            if not pending:
                return []
            view = self.state.pools.view(node.name, node.labels)
            in_use, time = self.state.claims.in_use, self.state.search_time()
            ready = self.state.prepared(pending)
            if not allocator.search(ready, view, in_use, time).why_not:
                return []
            return explanation.lines(ready, view, in_use, time)
        except (ClaimProblemError, AllocationError) as problem:
            return [str(problem)]

    def prepare(self, pod: Pod, node: str) -> None:
        columns = self._columns
        if not _claims(pod) or pod.reserve_pod_of or columns is None:
            return
        try:
            wanted = self.state.demand(pod, self._lacking(pod, columns.chosen(columns.rows[node])))
            allocations = self._allocations(wanted, node)
        except (ClaimProblemError, AllocationError) as problem:
            raise framework.RefusedError(str(problem)) from problem
        if wanted.extended is not None:
            self.state.extend(wanted.extended)
        for claim in wanted.claims:
            self.state.claims.count_on((claim.namespace, claim.name), pod.uid)
        for claim, allocation in zip(wanted.pending, allocations, strict=True):
            self.state.claims.make_promise(claim, allocation, pod.uid)

    def unreserve(self, pod: Pod, node: str) -> None:
        if not _claims(pod):
            return
        self.state.claims.withdraw(pod.uid)
        made = self.state.retract(pod.uid)
        if made is not None and self._writes is not None:
            self._writes.delete(made)
        for entry in pod.claims:
            claim = self.state.claims.get((pod.namespace, entry.claim))
            if claim is not None and self._writes is not None and claim.serves(pod.uid):
                self._writes.release(pod, claim)

    def pre_bind(self, pod: Pod, node: str) -> Awaitable[None] | None:
        if not _claims(pod) or self._writes is None:
            return None
        self._check_reach(pod, node)
        return self._writes.bind(pod, self.patience)

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
        if not _claims(pod) or self._writes is None:
            return 0.0
        return self._writes.waiting(pod, self.patience)

    def post_filter(
        self, pod: Pod, refused: Mapping[str, framework.Verdict]
    ) -> framework.Rescue | None:
        if pod.reserve_pod_of:
            return None
        left = self.state.claims.extended(pod.uid)
        if left is not None and self._writes is not None:
            self._writes.delete(left)
            return framework.Rescue(_DELETED)
        if not (pod.claims or self.state.claimable(pod.pod_class)) or not refused:
            return framework.Rescue(_NOTHING_TO_GIVE_BACK)
        for claim in self._out_of_reach(pod, refused):
            if not claim.serves_others(pod.uid) and self._writes is not None:
                self._writes.deallocate(claim)
                return framework.Rescue(_GAVE_BACK)
        return framework.Rescue(_STUCK)

    def _out_of_reach(
        self, pod: Pod, refused: Mapping[str, framework.Verdict]
    ) -> list[ResourceClaim]:
        """The claims of a pod whose devices are of no use to a node, in the pod's order."""
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
            and (
                claim.has_failed
                or not all(allocation.reaches(node.name, node.labels) for node in nodes)
            )
        ]


def _claims(pod: Pod) -> bool:
    """Whether there may be claims of a pod."""
    return bool(pod.claims or pod.pod_class.extended)
