"""Who of several schedulers may decide: a Lease, and clocks that nobody has to share.

Covers: acquiring, renewing, losing, giving back. Does not cover: what a leader does.

Rules:
1. A lease is over when its record has not changed for its duration, by our own monotonic clock
   since we saw it change; what the record says about time is never compared with a clock.
2. Every write is compare and swap: of two candidates one is told no.
3. A leader that could not renew for ``renew_seconds`` is none any more, whether it hears of it or
   not: ``leading`` is asked before each decision, and is false after a long sleep of the machine.
4. A leader renews its own record and no other: whoever had the lease meanwhile has decided what it
   has not seen. It ends, and begins with a list of everything.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import random
from collections.abc import Callable
from typing import Any

from koordlet import log
from koordlet.kubeapi import kinds, objects, refusals
from koordlet.model import errors
from koordlet.model.record import dataclass


class LostError(errors.HostError):
    """Leadership is lost or cannot be verified."""

    code = "leadership"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The lease and its times."""

    name: str = "koordlet-scheduler"
    namespace: str = "kube-system"
    lease_seconds: float = 15.0
    renew_seconds: float = 10.0
    retry_seconds: float = 2.0


class Election:
    """Leader election of one candidate, over a Lease."""

    def __init__(
        self,
        store: objects.Objects,
        identity: str,
        clock: Callable[[], float],
        wall: Callable[[], float],
        terms: Terms | None = None,
    ) -> None:
        self.terms = Terms() if terms is None else terms
        self.identity = identity
        self._store, self._clock, self._wall = store, clock, wall
        self._ref = objects.Ref(kinds.LEASES, self.terms.name, self.terms.namespace)
        #: The record as it was last seen, and since when.
        self._seen: Any = None
        self._since = 0.0
        self._renewed: float | None = None
        #: Why we do not lead, as the log has it.
        self._why = ""

    @property
    def leading(self) -> bool:
        """Whether this process is the leader now."""
        known = self._renewed
        return known is not None and self._clock() - known < self.terms.renew_seconds

    async def acquire(self) -> None:
        """Wait until we are the leader."""
        while not await self._attempt():  # noqa: ASYNC110 -- another process decides
            # By chance, so that candidates do not come all at once.
            await asyncio.sleep(self.terms.retry_seconds * (1 + 0.2 * random.random()))  # noqa: S311

    async def hold(self) -> None:
        """Renew the lease until cancelled; ``LostError`` when it is lost."""
        while self.leading:
            await asyncio.sleep(self.terms.retry_seconds)
            await self._attempt()
        raise LostError(
            "the lease is lost", culprit=str(self._ref), fix="another scheduler may hold it"
        )

    async def release(self) -> None:
        """Release the lease, so that the next candidate need not wait."""
        if not self.leading:
            return
        self._renewed = None
        try:
            body = await self._store.get(self._ref)
            if _spec(body).get("holderIdentity") == self.identity:
                empty = {"holderIdentity": "", "leaseDurationSeconds": 1}
                patch = objects.Merge({"spec": empty}, objects.revision(body))
                await self._store.patch(self._ref, patch)
        except refusals.ObjectsError:
            return  # it ends by itself

    async def _attempt(self) -> bool:
        asked, done, event, tell = self._clock(), False, "election.waits", log.get().info
        if self.leading:
            event, tell = "election.not_renewed", log.get().warning
        try:
            async with asyncio.timeout(self.terms.renew_seconds / 2):
                done = await self._write()
            holder = self._seen.get("holderIdentity") if self._seen else ""
            why = "" if done else f"{holder or 'nobody'} holds it"
        except (refusals.ObjectsError, TimeoutError) as error:
            why, tell = str(error) or "the API server does not answer", log.get().warning
        if why and why != self._why:
            tell(event, lease=str(self._ref), detail=why)
        self._why = why
        if done:
            # From when we asked: the answer may have been long on its way.
            self._renewed = asked
        return done

    async def _write(self) -> bool:
        try:
            body = await self._store.get(self._ref)
        except refusals.NotFound:
            if self._renewed is not None and not self.leading:
                self._renewed = None  # whoever deleted it may have had it (rule 4)
                return False
            await self._store.create(
                kinds.LEASES,
                {
                    "metadata": {"name": self._ref.name, "namespace": self._ref.namespace},
                    "spec": {**self._mine(), "acquireTime": self._moment(), "leaseTransitions": 0},
                },
            )
            return True
        spec = _spec(body)
        if spec != self._seen:
            self._seen, self._since = spec, self._clock()
        holder = spec.get("holderIdentity")
        if holder == self.identity:
            more: dict[str, Any] = {}
        elif self._renewed is not None or (
            holder and self._clock() - self._since < _seconds(spec, self.terms.lease_seconds)
        ):
            # Who was the leader is none any more, even where the lease is free again (rule 4).
            self._renewed = None
            return False
        else:
            count = spec.get("leaseTransitions")
            transitions = (count if isinstance(count, int) else 0) + 1
            more = {"acquireTime": self._moment(), "leaseTransitions": transitions}
        patch = objects.Merge({"spec": {**self._mine(), **more}}, objects.revision(body))
        await self._store.patch(self._ref, patch)
        return True

    def _mine(self) -> dict[str, Any]:
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": int(self.terms.lease_seconds),
            "renewTime": self._moment(),
        }

    def _moment(self) -> str:
        now = dt.datetime.fromtimestamp(self._wall(), dt.UTC)
        return now.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _spec(body: objects.Object) -> dict[str, Any]:
    spec = body.get("spec")
    return dict(spec) if isinstance(spec, dict) else {}


def _seconds(spec: dict[str, Any], default: float) -> float:
    """The duration of a lease record; ours where the record makes no sense."""
    seconds = spec.get("leaseDurationSeconds")
    return float(seconds) if isinstance(seconds, int) and 0 < seconds < 86_400 else default
