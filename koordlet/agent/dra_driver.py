"""The node agent as a DRA driver: holds the resource claims that the kubelet has it prepare.

Covers: preparing and unpreparing, what is kept of it, when the kubelet is served, what an agent
finds that comes after another. Does not cover: what is offered (``policy.cpu.dra_driver``), which
CPUs a claim gets (``policy.cpu.exclusive_cpus``), the socket (``rpc.dra_plugin``), the slices
(``report.slice_row``).

Rules:
1. A claim is prepared when a pass has granted all that it asks for, the files of all others say so,
   and the kernel can hold its containers to it. Else it is given up again, and the kubelet is told
   why; it tries again.
2. Which containers use a claim is in the pods: a claim is prepared once its pods are known here, so
   that their containers are right before the first instruction. Waiting for them is cheaper than a
   refusal: the kubelet tries again when it syncs the pod, after ``syncFrequency`` (60 to 90 s).
3. A claim is held until the kubelet unprepares it. What it holds is in a checkpoint; after a start,
   and after each start of the kubelet, the claims of that moment are compared with the API server:
   those that are gone or free are given up, those of running pods that no checkpoint has are held
   again. What is prepared later was read then.
4. While a claim is held the socket stays, whatever the policy says: the kubelet could not end its
   pod otherwise. New claims are refused then.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import typing
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model import decision, errors, pod, prepared_claim
from koordlet.model.record import dataclass
from koordlet.policy.cpu import claimed_cpus, dra_driver
from koordlet.policy.framework import saved_state
from koordlet.state import checkpoint, disk
from koordlet.workloads import claim_status

if typing.TYPE_CHECKING:
    from koordlet.agent import lifecycle
    from koordlet.rpc import dra_plugin
    from koordlet.workloads import gatherer

STEM = dra_driver.STEM
#: Version of ``DriverRecord``.
_SCHEMA = 1
#: Passes until files, groups and threads are as decided.
_SETTLE = 5
#: Seconds that a claim waits for its pods to be known, and between two looks. The kubelet waits 45
#: for an answer.
_ARRIVAL, _LOOK = 20.0, 0.05
#: Seconds until a socket or a server that failed is tried again.
_AGAIN = 10.0
_REFUSALS = frozenset({"ClaimRefused", "ResctrlRefused", "ResctrlNoRoom"})


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverRecord:
    """State to keep across restarts."""

    #: The name under which the claims were prepared.
    driver: str = ""
    claims: tuple[prepared_claim.PreparedClaim, ...] = ()


def revive(checkpoints: checkpoint.Checkpoints) -> tuple[DriverRecord, str]:
    """Read what an agent has prepared here; with the problem of a record that is not used."""
    record, problem = checkpoints.revive(
        STEM, _SCHEMA, lambda body: saved_state.decode(DriverRecord, body)
    )
    return DriverRecord() if record is None else record, problem


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
        kept, problem = revive(agent.checkpoints)
        agent.publisher.warn_discarded(STEM, problem)
        self._driver = kept.driver
        #: By UID.
        self._claims = {claim.uid: claim for claim in kept.claims}
        self._agent.tick.observation.hold_claims(self._claims.values())
        self._plugin: dra_plugin.DraPlugin | None = None
        #: Starting or stopping the socket, or comparing with the API server.
        self._work: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        #: Claims by namespace and name that are to be compared with the API server.
        self._doubtful: frozenset[tuple[str, str]] = frozenset()
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
        name = self._wanted()
        serving = self._plugin.name if self._plugin is not None else ""
        if name != serving:
            self._work = asyncio.create_task(self._guard(self._serve(name)))
        elif name and self._doubtful:
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
            prepared_claim.REGISTRATION: self._registered,
        }

    # The socket -----------------------------------------------------------------------------------

    def _offer(self) -> prepared_claim.DeviceOffer | None:
        view = self._agent.publisher.view
        return None if view is None else view.plan.devices

    def _wanted(self) -> str:
        """The name to serve under; empty for none (rule 4)."""
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
        self._doubtful |= self._named()
        self._agent.publisher.log.info("dra_driver.listening", driver=name)

    def registered(self, problem: str) -> None:
        """Take the kubelet's word on the registration: it has started, or refuses the driver."""
        self._problem = f"the kubelet refuses the driver: {problem}" if problem else ""
        self._registrations += 1
        self._registered = 0 if problem else self._registrations
        self._doubtful |= self._named()
        say = self._agent.publisher.log.warning if problem else self._agent.publisher.log.info
        say("dra_driver.registered", driver=self._driver, problem=problem)

    def health(self) -> Mapping[str, str]:
        """Map each device that is offered or held to what is wrong with a claim of it."""
        offer = self._offer()
        wrong = {} if offer is None else dict.fromkeys((d.name for d in offer.devices), "")
        for claim in self._claims.values():
            why = self._why_not(claim)
            why = why and f"claim {claim.namespace}/{claim.name}: {why}"
            for share in claim.shares:
                wrong[share.device] = wrong.get(share.device) or why
        return wrong

    # Claims ---------------------------------------------------------------------------------------

    async def prepare(self, ref: dra_plugin.ClaimRef) -> Sequence[prepared_claim.Share]:
        """Prepare a claim; the same again where it is prepared."""
        try:
            claim = await self._allocated(ref)
            async with self._lock:
                return self._prepare(ref, claim).shares
        except errors.KoordletError as error:
            self._refused += 1
            log = self._agent.publisher.log
            log.warning("dra_driver.refused", claim=_name(ref), detail=str(error))
            raise

    async def _allocated(self, ref: dra_plugin.ClaimRef) -> prepared_claim.PreparedClaim:
        """Read what was allocated to a claim, and wait for its pods."""
        try:
            claim, users = await self._read(ref)
        except refusals.Unavailable:
            if (known := self._claims.get(ref.uid)) is None:
                raise
            # The kubelet has restarted, and the API server is away: what is prepared stays.
            return known
        await self._arrived(users, claim)
        return claim

    def _prepare(
        self, ref: dra_plugin.ClaimRef, claim: prepared_claim.PreparedClaim
    ) -> prepared_claim.PreparedClaim:
        known = self._claims.get(claim.uid)
        if known is not None and replace(claim, since=known.since) == known:
            claim = known
        self._hold({**self._claims, claim.uid: claim})
        why = self._why_not(claim)
        if why:
            if known is None:
                self._hold({uid: kept for uid, kept in self._claims.items() if uid != claim.uid})
            raise claim_status.ClaimError(why, culprit=f"claim {_name(ref)}", fix=_RETRY)
        if known is not claim:
            self._prepared += 1
            held = self._granted(claim)
            self._agent.publisher.log.info("dra_driver.prepared", claim=_name(ref), cpus=str(held))
        return claim

    async def unprepare(self, ref: dra_plugin.ClaimRef) -> None:
        """Give back what a claim has; nothing where it has nothing."""
        async with self._lock:
            # The server may still say that its pod uses it.
            self._doubtful -= {(ref.namespace, ref.name)}
            if ref.uid in self._claims:
                self._hold({uid: kept for uid, kept in self._claims.items() if uid != ref.uid})
                self._unprepared += 1
                self._agent.publisher.log.info("dra_driver.unprepared", claim=_name(ref))

    async def _read(
        self, ref: dra_plugin.ClaimRef
    ) -> tuple[prepared_claim.PreparedClaim, frozenset[str]]:
        offer = self._offer()
        if offer is None or offer.driver != self._driver:
            why = "this node offers no devices now"
            raise claim_status.ClaimError(why, culprit=f"claim {_name(ref)}", fix=_CONDITIONS)
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

    async def _arrived(self, users: frozenset[str], claim: prepared_claim.PreparedClaim) -> None:
        """Wait until its pods are known (rule 2)."""
        deadline = self._clock() + _ARRIVAL
        while missing := users - {listed.uid for listed in self._sources.newest.pods}:
            if self._clock() > deadline:
                break
            await asyncio.sleep(_LOOK)
        if missing == users:
            culprit = f"claim {claim.namespace}/{claim.name}"
            why = "none of the pods that it is reserved for is known on this node yet"
            raise claim_status.ClaimError(why, culprit=culprit, fix=_RETRY)

    def _hold(self, claims: Mapping[str, prepared_claim.PreparedClaim]) -> None:
        """Hold these claims from now on: in a checkpoint, and in the files of all workloads."""
        self._claims = dict(claims)
        self._agent.tick.observation.hold_claims(claims.values())
        record = DriverRecord(driver=self._driver, claims=tuple(claims.values()))
        self._agent.checkpoints.save(STEM, _SCHEMA, record, saved_state.encode)
        self._agent.tick.flush_checkpoints(self._agent, disk.PATIENCE)
        for _ in range(_SETTLE):
            if not self._run_pass():
                break

    def _granted(self, claim: prepared_claim.PreparedClaim) -> object:
        view = self._agent.publisher.view
        held = None if view is None else view.plan.ledger.of(claim.uid)
        return "" if held is None else held.cpus

    def _why_not(self, claim: prepared_claim.PreparedClaim) -> str:
        """Why a claim has not all that it asks for; empty where it has (rule 1)."""
        view = self._agent.publisher.view
        if view is None:
            return "no pass is complete"
        for condition in view.plan.conditions:
            if condition.subject == claim.holder and condition.type in _REFUSALS:
                return condition.message
        held = view.plan.ledger.of(claim.uid)
        count = 0 if held is None else len(held.cpus)
        if count < claim.count:
            return f"{count} of its {claim.count} CPUs could be given"
        there = view.snapshot.resctrl
        if claim.caches and (there is None or claim.control_group not in there.groups):
            return "the kernel has no control group for it: see koordlet audit"
        return claimed_cpus.unconfined(replace(view.snapshot, ledger=view.plan.ledger), claim)

    # After another agent --------------------------------------------------------------------------

    async def _reconcile(self) -> None:
        """Compare claims with the API server (rule 3)."""
        async with self._lock:
            doubtful, self._doubtful = self._doubtful, frozenset()
            claims = dict(self._claims)
            for namespace, name in sorted(doubtful):
                try:
                    ref = objects.Ref(kinds.RESOURCE_CLAIMS, name, namespace)
                    self._look(await self._store.get(ref), claims)
                except refusals.NotFound:
                    _drop(claims, (namespace, name))
                except errors.KoordletError as error:
                    if isinstance(error, refusals.Unavailable):
                        self._failed_at = self._clock()
                        self._doubtful |= {(namespace, name)}
                    log, named = self._agent.publisher.log, f"{namespace}/{name}"
                    log.warning("dra_driver.unknown", claim=named, detail=str(error))
            if claims != self._claims:
                self._agent.publisher.log.info("dra_driver.reconciled", claims=len(claims))
                self._hold(claims)

    def _named(self) -> frozenset[tuple[str, str]]:
        """The claims that are held, and those of pods that run and shall go on."""
        held = frozenset((claim.namespace, claim.name) for claim in self._claims.values())
        return held | {
            (listed.namespace, used.partition("/")[0])
            for listed in self._sources.newest.pods
            if listed.phase is pod.Phase.RUNNING and listed.deleting is None
            for box in listed.containers
            for used in box.claims
        }

    def _look(self, body: objects.Object, claims: dict[str, prepared_claim.PreparedClaim]) -> None:
        """Hold or give up one claim, as the API server has it."""
        uid, offer = objects.text(body, "uid"), self._offer()
        _drop(claims, objects.key(body), but=uid)
        if not claim_status.allocation(body) or not claim_status.users(body):
            claims.pop(uid, None)
        elif uid not in claims and offer is not None:
            claim = self._decoded(body, uid, offer)
            if claim.cpus or claim.caches:
                claims[uid] = claim


_RETRY = "the kubelet tries again"
_CONDITIONS = "see the agent's conditions"


def _drop(
    claims: dict[str, prepared_claim.PreparedClaim], key: tuple[str, str], but: str = ""
) -> None:
    """Give up the claims of a name that have another UID."""
    for uid in [u for u, c in claims.items() if (c.namespace, c.name) == key and u != but]:
        del claims[uid]


def _name(ref: dra_plugin.ClaimRef) -> str:
    return f"{ref.namespace}/{ref.name}"
