"""The node agent as a DRA driver: holds the resource claims that the kubelet has it prepare.

Covers: preparing and unpreparing, when the kubelet is served, when the API server is asked again.
Does not cover: what is offered (``policy.cpu.dra_driver``), which CPUs a claim gets
(``policy.cpu.exclusive_cpus``), whether it has them (``claim_grant``), the record on disk
(``claim_record``), what a comparison gives up (``workloads.claim_comparison``), the socket
(``rpc.dra_plugin``), the slices (``report.slice_row``).

Rules:
1. A claim is prepared when a pass has granted all that it asks for, the files of all others say so,
   and the kernel can hold its containers to it. Else it is given up again, and the kubelet is told
   why; it tries again.
2. Which containers use a claim is in the pods: a claim is prepared once its pods are known here, so
   that their containers are right before the first instruction. Waiting for them is cheaper than a
   refusal: the kubelet tries again when it syncs the pod, after ``syncFrequency`` (60 to 90 s).
3. A claim is held until the kubelet unprepares it. The record on disk has it before it is given
   anything; a disk that refuses or does not answer in time refuses the claim. Unpreparing waits for
   the disk too, and is never refused: the pod could not end.
4. After a start, and after each start of the kubelet, the claims of that moment are compared with
   the API server; those that no pod of this node uses, once a minute. Nothing is given up while the
   server does not answer or the kubelet has not listed its pods since the start, and nothing that
   was prepared or unprepared while it did.
5. While a claim is held the socket stays, whatever the policy says: the kubelet could not end its
   pod otherwise. New claims are refused then; one that is prepared stays so.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from koordlet.agent import claim_grant, claim_record
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model import decision, errors, prepared_claim
from koordlet.policy.cpu import dra_driver
from koordlet.state import disk
from koordlet.workloads import claim_comparison, claim_status

if typing.TYPE_CHECKING:
    from koordlet.agent import lifecycle
    from koordlet.model import pod
    from koordlet.rpc import dra_plugin
    from koordlet.workloads import gatherer

#: Passes until files, groups and threads are as decided.
_SETTLE = 5
#: Seconds that a claim waits for its pods to be known, and between two looks.
_ARRIVAL, _LOOK = 20.0, 0.05
#: Seconds after its call that a claim ceases to wait for the disk. The kubelet waits 45 for an
#: answer.
_ANSWER = 35.0
#: Seconds until a socket or a server that failed is tried again.
_AGAIN = 10.0
#: Seconds between two comparisons of claims that no pod uses.
_COMPARE = 60.0


class DraDriver:
    """The driver of one agent. Everything here happens in the agent's event loop."""

    def __init__(
        self,
        agent: lifecycle.Agent,
        sources: gatherer.Gatherer,
        store: objects.Objects,
        directory: str,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._agent = agent
        self._sources = sources
        self._store = store
        #: Of the kubelet's plugins.
        self._directory = Path(directory)
        self._clock = clock
        self._run_pass: Callable[[], bool] = lambda: False
        kept, problem = claim_record.revive(agent.checkpoints)
        self._record = claim_record.ClaimRecord(agent, kept.claims)
        agent.publisher.warn_discarded(dra_driver.STEM, problem)
        self._driver = kept.driver
        #: By UID.
        self._claims = {claim.uid: claim for claim in kept.claims}
        self._agent.tick.observation.hold_claims(self._claims.values())
        self._plugin: dra_plugin.DraPlugin | None = None
        #: Starting or stopping the socket, or comparing with the API server.
        self._work: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        #: Claims by namespace and name that are to be compared with the API server.
        self._doubtful: frozenset[claim_comparison.Key] = frozenset()
        #: UIDs that were unprepared meanwhile: the server may still say that their pods use them.
        self._ended: frozenset[str] = frozenset()
        self._compared_at = float("-inf")
        #: How often what is held has changed.
        self._changes = 0
        #: Registrations by the kubelet, and the number of the one in force; 0: none is.
        self._registrations = self._registered = 0
        self._failed_at = float("-inf")
        self._problem = ""
        self._prepared = self._unprepared = self._refused = 0

    def start(self, run_pass: Callable[[], bool]) -> None:
        """Begin: the first pass is over."""
        self._run_pass = run_pass

    def on_pass(self) -> None:
        """Serve the kubelet, or cease to, as the newest decision says."""
        if self._work is not None and not self._work.done():
            return
        if self._clock() - self._failed_at <= _AGAIN:
            return
        if self._clock() - self._compared_at >= _COMPARE:
            self._compared_at = self._clock()
            self._doubtful |= claim_comparison.unused(self._claims.values(), self._pods())
        name = self._wanted()
        plugin = self._plugin
        serving = plugin.name if plugin is not None else ""
        # Whoever empties the kubelet's directory takes the socket along.
        if name != serving or (plugin is not None and not plugin.listening()):
            self._work = asyncio.create_task(self._guard(self._serve(name)))
        elif name and self._doubtful and self._sources.newest.kubelet_listed:
            self._work = asyncio.create_task(self._guard(self._reconcile()))

    async def _guard(self, work: Awaitable[None]) -> None:
        """Do something beside the passes; what fails costs itself, and is tried again."""
        try:
            await work
        except Exception as error:  # noqa: BLE001 -- the boundary: nobody waits for this task
            publisher = self._agent.publisher
            why = repr(error)
            publisher.repeats.say(publisher.log.error, "dra_driver.failed", why, detail=why)
            self._failed_at, self._problem = self._clock(), why

    async def stop(self) -> None:
        """Close the socket. Claims stay in the checkpoint for the next agent."""
        if self._work is not None:
            self._work.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._work
        await self._serve("")

    def conditions(self) -> tuple[decision.Condition, ...]:
        """Give what an operator should know."""
        why, kind = self._problem, "DRADriverFailed"
        return (decision.Condition(type=kind, reason="DRADriver", message=why),) if why else ()

    def counted(self) -> Mapping[str, float]:
        """Give the counters, for metrics."""
        return {
            "claims": len(self._claims),
            "prepared": self._prepared,
            "unprepared": self._unprepared,
            "refused": self._refused,
            # No metric: slices are written for a kubelet that has the driver.
            prepared_claim.REGISTRATION: 0 if self._served() is None else self._registered,
        }

    # The socket -----------------------------------------------------------------------------------

    def _offer(self) -> prepared_claim.DeviceOffer | None:
        view = self._agent.publisher.view
        return None if view is None else view.plan.devices

    def _served(self) -> prepared_claim.DeviceOffer | None:
        """The offer, where it is under the name that the kubelet knows."""
        offer = self._offer()
        return offer if offer is not None and offer.driver == self._driver else None

    def _wanted(self) -> str:
        """The name to serve under; empty for none (rule 5)."""
        if self._claims:
            return self._driver
        offer = self._offer()
        return "" if offer is None else offer.driver

    async def _serve(self, name: str) -> None:
        self._registered = 0
        if self._plugin is not None:
            plugin, self._plugin = self._plugin, None
            await plugin.stop()
            self._agent.publisher.log.info("dra_driver.stopped", driver=plugin.name)
        if not name:
            self._problem = ""
            return
        from koordlet.rpc import dra_plugin  # noqa: PLC0415 -- gRPC: only where claims are served

        pool = self._agent.tick.observation.node.name
        plugin = dra_plugin.DraPlugin(self._directory, name, pool, self)
        try:
            await plugin.start()
        except errors.KoordletError as error:
            self._failed_at, self._problem = self._clock(), str(error)
            return
        self._plugin, self._driver, self._problem = plugin, name, ""
        self._doubtful |= claim_comparison.at_start(self._claims.values(), self._pods())
        self._agent.publisher.log.info("dra_driver.listening", driver=name)

    def registered(self, problem: str) -> None:
        """Take the kubelet's word on the registration: it has started, or refuses the driver."""
        self._problem = f"the kubelet refuses the driver: {problem}" if problem else ""
        self._registrations += 1
        self._registered = 0 if problem else self._registrations
        self._doubtful |= claim_comparison.at_start(self._claims.values(), self._pods())
        say = self._agent.publisher.log.warning if problem else self._agent.publisher.log.info
        say("dra_driver.registered", driver=self._driver, problem=problem)

    def health(self) -> Mapping[str, str]:
        """Map each device that is offered or held to what is wrong with a claim of it."""
        view = self._agent.publisher.view
        return claim_grant.health(view, self._served(), self._claims.values())

    # Claims ---------------------------------------------------------------------------------------

    async def prepare(self, ref: dra_plugin.ClaimRef) -> Sequence[prepared_claim.Share]:
        """Prepare a claim; the same again where it is prepared."""
        began = self._clock()
        try:
            claim = await self._allocated(ref, began + _ARRIVAL)
            async with self._lock:
                return (await self._prepare(ref, claim, began + _ANSWER)).shares
        except errors.KoordletError as error:
            self._refused += 1
            log = self._agent.publisher.log
            log.warning("dra_driver.refused", claim=str(ref), detail=str(error))
            raise

    async def _allocated(
        self, ref: dra_plugin.ClaimRef, until: float
    ) -> prepared_claim.PreparedClaim:
        """Read what was allocated to a claim, and wait for its pods."""
        try:
            claim, users = await self._read(ref)
        except refusals.Unavailable:
            if (known := self._claims.get(ref.uid)) is None:
                raise
            # The kubelet has restarted, and the API server is away: what is prepared stays.
            return known
        await self._arrived(users, claim, until)
        return claim

    async def _prepare(
        self, ref: dra_plugin.ClaimRef, claim: prepared_claim.PreparedClaim, until: float
    ) -> prepared_claim.PreparedClaim:
        before, known = self._claims, self._claims.get(claim.uid)
        if known is not None and replace(claim, since=known.since) == known:
            claim = known
        # Whoever had the name before is gone from the server, whether or not the kubelet says so.
        held = claim_comparison.without(before, (ref.namespace, ref.name), but=claim.uid)
        held[claim.uid] = claim
        if why := await self._recorded(held, claim, until):
            fix = f"{disk.FIX}; {_RETRY}"
        else:
            self._hold(held)
            why, fix = claim_grant.lacks(self._agent.publisher.view, claim), _RETRY
        if why:
            self._hold(before)
            raise claim_status.ClaimError(why, culprit=f"claim {ref}", fix=fix)
        if known is not claim:
            self._prepared += 1
            cpus = str(claim_grant.cpus(self._agent.publisher.view, claim))
            self._agent.publisher.log.info("dra_driver.prepared", claim=str(ref), cpus=cpus)
        return claim

    async def _recorded(
        self,
        held: Mapping[str, prepared_claim.PreparedClaim],
        claim: prepared_claim.PreparedClaim,
        until: float,
    ) -> str:
        """Have claims on disk before one of them is answered; why they are not (rule 3)."""
        if held == self._claims and self._record.has(claim):
            return ""
        self._record.save(self._driver, held.values())
        try:
            return await self._record.written(self._clock, until)
        except asyncio.CancelledError:
            # The kubelet waits no longer.
            self._record.save(self._driver, self._claims.values())
            raise

    async def unprepare(self, ref: dra_plugin.ClaimRef) -> None:
        """Give back what a claim has; nothing where it has nothing."""
        until = self._clock() + _ANSWER
        async with self._lock:
            if self._doubtful:
                self._ended |= {ref.uid}
            if ref.uid in self._claims:
                self._hold({uid: kept for uid, kept in self._claims.items() if uid != ref.uid})
                self._unprepared += 1
                log = self._agent.publisher.log
                log.info("dra_driver.unprepared", claim=str(ref))
                if why := await self._record.written(self._clock, until):
                    log.warning("dra_driver.unrecorded", claim=str(ref), detail=why)

    async def _read(
        self, ref: dra_plugin.ClaimRef
    ) -> tuple[prepared_claim.PreparedClaim, frozenset[str]]:
        known = self._claims.get(ref.uid)
        offer = self._served()
        if known is not None:
            # The kubelet has restarted: what is prepared stays so, whatever is offered now.
            offer = (offer or prepared_claim.DeviceOffer(driver=self._driver)).including(known)
        if offer is None:
            why = "this node offers no devices now"
            raise claim_status.ClaimError(why, culprit=f"claim {ref}", fix=_CONDITIONS)
        body = await self._store.get(objects.Ref(kinds.RESOURCE_CLAIMS, ref.name, ref.namespace))
        claim = self._decoded(body, ref.uid, offer)
        return claim, frozenset(claim_status.users(body))

    def _decoded(
        self, body: objects.Object, uid: str, offer: prepared_claim.DeviceOffer
    ) -> prepared_claim.PreparedClaim:
        tick = self._agent.tick
        return claim_status.decode(
            body,
            uid=uid,
            node=tick.observation.node.name,
            offer=offer,
            wall=tick.clock().wall,
        )

    async def _arrived(
        self, users: frozenset[str], claim: prepared_claim.PreparedClaim, until: float
    ) -> None:
        """Wait until its pods are known (rule 2)."""
        while missing := users - {listed.uid for listed in self._pods()}:
            if self._clock() > until:
                break
            await asyncio.sleep(_LOOK)
        if missing == users:
            culprit = f"claim {claim.namespace}/{claim.name}"
            why = "none of the pods that it is reserved for is known on this node yet"
            raise claim_status.ClaimError(why, culprit=culprit, fix=_RETRY)

    def _pods(self) -> Sequence[pod.Pod]:
        return self._sources.newest.pods

    def _hold(self, claims: Mapping[str, prepared_claim.PreparedClaim]) -> None:
        """Hold these claims from now on: in the record, and in the files of all workloads."""
        self._claims, self._changes = dict(claims), self._changes + 1
        self._record.save(self._driver, claims.values())
        self._agent.tick.observation.hold_claims(claims.values())
        for _ in range(_SETTLE):
            if not self._run_pass():
                break

    # After another agent --------------------------------------------------------------------------

    async def _reconcile(self) -> None:
        """Compare claims with the API server (rule 4)."""
        for key in sorted(self._doubtful):
            changes, body = self._changes, None
            namespace, name = key
            try:
                body = await self._store.get(objects.Ref(kinds.RESOURCE_CLAIMS, name, namespace))
            except refusals.NotFound:
                pass
            except errors.KoordletError as error:
                self._unknown(key, error)
                if isinstance(error, refusals.Unavailable):
                    self._failed_at = self._clock()
                    return
                self._doubtful -= {key}
                continue
            async with self._lock:
                if key in self._doubtful and changes == self._changes:
                    self._doubtful -= {key}
                    self._compare(key, body)
        if not self._doubtful:
            self._ended = frozenset()

    def _compare(self, key: claim_comparison.Key, body: objects.Object | None) -> None:
        """Hold or give up the claims of a name, as the API server has it; ``None``: not at all."""
        claims = claim_comparison.kept(self._claims, key, body, self._pods())
        offer = self._served()
        if body is not None and offer is not None and claim_comparison.used(body):
            uid = objects.text(body, "uid")
            try:
                there = uid in claims or uid in self._ended
                lost = None if there else self._decoded(body, uid, offer)
            except claim_status.ClaimError as error:
                self._unknown(key, error)
                lost = None
            if lost is not None and lost.shares:
                claims[uid] = lost
        if claims != self._claims:
            self._agent.publisher.log.info("dra_driver.reconciled", claims=len(claims))
            self._hold(claims)

    def _unknown(self, key: claim_comparison.Key, error: errors.KoordletError) -> None:
        log = self._agent.publisher.log
        log.warning("dra_driver.unknown", claim="/".join(key), detail=str(error))


_RETRY = "the kubelet tries again"
_CONDITIONS = "see the agent's conditions"
