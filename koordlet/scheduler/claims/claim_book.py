"""The claims of a cluster: as stored, as written a moment ago, and what they were promised.

Covers: the newest value of each claim, promises from a decision until they are written, the devices
that all of them have. Does not cover: choosing devices (``allocator``), writing (``claim_writer``).

Rules:
1. What was written is newer than what the store shows, until the store shows it or something later.
   A claim of the same name with another UID is another claim.
2. A promise is an allocation that was decided and is not written. Its devices are in use. It lasts
   until the claim has devices, or until no pod counts on it any more.
3. Several pods may count on one promise: whoever is bound first writes it.
4. A claim without a UID is not made yet: it stands for a pod's extended resources. Once it is made,
   its promise is that of the new one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from koordlet.kubeapi import objects
from koordlet.model.record import dataclass
from koordlet.scheduler.claims import devices_in_use
from koordlet.scheduler.objects import resource_claims
from koordlet.scheduler.objects.resource_claims import ClaimAllocation, ResourceClaim

#: Namespace and name.
ClaimKey = tuple[str, str]


@dataclass(slots=True)
class Promise:
    """What a claim will have, and the UIDs of the pods that count on it."""

    uid: str
    allocation: ClaimAllocation
    pods: set[str] = field(default_factory=set)


class ClaimBook:
    """Claims by namespace and name."""

    def __init__(self) -> None:
        self.in_use = devices_in_use.DevicesInUse()
        #: Another one after each change.
        self.revision = 0
        self._stored: dict[ClaimKey, ResourceClaim] = {}
        self._written: dict[ClaimKey, ResourceClaim] = {}
        self._promises: dict[ClaimKey, Promise] = {}
        #: By pod the claims with promises that it counts on.
        self._counting: dict[str, set[ClaimKey]] = {}
        #: By pod the claim that stands for its extended resources.
        self._extended: dict[str, ClaimKey] = {}
        #: What of each claim is in use.
        self._used: dict[ClaimKey, ClaimAllocation] = {}

    def __iter__(self) -> Iterator[ResourceClaim]:
        for key in sorted(self._stored.keys() | self._written.keys()):
            claim = self.get(key)
            if claim is not None:
                yield claim

    def get(self, key: ClaimKey) -> ResourceClaim | None:
        """The newest value of a claim."""
        return self._written.get(key) or self._stored.get(key)

    def read(self, body: objects.Object) -> ResourceClaim:
        """A claim from its JSON; a revision that the watch or an answer showed is not read again.

        ``BadObjectError`` has the path of the field that is no good.
        """
        known, revision = self.get(objects.key(body)), objects.revision(body)
        if known is not None and revision:
            same = known.uid, known.resource_version
            if same == (objects.text(body, "uid"), revision):
                return known
        return resource_claims.decode(body)

    def allocation(self, key: ClaimKey) -> ClaimAllocation | None:
        """What a claim has, or was promised."""
        claim = self.get(key)
        if claim is None or claim.allocation is not None:
            return None if claim is None else claim.allocation
        promise = self._promises.get(key)
        return None if promise is None or promise.uid != claim.uid else promise.allocation

    def extended(self, pod: str) -> ResourceClaim | None:
        """The claim that stands for the extended resources of a pod, by its UID."""
        key = self._extended.get(pod)
        return None if key is None else self.get(key)

    def put(self, claim: ResourceClaim) -> None:
        """The store shows a claim."""
        key = self._key(claim)
        self._stored[key] = claim
        written = self._written.get(key)
        if written is not None and not _is_older(claim, written):
            del self._written[key]
        if claim.allocation is not None:
            self._end(key)
        self._count(key)

    def drop(self, key: ClaimKey) -> None:
        """A claim is gone, and its promise with it."""
        claim = self.get(key)
        if claim is not None and self._extended.get(claim.owner_uid) == key:
            del self._extended[claim.owner_uid]
        self._stored.pop(key, None)
        self._written.pop(key, None)
        self._end(key)
        self._count(key)

    def wrote(self, claim: ResourceClaim) -> None:
        """The store has answered to a write with this; an allocation in it ends the promise."""
        key = self._key(claim)
        stored = self._stored.get(key)
        if stored is None or not (stored == claim or _is_older(claim, stored)):
            self._written[key] = claim
        if claim.allocation is not None:
            self._end(key)
        self._count(key)

    def made(self, claim: ResourceClaim, made: ResourceClaim) -> None:
        """A claim that had no UID is made, under another name; the promise is its own now."""
        before = claim.namespace, claim.name
        promise = self._promises.get(before)
        self.drop(before)
        self.wrote(made)
        if promise is not None and made.allocation is None:
            self.make_promise(made, promise.allocation, made.owner_uid)

    def make_promise(self, claim: ResourceClaim, allocation: ClaimAllocation, pod: str) -> None:
        """Let a claim have devices, for a pod by its UID."""
        key = claim.namespace, claim.name
        self._promises[key] = Promise(claim.uid, allocation)
        self._count(key)
        self.count_on(key, pod)

    def count_on(self, key: ClaimKey, pod: str) -> None:
        """A pod counts on what a claim was promised; nothing where it has that already."""
        promise = self._promises.get(key)
        if promise is not None:
            promise.pods.add(pod)
            self._counting.setdefault(pod, set()).add(key)

    def withdraw(self, pod: str) -> None:
        """A pod counts on nothing any more."""
        for key in self._counting.pop(pod, ()):
            promise = self._promises.get(key)
            if promise is not None:
                promise.pods.discard(pod)
                if not promise.pods:
                    del self._promises[key]
                    self._count(key)

    def _key(self, claim: ResourceClaim) -> ClaimKey:
        key = claim.namespace, claim.name
        if claim.is_extended:
            self._extended[claim.owner_uid] = key
        return key

    def _end(self, key: ClaimKey) -> None:
        promise = self._promises.pop(key, None)
        for pod in promise.pods if promise is not None else ():
            self._counting[pod].discard(key)
            if not self._counting[pod]:
                del self._counting[pod]

    def _count(self, key: ClaimKey) -> None:
        """Have in use what a claim has now."""
        self.revision += 1
        allocation, used = self.allocation(key), self._used.get(key)
        if allocation is used or (used and allocation and used.devices == allocation.devices):
            return
        if used is not None:
            self.in_use.remove(used)
            del self._used[key]
        if allocation is not None:
            self.in_use.add(allocation)
            self._used[key] = allocation


def _is_older(claim: ResourceClaim, other: ResourceClaim) -> bool:
    """Whether a value of a claim is from before another value of the same claim."""
    before = objects.older(claim.resource_version, other.resource_version)
    return before and claim.uid == other.uid
