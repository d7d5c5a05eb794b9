"""Writes claims: what they were promised before a pod is bound, and what nobody uses any more.

Covers: allocation, finalizer and ``reservedFor``, in the order of kube-scheduler; claims that are
made for extended resources; conditions that devices have to meet first. Does not cover: what is
decided (``plugins.dynamic_resources``).

Rules:
1. Each write names the revision that it was decided on. After a conflict, or without an answer,
   the claim is read, however long that takes: its devices may be written, and stay promised. What
   somebody else gave it meanwhile ends the binding, all else is tried again.
2. The finalizer comes first: a claim with devices does not go without their being given back.
3. A claim is taken from a pod only while the pod is assumed nowhere: it may have been tried again.
4. Nothing is written while another scheduler may lead: it may have given the devices to others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from koordlet import log
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model import moment
from koordlet.model.record import dataclass
from koordlet.scheduler.claims.allocation_state import (
    AllocationState,
    ClaimProblemError,
    ExtendedClaim,
)
from koordlet.scheduler.framework import RefusedError
from koordlet.scheduler.objects import resource_claims
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.resource_claims import (
    AllocatedDevice,
    ClaimAllocation,
    ResourceClaim,
)
from koordlet.scheduler.objects.wire import BadObjectError

#: Attempts at one write against conflicts, and without an answer.
_ATTEMPTS = 5
#: Seconds between two looks at the conditions of devices, or at a store that does not answer.
_LOOK = 5.0
#: The same at whether this scheduler leads again, and first at such a store.
_LEAD = 0.2


@dataclass(frozen=True, slots=True)
class _Release:
    """A claim that a pod does not use; without a pod: that has no devices any more."""

    claim: ResourceClaim
    pod: str = ""
    key: str = ""
    #: The claim is not needed any more.
    deletes: bool = False


class ClaimWriter:
    """Writes the claims of one scheduler."""

    def __init__(
        self,
        store: objects.Objects,
        state: AllocationState,
        wall: Callable[[], float],
        assumed: Callable[[str], bool],
        pending: Callable[[Pod], None],
        *,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store, self._state, self._wall, self._leads = store, state, wall, leads
        #: Told of a pod whose binding begins to wait for its devices.
        self._pending = pending
        #: Whether a pod is assumed on a node, by key (rule 3).
        self._assumed = assumed
        #: By UID of a claim whose allocation names no time, since when its devices are waited for.
        self.since: dict[str, float] = {}
        self._due: asyncio.Queue[_Release] = asyncio.Queue()

    @property
    def _led_store(self) -> objects.Objects:
        """The store, to write; ``Unavailable`` while another scheduler may lead (rule 4)."""
        if not self._leads():
            raise refusals.Unavailable("another scheduler may lead by now", culprit="claims")
        return self._store

    async def bind(self, pod: Pod, patience: float) -> None:
        """Write what a pod's claims were promised, and that it uses them."""
        extended = self._state.extension(pod.uid)
        for known in self._claims(pod):
            claim = known
            if extended is not None and not known.uid:
                body = await self._led_store.create(kinds.RESOURCE_CLAIMS, dict(extended.body))
                claim = resource_claims.decode(body)
                self._state.claims.made(known, claim)
            if claim.allocation is None or not claim.serves(pod.uid):
                await self._reserve(pod, claim)
            if extended is not None and claim.is_extended:
                await self._name(pod, claim, extended)
        if self.waiting(pod, patience):
            self._pending(pod)

    async def _name(self, pod: Pod, claim: ResourceClaim, extended: ExtendedClaim) -> None:
        """Tell a pod, and so its kubelet, which claim stands for its extended resources."""
        status = {"resourceClaimName": claim.name, "requestMappings": list(extended.mappings)}
        patch = objects.Merge({"status": {"extendedResourceClaimStatus": status}})
        await self._led_store.patch(
            objects.Ref(kinds.PODS, pod.name, pod.namespace), patch, subresource="status"
        )
        self._state.settle(pod.uid)

    def _claims(self, pod: Pod) -> tuple[ResourceClaim, ...]:
        try:
            return self._state.claims_of(pod)
        except ClaimProblemError as problem:
            raise RefusedError(str(problem)) from problem

    async def _reserve(self, pod: Pod, claim: ResourceClaim) -> None:
        key, uid = (claim.namespace, claim.name), claim.uid
        expected = self._state.claims.allocation(key)
        if expected is None:
            raise RefusedError(f"claim {claim.key} got deallocated elsewhere in the meantime")
        problem: refusals.ObjectsError | None = None
        for _ in range(_ATTEMPTS):
            if claim.deleting or claim.uid != uid:
                raise RefusedError(f"claim {claim.key} got deleted in the meantime")
            allocation = claim.allocation
            if allocation is not None and allocation.devices != expected.devices:
                raise RefusedError(f"claim {claim.key} got allocated elsewhere in the meantime")
            try:
                claim = await self._written(pod, claim, expected)
            except (refusals.Conflict, refusals.Unavailable) as error:
                claim, problem = await self._read(claim), error
                if claim.allocation is not None and claim.serves(pod.uid):
                    return
                continue
            return
        if isinstance(problem, refusals.Unavailable):
            raise problem
        raise RefusedError(f"claim {claim.key} was changed by others {_ATTEMPTS} times in a row")

    async def _written(
        self, pod: Pod, claim: ResourceClaim, allocation: ClaimAllocation
    ) -> ResourceClaim:
        """The claim after one attempt at its finalizer and its status."""
        mine = {"resource": "pods", "name": pod.name, "uid": pod.uid}
        status: dict[str, Any] = {"reservedFor": [mine]}
        if claim.allocation is None:
            if resource_claims.FINALIZER not in claim.finalizers:
                claim = await self._protected(claim)
            stamp = moment.spell(self._wall())
            status["allocation"] = {**allocation.document(), "allocationTimestamp": stamp}
        return await self._patch(claim, {"status": status}, "status")

    async def _protected(self, claim: ResourceClaim) -> ResourceClaim:
        """A claim with its finalizer.

        A server compares the parameters of drivers byte by byte, but hands them out as compact
        JSON: where they were written otherwise, every patch seems to change them.
        """
        wish = {"metadata": {"finalizers": [resource_claims.FINALIZER]}}
        try:
            return await self._patch(claim, wish)
        except refusals.Invalid as error:
            raise RefusedError(
                f"claim {claim.key} cannot get its finalizer ({error}); write parameters of drivers"
                " as compact JSON, as kubectl does"
            ) from error

    async def _patch(
        self, claim: ResourceClaim, body: objects.Object, subresource: str = ""
    ) -> ResourceClaim:
        patch = objects.Strategic(body, claim.resource_version)
        answer = await self._led_store.patch(_ref(claim), patch, subresource=subresource)
        return self._take(answer)

    async def _read(self, claim: ResourceClaim) -> ResourceClaim:
        """A claim as the store has it, as soon as the store says."""
        wait = _LEAD
        while True:
            try:
                body = await self._led_store.get(_ref(claim))
            except refusals.Unavailable:
                if not self._leads():
                    raise
                await asyncio.sleep(wait)
                wait = min(2 * wait, _LOOK)
            else:
                return self._take(body)

    def _take(self, body: objects.Object) -> ResourceClaim:
        try:
            claim = self._state.claims.read(body)
        except BadObjectError as error:
            key = "/".join(objects.key(body))
            raise refusals.Failed(
                f"what stands there cannot be read: {error}", culprit=key
            ) from error
        self._state.claims.wrote(claim)
        return claim

    # Conditions of devices.

    def waiting(self, pod: Pod, patience: float) -> float:
        """Seconds after which to ask again whether a pod's devices are ready; 0: they are.

        ``RefusedError``: they will not be, or have not been for so many seconds.
        """
        wait = 0.0
        for claim in self._claims(pod):
            allocation = claim.allocation
            devices = allocation.devices if allocation is not None else ()
            ready = [
                self._is_ready(pod, claim, device, patience)
                for device in devices
                if device.binding_conditions
            ]
            if all(ready):
                self.since.pop(claim.uid, None)
            else:
                wait = _LOOK
        return wait

    def _is_ready(
        self, pod: Pod, claim: ResourceClaim, device: AllocatedDevice, patience: float
    ) -> bool:
        true, failed = claim.true_conditions(device), claim.failures(device)
        if failed:
            why = f"cannot be used: {', '.join(sorted(failed))}"
        elif true.issuperset(device.binding_conditions):
            return True
        elif self._wall() - self._began(claim) > patience:
            lacking = ", ".join(sorted(set(device.binding_conditions) - true))
            why = f"did not become ready within {patience:g} s: {lacking}"
        else:
            return False
        self.since.pop(claim.uid, None)
        # Others may run with it.
        if not claim.serves_others(pod.uid):
            self.deallocate(claim)
        name = f"{device.driver}/{device.pool}/{device.device}"
        raise RefusedError(f"claim {claim.key}: device {name} {why}")

    def _began(self, claim: ResourceClaim) -> float:
        """When a claim got its devices; where nobody wrote it down: since they are waited for."""
        try:
            return moment.parse(claim.allocation.timestamp if claim.allocation else None)
        except ValueError:
            if claim.uid not in self.since:
                living = {known.uid for known in self._state.claims if known.allocation}
                self.since = {uid: at for uid, at in self.since.items() if uid in living}
            return self.since.setdefault(claim.uid, self._wall())

    # What nobody uses.

    def release(self, pod: Pod, claim: ResourceClaim) -> None:
        """Write some time that a pod does not use a claim."""
        if not claim.serves_others(pod.uid):
            self.since.pop(claim.uid, None)
        self._due.put_nowait(_Release(claim, pod.uid, pod.key))

    def deallocate(self, claim: ResourceClaim) -> None:
        """Write some time that a claim has no devices any more."""
        self._due.put_nowait(_Release(claim))

    def delete(self, claim: ResourceClaim) -> None:
        """Delete some time a claim that was made for the extended resources of a pod."""
        self._due.put_nowait(_Release(claim, deletes=True))

    async def run(self) -> None:
        """Write what is due until cancelled."""
        while True:
            due = await self._due.get()
            if not self._leads():
                self._due.put_nowait(due)
                await asyncio.sleep(_LEAD)
                continue
            if due.pod and self._assumed(due.key):
                continue
            try:
                await (self._deleted(due.claim) if due.deletes else self._released(due))
            except (refusals.NotFound, refusals.Conflict):
                continue  # it has changed: the pod that asked is woken by that
            except refusals.ObjectsError as error:
                log.get().warning(
                    "scheduler.claim_not_released", claim=due.claim.key, detail=str(error)
                )

    async def _released(self, due: _Release) -> None:
        # What drivers say of devices goes with them: it would count for whoever gets one next.
        status: dict[str, Any] = {"allocation": None, "reservedFor": None, "devices": None}
        # A pod is taken from the list whatever else has changed; devices only from the claim
        # that they were decided to be taken from.
        revision = "" if due.pod else due.claim.resource_version
        if due.pod:
            status = {"reservedFor": [{"$patch": "delete", "uid": due.pod}]}
        body = {"metadata": {"uid": due.claim.uid}, "status": status}
        patch = objects.Strategic(body, revision)
        self._take(await self._led_store.patch(_ref(due.claim), patch, subresource="status"))

    async def _deleted(self, claim: ResourceClaim) -> None:
        """Its finalizer goes first: it would keep the claim until somebody takes its devices."""
        claim = self._state.claims.get((claim.namespace, claim.name)) or claim
        rest = [name for name in claim.finalizers if name != resource_claims.FINALIZER]
        if len(rest) < len(claim.finalizers):
            patch = objects.Merge(
                {"metadata": {"finalizers": rest or None}}, claim.resource_version
            )
            await self._led_store.patch(_ref(claim), patch)
        await self._led_store.delete(_ref(claim), uid=claim.uid)


def _ref(claim: ResourceClaim) -> objects.Ref:
    return objects.Ref(kinds.RESOURCE_CLAIMS, claim.name, claim.namespace)
