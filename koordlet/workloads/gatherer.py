"""Asks all sources in the background, and holds what they say as one value.

Covers: when each source is asked, its health, when a new value is made, what is said about it.
Does not cover: asking itself (``source``, ``cluster``), who wins (``merging``).

Rules:
1. Every source has its own task: one that hangs or fails costs only itself.
2. A source that fails is asked again after a delay that doubles up to its period (at least
   ``_SLOWEST``), with jitter, so that a thousand agents do not return together.
3. A new value is made once for all changes of a short moment. A tick takes the newest and waits for
   nobody.
4. What a source says of itself is logged when it changes, not each time.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from koordlet import log
from koordlet.kubeapi import informer, objects
from koordlet.model import errors, observed, pod, reservation, snapshot, spread
from koordlet.model.record import dataclass
from koordlet.workloads import (
    cluster,
    manifest_directory,
    merging,
    nodeslo,
    reservations,
    source,
    strategy_holding,
)
from koordlet.workloads.kubelet import sources as kubelet_sources

#: The first delay after a failure, and the longest where the period is shorter.
_FIRST, _SLOWEST = 1.0, 30.0
#: How long changes are collected.
_GATHER = 0.05
#: A quiet watch is heard once a minute; what was not heard for two has missed one bookmark.
_MIRROR_AGE = 130.0


@dataclass(slots=True)
class _Health:
    """Health of one source."""

    ok: bool = False
    #: When it was asked for the last good answer, and when that came.
    asked: float = 0.0
    last_good: float | None = None
    problem: str = "not requested yet"


class Gatherer:
    """All sources of one node."""

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        kubelet: kubelet_sources.KubeletSources | None = None,
        store: objects.Objects | None = None,
        reserving: source.Polled[tuple[reservation.Reservation, ...]] | None = None,
        declared: manifest_directory.Directory | None = None,
        node: str = "",
        chance: Callable[[], float] = random.random,
        told: Callable[[], None] = lambda: None,
    ) -> None:
        self.newest = observed.NOTHING
        self._clock = clock
        self._chance = chance
        #: Called when there is a new value.
        self._told = told
        self._kubelet = kubelet
        #: The API server; ``None`` where it is not asked. Closed when the gatherer stops.
        self.store = store
        self._api = None if store is None else cluster.mirrors(store, node, lambda *_: self._soon())
        self._strategies = None if self._api is None else cluster.Strategies(self._api)
        self._reserving = reserving
        self._declared = declared
        #: No kubelet and no control plane says who runs here.
        self.alone = kubelet is None and store is None
        polled: tuple[source.WorkloadSource, ...] = kubelet.all() if kubelet is not None else ()
        #: Sources of this machine alone.
        self._local = tuple(local for local in (reserving, declared) if local is not None)
        polled += self._local
        self._polled = {asked.name: asked for asked in polled}
        self._mirrors = dict(self._api.named()) if self._api is not None else {}
        self._health = {name: _Health() for name in self._polled}
        self._repeats = log.Repeats(clock)
        self._tasks: list[asyncio.Task[None]] = []
        self._pending: asyncio.TimerHandle | None = None
        self._answered = asyncio.Event()
        #: Those that have said nothing yet, good or bad.
        self._unheard = {*self._polled, *self._mirrors}
        #: Those that are not believed any more.
        self._aged: set[str] = set()
        #: Why mirrors fail now.
        self._failing: Collection[str] = ()
        #: UIDs that the API server calls running and no answer of the kubelet can have: since when.
        self._begun: dict[str, float] = {}
        #: UIDs that it called running.
        self._running: frozenset[str] = frozenset()
        #: The kubelet's pods, while no API server says who is bound here, and those that its newer
        #: answers lack: by UID, since when.
        self._listed: tuple[pod.Pod, ...] = ()
        self._missed: dict[str, tuple[float, pod.Pod]] = {}

    async def start(self, patience: float) -> None:
        """Begin to ask, and wait so long for every source's first answer, good or bad."""
        self._tasks = [
            *(asyncio.create_task(self._ask(asked)) for asked in self._polled.values()),
            *(asyncio.create_task(self._mirror(*item)) for item in self._mirrors.items()),
        ]
        if self._unheard:
            try:
                await asyncio.wait_for(self._answered.wait(), patience)
            except TimeoutError:
                log.get().warning("source.late", sources=sorted(self._unheard))
        self._make()

    async def stop(self) -> None:
        """Cease to ask."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        if self._pending is not None:
            self._pending.cancel()
        if self.store is not None:
            await self.store.close()

    def hold(self, held: strategy_holding.HeldStrategies) -> None:
        """The strategies that an agent before us held where newer ones cannot be read."""
        if self._strategies is not None:
            self._strategies.words = held.cluster
            self._strategies.words_of_node = held.node

    def held(self) -> strategy_holding.HeldStrategies:
        """The strategies that hold so."""
        if self._strategies is None:
            return strategy_holding.HeldStrategies()
        # What was heard a moment ago is decoded first: it may be what there is to hold.
        self._strategies.newest()
        self._strategies.node()
        return strategy_holding.HeldStrategies(
            cluster=self._strategies.words, node=self._strategies.words_of_node
        )

    def took(self) -> Mapping[tuple[str, str], spread.Spread]:
        """Latency of kubelet requests, by path and status."""
        return dict(self._kubelet.took) if self._kubelet is not None else {}

    def take(self) -> observed.Observed:
        """The newest value, with ages as they are now; costs nothing while nothing happens."""
        now = self._clock()
        sources = self._sources()
        self._tell_mirrors(sources)
        if {state.name for state in sources if state.aged(now)} != self._aged:
            self._make()
        elif sources != self.newest.sources:
            self.newest = replace(self.newest, sources=sources)
        return self.newest

    async def _ask(self, workload_source: source.WorkloadSource) -> None:
        delay = _FIRST
        while True:
            failed = await self._poll(workload_source)
            if failed:
                pause = delay * (0.5 + self._chance())
                delay = min(delay * 2, max(workload_source.period, _SLOWEST))
            else:
                delay, pause = _FIRST, workload_source.period
            # Even a source that waits inside of its poll lets others have a turn.
            await asyncio.sleep(pause)

    async def _poll(self, workload_source: source.WorkloadSource) -> bool:
        """Ask once; whether it failed."""
        health = self._health[workload_source.name]
        problem = ""
        changed = False
        asked = self._clock()
        try:
            changed = await workload_source.poll()
        except errors.KoordletError as error:
            problem = str(error)
        except Exception as error:  # noqa: BLE001 - a source that breaks costs only itself
            problem = f"{type(error).__name__}: {error}"
        if not problem:
            health.asked, health.last_good = asked, self._clock()
            if self._kubelet is not None and workload_source is self._kubelet.pods:
                # The same answer says more where pods have begun to run before it, or are missed.
                changed |= any(since <= asked for since in self._begun.values())
                until = asked - workload_source.max_age
                changed |= any(since <= until for since, _ in self._missed.values())
        if changed or problem != health.problem:
            health.problem, health.ok = problem, not problem
            if problem:
                self._repeats.say(
                    log.get().warning,
                    "source.failed",
                    (workload_source.name, problem),
                    source=workload_source.name,
                    detail=problem,
                )
            self._soon()
        self._heard(workload_source.name)
        return bool(problem)

    async def _mirror(self, name: str, mirror: informer.Informer[Any]) -> None:
        """Keep a mirror running; what breaks it costs only it."""
        while True:
            watching = asyncio.create_task(self._first_list(name, mirror))
            try:
                await mirror.run()
            except Exception as error:  # noqa: BLE001 - rule 1
                self._repeats.say(
                    log.get().error,
                    "source.failed",
                    (name, repr(error)),
                    source=name,
                    exc_info=error,
                )
                await asyncio.sleep(_SLOWEST)
            finally:
                watching.cancel()

    async def _first_list(self, name: str, mirror: informer.Informer[Any]) -> None:
        await mirror.synced()
        self._heard(name)
        self._soon()

    def _heard(self, name: str) -> None:
        self._unheard.discard(name)
        if not self._unheard:
            self._answered.set()

    def _tell_mirrors(self, sources: tuple[snapshot.Source, ...]) -> None:
        """One event for all that fail for one reason: they ask one server."""
        failing: dict[str, list[str]] = {}
        for state in sources:
            mirror = self._mirrors.get(state.name)
            health = mirror.health if mirror is not None else None
            if health is not None and health.state is informer.State.FAILING:
                failing.setdefault(health.error, []).append(state.name)
        new = {why: names for why, names in failing.items() if why not in self._failing}
        for why, names in new.items():
            say = log.get().warning
            self._repeats.say(
                say, "source.failed", ("mirrors", why), source=", ".join(names), detail=why
            )
        self._failing = failing.keys()

    def _soon(self) -> None:
        """Rule 3."""
        if self._pending is None:
            loop = asyncio.get_running_loop()
            self._pending = loop.call_later(_GATHER, self._make)

    def _make(self) -> None:
        self._pending = None
        now = self._clock()
        sources = self._sources()
        self._aged = {state.name for state in sources if state.aged(now)}
        slo = self._strategies.newest() if self._strategies is not None else None
        node = self._strategies.node() if self._strategies is not None else None
        unread = tuple(lost for mirror in self._mirrors.values() for lost in unread_of(mirror))
        problems = (
            *(problem for asked in self._polled.values() for problem in asked.problems),
            *(f"{lost.kind} {lost.namespace}/{lost.name}: {lost.why}" for lost in unread),
            *(node.problems if node is not None else ()),
            *(slo.problems if slo is not None else ()),
        )
        for what in problems:
            self._repeats.say(log.get().warning, "source.dropped", what, detail=what)
        pods = (
            *self._pods(),
            *(self._declared.value if self._declared is not None else ()),
            *(nodeslo.application_pods(slo.applications) if slo is not None else ()),
            *reservations.workloads(self._reservations()),
        )
        for workload in pods:
            for why in workload.problems:
                say, key = log.get().warning, workload.key
                self._repeats.say(say, "pod.problem", (workload.uid, why), pod=key, detail=why)
        self.newest = observed.Observed(
            pods=pods,
            kubelet_listed=self._kubelet is not None and self._kubelet.listed(),
            node=node,
            slo=slo,
            kubelet=self._kubelet.said() if self._kubelet is not None else None,
            reservations=self._reservations(),
            sources=sources,
            unread=unread,
            problems=problems,
        )
        self._told()

    def _sources(self) -> tuple[snapshot.Source, ...]:
        """Health of all sources."""
        now = self._clock()
        return (
            *(
                snapshot.Source(
                    name=name,
                    ok=health.ok,
                    last_good=health.last_good,
                    problem=health.problem,
                    max_age=self._polled[name].max_age,
                    local=self._polled[name] in self._local,
                )
                for name, health in self._health.items()
            ),
            *(_mirrored(name, mirror, now) for name, mirror in self._mirrors.items()),
        )

    def _reservations(self) -> tuple[reservation.Reservation, ...]:
        if self._reserving is not None:
            return self._reserving.value or ()
        return () if self._api is None else tuple(self._api.reservations.snapshot.values())

    def _pods(self) -> tuple[pod.Pod, ...]:
        runs = wants = None
        asked = patience = 0.0
        if self._kubelet is not None and self._kubelet.pods is not None:
            answer = self._kubelet.pods
            asked, patience = self._health[answer.name].asked, answer.max_age
            if answer.value is not None:
                runs = merging.Said(pods=answer.value, fresh=answer.name not in self._aged)
        if self._api is not None and self._api.pods.health.lists:
            bound = tuple(self._api.pods.snapshot.values())
            wants = merging.Said(
                pods=bound,
                fresh="cluster pods" not in self._aged,
                begun=self._begun_since(asked, bound),
            )
        if wants is not None:
            self._listed, self._missed = (), {}
        elif runs is not None:
            missed = self._unlisted(runs.pods, asked, patience)
            runs = replace(runs, pods=(*runs.pods, *missed))
        held = self._kubelet.said().cpu if self._kubelet is not None else None
        return merging.merge(runs, wants, held)

    def _unlisted(
        self, listed: tuple[pod.Pod, ...], asked: float, patience: float
    ) -> Iterator[pod.Pod]:
        """Pods that answers of the kubelet lack since less than this, and former ones had."""
        uids = {workload.uid for workload in listed}
        missed = {workload.uid: (asked, workload) for workload in self._listed} | self._missed
        self._missed = {
            uid: (since, workload)
            for uid, (since, workload) in missed.items()
            if uid not in uids and asked - since < patience
        }
        self._listed = listed
        return (replace(workload, stale=True) for _, workload in self._missed.values())

    def _begun_since(self, asked: float, bound: tuple[pod.Pod, ...]) -> frozenset[str]:
        """UIDs of pods of which the API server said after that time that they run."""
        now = self._clock()
        running = frozenset(
            workload.uid for workload in bound if workload.phase is not pod.Phase.PENDING
        )
        since = {**self._begun, **dict.fromkeys(running - self._running, now)}
        self._running = running
        self._begun = {uid: at for uid, at in since.items() if uid in running and at > asked}
        return frozenset(self._begun)


def unread_of(mirror: informer.Informer[Any]) -> Iterator[snapshot.Unread]:
    """The objects of a mirror that cost themselves."""
    for (namespace, name), what in mirror.rejected.items():
        yield snapshot.Unread(
            kind=mirror.kind.name, name=name, namespace=namespace, uid=what.uid, why=what.why
        )


def _mirrored(name: str, mirror: informer.Informer[Any], now: float) -> snapshot.Source:
    """A kind that is not served, and a quiet watch, are no failures; what it had still ages."""
    health, age = mirror.health, mirror.age()
    absent = health.state is informer.State.NOT_SERVED and not len(mirror)
    return snapshot.Source(
        name=name,
        ok=health.state is informer.State.WATCHING or absent,
        last_good=now if absent else None if age is None else round(now - age, 3),
        problem=health.error
        or ("not listed yet" if health.state is informer.State.STARTING else ""),
        max_age=_MIRROR_AGE,
    )
