"""What the allocation of devices to pods depends on: slices, classes, claims, and what follows.

Covers: the claims of a pod and why it has to wait for one, demands that pods have in common, who
waits for which claim. Does not cover: nodes and their order (``plugins.dynamic_resources``).
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from koordlet.model.record import dataclass
from koordlet.scheduler.claims import claim_book, node_answers, pools, selector
from koordlet.scheduler.claims.demand import ClaimDemand, prepare
from koordlet.scheduler.objects import device_classes, pod_claims, resource_claims
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.resource_claims import ClaimAllocation, ResourceClaim

#: Demands whose answers are remembered: a few hundred kilobytes each in a large cluster.
_MOST_DEMANDS = 32


class ClaimProblemError(Exception):
    """A pod has to wait for one of its claims, whatever nodes there are; the text says why."""


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


class AllocationState:
    """One for all profiles of a scheduler."""

    def __init__(self, spent: Callable[[], float] = time.monotonic) -> None:
        self.pools = pools.PoolBook()
        self.claims = claim_book.ClaimBook()
        self.classes: dict[str, device_classes.DeviceClass] = {}
        self._spent = spent
        self._answers: OrderedDict[tuple[bytes, ...], node_answers.NodeAnswers] = OrderedDict()
        #: The pod that was asked about last, the state of claims then, the answer.
        self._last: tuple[Pod, int, PodDemand] | None = None
        #: Pods by key that were about to enter the queue, by the claims that they name.
        self._users: dict[claim_book.ClaimKey, set[str]] = {}

    def put_class(self, known: device_classes.DeviceClass) -> None:
        """A class comes, or changes."""
        self.classes[known.name] = known
        self._answers.clear()
        self._last = None

    def drop_class(self, name: str) -> None:
        """A class goes."""
        self.classes.pop(name, None)
        self._answers.clear()
        self._last = None

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
        return tuple(self._claim(pod, entry) for entry in pod.claims if not entry.needless)

    def _claim(self, pod: Pod, entry: pod_claims.PodClaim) -> ResourceClaim:
        if not entry.claim:
            raise ClaimProblemError(f'pod "{pod.key}": ResourceClaim not created yet')
        claim = self.claims.get((pod.namespace, entry.claim))
        if claim is None:
            raise ClaimProblemError(f'resourceclaim "{entry.claim}" not found')
        if claim.deleting:
            raise ClaimProblemError(f'resourceclaim "{entry.claim}" is being deleted')
        if entry.template and claim.owner_uid != pod.uid:
            raise ClaimProblemError(
                f"ResourceClaim {claim.key} was not created for pod {pod.key} (pod is not owner)"
            )
        return claim

    def demand(self, pod: Pod) -> PodDemand:
        """What a pod needs of nodes; one decision asks several times.

        ``ClaimProblemError`` where none can help it now, ``AllocationError`` where a claim makes no
        sense.
        """
        last, revision = self._last, self.claims.revision
        if last is not None and last[0] is pod and last[1] == revision:
            return last[2]
        demanded = self._demand(pod)
        self._last = pod, revision, demanded
        return demanded

    def _demand(self, pod: Pod) -> PodDemand:
        claims, pending, held = self.claims_of(pod), [], []
        for claim in claims:
            allocation = self.claims.allocation((claim.namespace, claim.name))
            if allocation is None:
                self._check_classes(claim)
                pending.append(claim)
                continue
            full = len(claim.reserved_for) >= resource_claims.MOST_CONSUMERS
            if full and not claim.serves(pod.uid):
                raise ClaimProblemError("resourceclaim in use")
            held.append(allocation)
        answers = self._answered(pending) if pending else None
        return PodDemand(claims, tuple(pending), tuple(held), answers)

    def _check_classes(self, claim: ResourceClaim) -> None:
        for request in claim.requests:
            for wish in request.subrequests or (request,):
                if wish.class_name and wish.class_name not in self.classes:
                    where = request.name if wish is request else f"{request.name}/{wish.name}"
                    raise ClaimProblemError(
                        f"request {where}: device class {wish.class_name} does not exist"
                    )

    def prepared(self, claims: Sequence[ResourceClaim]) -> tuple[ClaimDemand, ...]:
        """Claims made ready for a search; ``AllocationError`` where one makes no sense."""
        return prepare(claims, self.classes, selector.compile)

    def _answered(self, claims: Sequence[ResourceClaim]) -> node_answers.NodeAnswers:
        """The answers of nodes to these claims, or to others that ask for the same."""
        key = tuple(claim.asked for claim in claims)
        known = self._answers.get(key)
        if known is None:
            wanted = self.prepared(claims)
            known = node_answers.NodeAnswers(wanted, self.pools, self.claims.in_use, self._spent)
            self._answers[key] = known
            if len(self._answers) > _MOST_DEMANDS:
                self._answers.popitem(last=False)
        self._answers.move_to_end(key)
        return known
