"""Calls back what quotas have lent: evicts the pods that ``quotas.revoke`` names.

Covers: asking for each at the peer's pace, trying again, events on pod and quota, the count.
Does not cover: which pods go (``quotas.revoke``), how one is evicted (``evictions``).

Rules:
1. ``maxRevokePerMinute`` takes the place of the evictions a minute of all movers. Budgets and rates
   of disruptions hold.
2. A pod that may not go now is asked for again at the next look; each reason is told once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from koordlet.scheduler.disruption.answers import Allow, Deny, EvictionRate, Mover
from koordlet.scheduler.loop import event_messages, evictions
from koordlet.scheduler.quotas.history import QuotaAct, QuotaHistory
from koordlet.scheduler.quotas.revoke import QuotaAmounts, Revocation, RevokeWatch
from koordlet.scheduler.quotas.settings import QuotaSettings

CAUSE = "QuotaRevoked"
_MINUTE = 60.0


class RevokeController:
    """Evicts the pods of quotas that are above their runtime."""

    def __init__(
        self,
        picture: Callable[[], QuotaAmounts],
        settings: QuotaSettings,
        evicting: evictions.Evictions,
        history: QuotaHistory,
    ) -> None:
        self._picture, self._settings, self._evictions = picture, settings, evicting
        self._history = history
        self._watch = RevokeWatch(
            settings.delay_evict_seconds,
            lambda pod: evicting.limiter.fairness(pod, evicting.now()),
        )
        self._mover = Mover(
            name="quota",
            acts=True,
            limit=EvictionRate(settings.max_revoke_per_minute, _MINUTE),
            reclaims=True,
        )
        #: Evictions under way, and the last reason of each refusal, by UID.
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._refused: dict[str, str] = {}

    async def run(self) -> None:
        """Work until cancelled; off unless all quotas are monitored and the runtime bounds them."""
        if not (self._settings.monitors and self._settings.uses_runtime):
            return
        try:
            while True:
                self.look()
                await asyncio.sleep(self._settings.revoke_interval_seconds)
        finally:
            for task in self._busy.values():
                task.cancel()

    def look(self) -> None:
        """Begin the evictions that are due."""
        now = self._evictions.now()
        revocations = self._watch.look(self._picture(), now.steady)
        due = {revocation.pod.uid for revocation in revocations}
        self._refused = {uid: why for uid, why in self._refused.items() if uid in due}
        for revocation in revocations:
            uid = revocation.pod.uid
            if uid in self._busy:
                continue
            answer = self._evictions.limiter.may_evict(revocation.pod, CAUSE, self._mover, now)
            why = "" if isinstance(answer, Allow) else answer.reason
            if why and self._refused.get(uid) == why:
                continue  # it is told already (rule 2)
            self._refused[uid] = why
            self._busy[uid] = asyncio.ensure_future(self._evict(revocation))
            if isinstance(answer, Deny) and why == "GlobalRate":
                return  # so it is for all others

    async def settled(self) -> None:
        """Wait for the evictions under way."""
        await asyncio.gather(*self._busy.values())

    async def _evict(self, revocation: Revocation) -> None:
        pod, quota = revocation.pod, revocation.quota
        try:
            result = await self._evictions.evict(
                evictions.EvictionRequest(
                    pod=pod, mover=self._mover, cause=CAUSE, reason=revocation.message
                )
            )
        finally:
            del self._busy[pod.uid]
        if not result.evicted:
            self._refused[pod.uid] = result.reason
            return
        self._evictions.measures.revoked[quota.name,] += 1
        now = self._evictions.now().steady
        self._history.note_pod(quota.name, pod.key, QuotaAct.CALLED_BACK, now)
        scheduler = pod.pod_class.scheduler
        text = f"pod {pod.key} is called back: {revocation.message}"
        message = event_messages.EventMessage(pod, CAUSE, "Evicting", text, warning=True)
        events = self._evictions.events
        about = events.about_quota(quota.spec, scheduler, "Evicting", CAUSE, text)
        for body in (events.event(message), about):
            await self._evictions.tell(body)
