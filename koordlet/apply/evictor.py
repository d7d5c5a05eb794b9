"""Evictor: carries evictions out beside the loop, with limits on number and rate.

Covers: what is under way, rate and number, pauses after a refusal, waiting for a pod to go.
Does not cover: who shall go (``policy``), how it is done (``api_eviction``, ``local_eviction``).

Rules:
1. A static or critical pod is never evicted, whatever a policy wants; nor is a pod of a stale
   source.
2. The number of evictions in flight is limited per signal: an eviction counts from the first
   attempt until the pod is gone or its time is up.
3. An evicted pod that still exists is not evicted again for five minutes.
4. A refusal (a disruption budget, a server that does not answer) delays the pod: as long as the
   server asks for, else longer each time. No other pod takes its place: the policy names one.
5. Evictions never block: each is a task of the event loop, with a deadline.
"""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

from koordlet.model import action, eviction, plan, result, snapshot
from koordlet.model.record import dataclass

#: Seconds that a pod which was evicted has to be gone, beyond its own grace.
_GOING = 60.0
#: Seconds after which a pod that did not go is evicted again.
_AGAIN = 300.0
#: Seconds of the first pause after a refusal, and of the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 300.0
#: Seconds that one attempt may take, beyond the grace.
_DEADLINE = 30.0
_MINUTE = 60.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of one attempt."""

    done: bool
    detail: str
    #: Seconds until the next attempt, where somebody said so.
    retry_after: float | None = None
    #: Nothing of it runs any more, whoever still lists it: its relief is there.
    gone: bool = False


class Way(Protocol):
    """Eviction backend: evicts one pod through the API or locally."""

    def __call__(self, victim: eviction.Eviction) -> Awaitable[Outcome]:
        """One attempt; it ends when the pod is on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on evictions."""

    in_flight: int = 1
    per_minute: int = 10


@dataclass(slots=True)
class _Begun:
    """State of one eviction."""

    victim: eviction.Eviction
    at: float
    running: bool = True
    done: bool = False
    gone: bool = False
    tries: int = 0
    #: Not before this time again.
    until: float = 0.0
    why: str = ""

    def under_way(self, now: float) -> bool:
        """Whether this eviction is in flight and its relief still to come."""
        if self.running:
            return True
        return (
            self.done
            and not self.gone
            and now - self.at < (self.victim.grace_seconds or 0) + _GOING
        )


Report = Callable[[result.Result], None]
Spawn = Callable[[Coroutine[Any, Any, None]], object]


class Evictor:
    """All evictions of one agent."""

    def __init__(
        self,
        backend: Callable[[], Way | str],
        *,
        report: Report = lambda _: None,
        limits: Callable[[], Limits] = Limits,
        spawn: Spawn | None = None,
    ) -> None:
        #: The backend and limits in force, which a reload may change. A text is why there is none.
        self._backend = backend
        self._report = report
        self._limits = limits
        self._spawn = spawn or self._task
        self._known: dict[str, _Begun] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._recent: collections.deque[float] = collections.deque()
        #: (policy, signal, outcome) to how often.
        self.counts: collections.Counter[tuple[str, str, str]] = collections.Counter()

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def take(self, step: plan.Step, now: snapshot.Snapshot) -> result.Result:
        """Begin the eviction of a step, or return the reason to wait."""
        wanted = step.action
        assert isinstance(wanted, action.Evict)  # noqa: S101 -- the executor asks for these only
        victim, at = wanted.victim, now.at
        self._forget(now)
        verdict, detail = self._why_not(victim, now)
        if not detail:
            begun = self._known.get(victim.uid) or _Begun(victim=victim, at=at)
            begun.victim, begun.at, begun.running, begun.done = victim, at, True, False
            begun.gone = False
            self._known[victim.uid] = begun
            self._recent.append(at)
            self._spawn(self._run(begun, step))
            verdict, detail = result.Verdict.WAITING, "begun"
        return result.Result(target=wanted.target, verdict=verdict, detail=detail, step=step)

    def _why_not(
        self, victim: eviction.Eviction, now: snapshot.Snapshot
    ) -> tuple[result.Verdict, str]:
        """The reason that an eviction cannot begin now; empty where it can."""
        pod = next((each for each in now.pods if each.uid == victim.uid), None)
        if pod is None:
            return result.Verdict.VANISHED, "the pod is no longer on this node"
        if pod.critical:
            return result.Verdict.REFUSED, "critical and static pods are never evicted"
        if pod.stale:
            return result.Verdict.WAITING, "the pod's source is out of date"
        if isinstance(backend := self._backend(), str):
            return result.Verdict.REFUSED, backend
        return result.Verdict.WAITING, self._busy(victim, now.at)

    def _busy(self, victim: eviction.Eviction, at: float) -> str:
        known = self._known.get(victim.uid)
        if known is not None:
            if known.running:
                return f"in flight for {at - known.at:.0f} s"
            if known.done and at - known.at < _AGAIN:
                return f"evicted {at - known.at:.0f} s ago, the pod still exists"
            if at < known.until:
                return f"{known.why}; next attempt in {known.until - at:.0f} s"
        others = [
            each
            for each in self._known.values()
            if each.victim.signal == victim.signal and each.victim.uid != victim.uid
        ]
        limits = self._limits()
        if sum(each.under_way(at) for each in others) >= limits.in_flight:
            return f"another eviction for {victim.signal} is in flight"
        while self._recent and at - self._recent[0] >= _MINUTE:
            self._recent.popleft()
        if len(self._recent) >= limits.per_minute:
            return f"limit of {limits.per_minute} evictions per minute reached"
        return ""

    def _forget(self, now: snapshot.Snapshot) -> None:
        """Drop finished evictions; their resources count as released."""
        here = {pod.uid for pod in now.pods if pod.active}
        for uid in [
            uid for uid, begun in self._known.items() if uid not in here and not begun.running
        ]:
            del self._known[uid]

    async def _run(self, begun: _Begun, step: plan.Step) -> None:
        victim = begun.victim
        seconds = (victim.grace_seconds or 0) + _DEADLINE
        begun.tries += 1
        backend = self._backend()
        try:
            if isinstance(backend, str):
                came = Outcome(done=False, detail=backend)
            else:
                came = await asyncio.wait_for(backend(victim), seconds)
        except TimeoutError:
            came = Outcome(done=False, detail=f"no answer within {seconds:.0f} s")
        except Exception as error:  # noqa: BLE001 -- the station's boundary: it costs this attempt
            came = Outcome(done=False, detail=f"{type(error).__name__}: {error}")
        begun.running, begun.done, begun.why = False, came.done, came.detail
        begun.gone = came.gone
        if not came.done:
            pause = min(_FIRST_PAUSE * 2 ** (begun.tries - 1), _LONGEST_PAUSE)
            begun.until = begun.at + max(pause, came.retry_after or 0.0)
        outcome = "evicted" if came.done else "refused"
        self.counts[victim.policy, victim.signal, outcome] += 1
        verdict = result.Verdict.DONE if came.done else result.Verdict.REFUSED
        self._report(
            result.Result(target=step.action.target, verdict=verdict, detail=came.detail, step=step)
        )

    async def close(self) -> None:
        """Cancel the tasks; evictions that were requested cannot be taken back."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
