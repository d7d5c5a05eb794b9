"""Tells the store where pods go: many at a time, and each until the answer is known.

Covers: the pipeline, what is unknown after a failure, waiting for plugins that have a say.
Does not cover: choosing the node (``core``).

Rules:
1. A pod stays assumed until it is known whether it is bound. Where the store did not answer, it is
   asked; where it cannot be asked, we wait. Binding the same pod to the same node again does no
   harm: the UID is a precondition, and a pod has a node only once.
2. Nothing is bound to a node that has gone, or that has been overtaken by what the store said.
3. At most ``lanes`` requests are under way; while ``BACKLOG`` pods wait for one, the core is not
   asked for more. A pod that waits for a plugin's consent takes no lane.
4. Nothing is written while another scheduler may lead: it may have given the room to others.
5. What a plugin refuses before the binding, or breaks, is no binding: the pod is tried anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from koordlet.kubeapi import kinds, objects, refusals
from koordlet.scheduler.framework import RefusedError
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind
from koordlet.scheduler.objects.pods import Pod

LANES, BACKLOG = 16, 512
#: Seconds between two attempts at the same binding: the first wait, and the longest.
_FIRST, _LONGEST = 0.2, 5.0
#: So many answers that say "not bound" after a failure, and the pod is tried anew elsewhere.
_ENOUGH = 4
#: Seconds that plugins may withhold their consent.
_CONSENT = 900.0

OnBound = Callable[[Bind, refusals.ObjectsError | None], None]


class Binder:
    """Binds pods, several at a time."""

    def __init__(
        self,
        store: objects.Objects,
        core: Core,
        on_bound: OnBound,
        clock: Callable[[], float],
        *,
        lanes: int = LANES,
        first: float = _FIRST,
        leads: Callable[[], bool] = lambda: True,
    ) -> None:
        self._store, self._core = store, core
        #: Hears of each binding that is decided: done, or the error.
        self._on_bound = on_bound
        self._clock = clock
        self._lanes = lanes
        self._first, self._leads = first, leads
        self._due: asyncio.Queue[Bind] = asyncio.Queue()
        self._busy = 0
        #: Pods that wait for consent.
        self._asking: set[asyncio.Task[None]] = set()

    @property
    def backlog(self) -> int:
        """The number of bindings that have no answer yet."""
        return self._due.qsize() + self._busy

    def submit(self, bind: Bind) -> None:
        """Bind a pod as soon as every plugin permits it and a lane is free."""
        if not bind.patience:
            self._due.put_nowait(bind)
            return
        self._ask_later(bind, bind.patience, _permitted)

    def _ask_later(self, bind: Bind, wait: float, asked: Callable[[Bind], float]) -> None:
        task = asyncio.ensure_future(self._ask(bind, wait, asked))
        self._asking.add(task)
        task.add_done_callback(self._asking.discard)

    async def _ask(self, bind: Bind, wait: float, asked: Callable[[Bind], float]) -> None:
        """Wait until every plugin agrees, one refuses, or time is up."""
        until = self._clock() + _CONSENT
        while self._awaits(bind):
            await asyncio.sleep(wait)
            try:
                wait = asked(bind)
            except RefusedError as refusal:
                self._failed(bind, refusals.Failed(refusal.reason, culprit=bind.pod.key))
                return
            if not wait:
                self._due.put_nowait(bind)
                return
            if self._clock() >= until:
                self._failed(
                    bind,
                    refusals.Failed(
                        "the plugins did not permit the pod in time", culprit=bind.pod.key
                    ),
                )
                return

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._lanes):
                    group.create_task(self._lane())
        finally:
            for task in self._asking:
                task.cancel()

    async def _lane(self) -> None:
        while True:
            bind = await self._due.get()
            if not self._leads():
                self._due.put_nowait(bind)
                await asyncio.sleep(self._first)
                continue
            self._busy += 1
            try:
                await self._settle(bind)
            finally:
                self._busy -= 1

    async def _settle(self, bind: Bind) -> None:
        pod, wait, denied = bind.pod, self._first, 0
        ready = await self._prepare(bind) if bind.plugins and self._awaits(bind) else 0.0
        if isinstance(ready, refusals.ObjectsError):
            self._failed(bind, ready)
            return
        if ready:
            # A lane is for requests: a pod that waits for its devices takes none.
            self._ask_later(bind, ready, _preparing)
            return
        while self._awaits(bind):
            if bind.node not in self._core.pod_cache.columns.rows:
                self._failed(
                    bind, refusals.Unavailable("the node was deleted", culprit=f"node {bind.node}")
                )
                return
            error = await self._bind(bind)
            if error is None:
                break
            if not isinstance(error, refusals.Unavailable | refusals.Conflict):
                self._failed(bind, error)
                return
            # A conflict may be with ourselves: an earlier request that nobody answered.
            place = await self._where(pod)
            if place == bind.node:
                break
            denied += place == ""
            elsewhere = bool(place) or (place == "" and isinstance(error, refusals.Conflict))
            if elsewhere or denied >= _ENOUGH:
                self._failed(bind, error)
                return
            await asyncio.sleep(wait)
            wait = min(2 * wait, _LONGEST)
        else:
            known = self._core.pod_cache.get(pod.key)
            if known is None or (known.uid, known.node) != (pod.uid, bind.node):
                return  # it is gone, bound elsewhere, or was taken back and is decided anew
        self._core.bound(pod, self._clock())
        self._on_bound(bind, None)

    def _awaits(self, bind: Bind) -> bool:
        """Whether a pod is still assumed where it shall be bound."""
        return self._core.awaits(bind.pod) and bind.pod.node == bind.node

    async def _prepare(self, bind: Bind) -> refusals.ObjectsError | float:
        """Run PreBind of each plugin, in order (rule 5); seconds after which to ask again."""
        wait = 0.0
        for plugin in bind.plugins:
            if not self._leads():
                return _overtaken(bind)
            try:
                for where, body in plugin.writes(bind.pod, bind.node):
                    await self._store.patch(where, objects.Merge(body, objects.revision(body)))
                preparing = plugin.pre_bind(bind.pod, bind.node)
                if preparing is not None:
                    await preparing
                wait = max(wait, plugin.preparing(bind.pod, bind.node))
            except RefusedError as refusal:
                return refusals.Failed(refusal.reason, culprit=plugin.name)
            except refusals.ObjectsError as error:
                self._core.measures.asked("pre_bind", error.code)
                return refusals.Failed(str(error), culprit=plugin.name)
        return wait

    async def _bind(self, bind: Bind) -> refusals.ObjectsError | None:
        pod = bind.pod
        if not self._leads():
            return _overtaken(bind)
        try:
            for plugin in bind.plugins:
                doing = plugin.bind(pod, bind.node)
                if doing is not None and await doing:
                    return None
            await self._store.bind(ref(pod), bind.node, uid=pod.uid, annotations=bind.marks)
        except refusals.ObjectsError as error:
            self._core.measures.asked("bind", error.code)
            return error
        except RefusedError as refusal:
            return refusals.Failed(refusal.reason, culprit=pod.key)
        self._core.measures.asked("bind", "ok")
        return None

    async def _where(self, pod: Pod) -> str | None:
        """The node of a pod; empty: none, or no such pod; ``None``: the store did not answer."""
        try:
            body = await self._store.get(ref(pod))
        except refusals.NotFound:
            return ""
        except refusals.ObjectsError:
            return None
        if objects.text(body, "uid") != pod.uid:
            return ""
        spec = body.get("spec")
        return str(spec.get("nodeName") or "") if isinstance(spec, dict) else ""

    def _failed(self, bind: Bind, error: refusals.ObjectsError) -> None:
        again = not isinstance(error, refusals.NotFound)
        # Taken back meanwhile, the pod may be assumed on another node: that decision stands.
        if self._awaits(bind) and self._core.unbound(bind.pod, self._clock(), again=again):
            self._on_bound(bind, error)


def _overtaken(bind: Bind) -> refusals.ObjectsError:
    return refusals.Unavailable("another scheduler may lead by now", culprit=bind.pod.key)


def _permitted(bind: Bind) -> float:
    """Seconds after which to ask again whether a pod may be bound; 0: it may."""
    return max(plugin.permit(bind.pod, bind.node) for plugin in bind.plugins)


def _preparing(bind: Bind) -> float:
    """The same about what plugins have begun before the binding."""
    return max(plugin.preparing(bind.pod, bind.node) for plugin in bind.plugins)


def ref(pod: Pod) -> objects.Ref:
    """A pod as the store names it."""
    return objects.Ref(kinds.PODS, pod.name, pod.namespace)
