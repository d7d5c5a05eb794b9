"""What the allocation of devices to pods depends on: slices, classes, claims, and what follows.

Covers: the claims of a pod and why it has to wait for one, the claim that stands for its extended
resources, demands that pods have in common, who waits for which claim.
Does not cover: nodes and their order (``plugins.dynamic_resources``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from koordlet.model.record import dataclass
from koordlet.scheduler.claims import claim_book, node_answers, pools, search_time, selector
from koordlet.scheduler.claims.demand import ClaimDemand, prepare
from koordlet.scheduler.objects import (
    device_classes,
    extended_resources,
    generated_claims,
    pod_claims,
    resource_claims,
)
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.objects.resource_claims import ClaimAllocation, ResourceClaim

#: Demands whose answers are remembered: a few hundred kilobytes each in a large cluster.
_MOST_DEMANDS = 32
#: Why a pod is not tried while a claim of an earlier attempt is there.
STALE = "cannot schedule extended resource claim"
#: Of a node that lacks none of the extended resources that classes serve.
NOTHING: frozenset[str] = frozenset()


class ClaimProblemError(Exception):
    """A pod has to wait for one of its claims, whatever nodes there are; the text says why."""


@dataclass(frozen=True, slots=True)
class ExtendedClaim:
    """A claim for extended resources that is to be made, and how containers use its requests."""

    claim: ResourceClaim
    body: Mapping[str, Any]
    mappings: Sequence[Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class PodDemand:
    """What a pod needs of nodes."""

    claims: tuple[ResourceClaim, ...] = ()
    #: Those without an allocation or a promise.
    pending: tuple[ResourceClaim, ...] = ()
    #: What the others have.
    held: tuple[ClaimAllocation, ...] = ()
    #: What nodes say to the pending ones; ``None``: there are none.
    answers: node_answers.NodeAnswers | None = None
    #: The one of the pending that is to be made.
    extended: ExtendedClaim | None = None


class AllocationState:
    """One for all profiles of a scheduler."""

    def __init__(self, spent: Callable[[], float] = time.monotonic) -> None:
        self.pools = pools.PoolBook()
        self.claims = claim_book.ClaimBook()
        self.classes: dict[str, device_classes.DeviceClass] = {}
        self._spent = spent
        self._answers: OrderedDict[tuple[bytes, ...], node_answers.NodeAnswers] = OrderedDict()
        #: The pod that was asked about last, the state of claims then, the answers.
        self._last: tuple[Pod, int, dict[frozenset[str], PodDemand]] | None = None
        #: Extended resources, and the classes that serve them.
        self._serving: dict[str, str] = {}
        #: By pod the claim that will be made for its extended resources.
        self._extended: dict[str, ExtendedClaim] = {}
        #: Pods by key that were about to enter the queue, by the claims that they name.
        self._users: dict[claim_book.ClaimKey, set[str]] = {}

    def put_class(self, known: device_classes.DeviceClass) -> None:
        """A class comes, or changes."""
        self.classes[known.name] = known
        self._reclassified()

    def drop_class(self, name: str) -> None:
        """A class goes."""
        self.classes.pop(name, None)
        self._reclassified()

    def _reclassified(self) -> None:
        self._answers.clear()
        self._last = None
        # The newest class serves a resource that several name; of equals the first by name.
        by_name = sorted(self.classes.values(), key=lambda each: each.name, reverse=True)
        several = sorted(by_name, key=lambda each: each.created)
        self._serving = {name: each.name for each in several for name in each.resources}

    def claimable(self, pod_class: PodClass) -> frozenset[str]:
        """The extended resources of a class of pods that classes of devices serve."""
        if not pod_class.extended:
            return NOTHING
        named = (each.resource for each in pod_class.extended)
        return frozenset(name for name in named if name in self._serving)

    def use(self, pod: Pod) -> None:
        """Remember who has to hear of changes of a pod's claims."""
        for entry in pod.claims:
            if entry.claim:
                self._users.setdefault((pod.namespace, entry.claim), set()).add(pod.key)

    def users(self, key: claim_book.ClaimKey) -> set[str]:
        """Pods that have named a claim, by key; who is gone may be among them."""
        return self._users.get(key, set())

    def tidy(self, waits: Callable[[str], object]) -> None:
        """Forget pods that wait no more: of claims that are made for pods each has another name."""
        kept = {key: {pod for pod in pods if waits(pod)} for key, pods in self._users.items()}
        self._users = {key: pods for key, pods in kept.items() if pods}

    def claims_of(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        """The claims of a pod in its order; ``ClaimProblemError`` where one is not ready."""
        claims = [self._claim(pod, entry) for entry in pod.claims if not entry.needless]
        extended = self.claims.extended(pod.uid) if pod.pod_class.extended else None
        return (*claims, *([extended] if extended is not None else []))

    def _claim(self, pod: Pod, entry: pod_claims.PodClaim) -> ResourceClaim:
        if not entry.claim:
            raise ClaimProblemError(f'pod "{pod.key}": ResourceClaim not created yet')
        claim = self.claims.get((pod.namespace, entry.claim))
        if claim is None:
            raise ClaimProblemError(f'resourceclaim "{entry.claim}" not found')
        if claim.deleting:
            raise ClaimProblemError(f'resourceclaim "{entry.claim}" is being deleted')
        if entry.template and pod.replaces and claim.owner_uid == pod.replaces:
            # Its template makes another one.
            return dataclasses.replace(
                claim, name=f"{claim.name}-", allocation=None, reserved_for=()
            )
        if entry.template and claim.owner_uid != pod.uid:
            raise ClaimProblemError(
                f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)"
            )
        return claim

    @contextlib.contextmanager
    def without(self, pod: Pod) -> Iterator[None]:
        """As if the claims that were made for a pod had gone with it, while the block runs."""
        claims = [self.claims.get((pod.namespace, entry.claim)) for entry in pod.claims]
        if pod.pod_class.extended:
            claims.append(self.claims.extended(pod.uid))
        own = [
            claim.allocation
            for claim in claims
            if claim is not None and claim.owner_uid == pod.uid and claim.allocation is not None
        ]
        for allocation in own:
            self.claims.in_use.remove(allocation)
        try:
            yield
        finally:
            for allocation in own:
                self.claims.in_use.add(allocation)

    def extend(self, extended: ExtendedClaim) -> None:
        """A pod was promised what it lacks; the claim will be made."""
        self.claims.wrote(extended.claim)
        self._extended[extended.claim.owner_uid] = extended

    def extension(self, pod: str) -> ExtendedClaim | None:
        """The claim for extended resources that a pod, by its UID, is not told of yet."""
        return self._extended.get(pod)

    def settle(self, pod: str) -> None:
        """A pod is told of its claim for extended resources."""
        self._extended.pop(pod, None)

    def retract(self, pod: str) -> ResourceClaim | None:
        """A pod needs its claim for extended resources no more; the claim, where it was made."""
        self._extended.pop(pod, None)
        claim = self.claims.extended(pod)
        if claim is not None and not claim.uid:
            self.claims.drop((claim.namespace, claim.name))
            return None
        return claim

    def demand(self, pod: Pod, lacking: frozenset[str] = NOTHING) -> PodDemand:
        """What a pod needs of nodes that lack these of its resources; a decision asks repeatedly.

        ``ClaimProblemError`` where none can help it now, ``AllocationError`` where a claim makes no
        sense.
        """
        last, revision = self._last, self.claims.revision
        if last is None or last[0] is not pod or last[1] != revision:
            last = self._last = pod, revision, {}
        demanded = last[2].get(lacking)
        if demanded is None:
            demanded = last[2][lacking] = self._demand(pod, lacking)
        return demanded

    def _demand(self, pod: Pod, lacking: frozenset[str]) -> PodDemand:
        claims, pending, held = self.claims_of(pod), [], []
        if claims and claims[-1].is_extended:
            self._users.setdefault((pod.namespace, claims[-1].name), set()).add(pod.key)
            raise ClaimProblemError(STALE)
        extended = self._made_of(pod, lacking) if lacking else None
        if extended is not None:
            claims = (*claims, extended.claim)
        for claim in claims:
            allocation = self.claims.allocation((claim.namespace, claim.name))
            if allocation is None:
                self._check_classes(claim)
                pending.append(claim)
                continue
            full = len(claim.reserved_for) >= resource_claims.MOST_CONSUMERS
            if full and not claim.serves(pod.uid):
                raise ClaimProblemError("resourceclaim in use")
            # What cannot be made ready is of no use on any node.
            useless = claim.has_failed and allocation is claim.allocation
            held.append(dataclasses.replace(allocation, selector=()) if useless else allocation)
        answers = self._answered(pending) if pending else None
        return PodDemand(claims, tuple(pending), tuple(held), answers, extended)

    def answers_for(
        self, pod: Pod, claims: Sequence[ResourceClaim], lacking: frozenset[str]
    ) -> node_answers.NodeAnswers | None:
        """What nodes that lack these of its resources say to a pod with such pending claims."""
        more = [self._made_of(pod, lacking).claim] if lacking else []
        return self._answered([*claims, *more]) if claims or more else None

    def _made_of(self, pod: Pod, lacking: frozenset[str]) -> ExtendedClaim:
        classes = {name: known for name in lacking if (known := self._serving.get(name))}
        requests, mappings = extended_resources.requests(pod.pod_class.extended, classes)
        body = generated_claims.of_resources(pod.namespace, pod.name, pod.uid, requests)
        # No object may have this name: it is that of a claim which has none yet.
        name = body["metadata"]["generateName"]
        named = {**body, "metadata": {**body["metadata"], "name": name}}
        return ExtendedClaim(resource_claims.decode(named), body, mappings)

    def _check_classes(self, claim: ResourceClaim) -> None:
        for request in claim.requests:
            for wish in request.subrequests or (request,):
                if wish.class_name and wish.class_name not in self.classes:
                    where = request.name if wish is request else f"{request.name}/{wish.name}"
                    raise ClaimProblemError(
                        f"request {where}: device class {wish.class_name} does not exist"
                    )

    def search_time(self) -> search_time.SearchTime:
        """The time for a look that begins now."""
        return search_time.SearchTime(self._spent)

    def prepared(self, claims: Sequence[ResourceClaim]) -> tuple[ClaimDemand, ...]:
        """Claims made ready for a search; ``AllocationError`` where one makes no sense."""
        return prepare(claims, self.classes, selector.compile)

    def _answered(self, claims: Sequence[ResourceClaim]) -> node_answers.NodeAnswers:
        """The answers of nodes to these claims, or to others that ask for the same."""
        key = tuple(claim.asked for claim in claims)
        known = self._answers.get(key)
        if known is None or known.broken:
            wanted = self.prepared(claims)
            if known is None:
                in_use, time = self.claims.in_use, self.search_time()
                known = node_answers.NodeAnswers(wanted, self.pools, in_use, time)
            else:
                known = known.handed_on(wanted)
            self._answers[key] = known
            if len(self._answers) > _MOST_DEMANDS:
                self._answers.popitem(last=False)
        self._answers.move_to_end(key)
        return known
