"""Plugins of others that judge one node at a time.

Covers: the adapter to columns. Does not cover: finding them (``registry``).

Slow by nature: one call for each node and pod. An error in such a plugin refuses the node, or the
pod on its way to it, with the error as the reason.

Every point is optional: ``less(pod, other)`` orders the queue, ``filter(pod_class, node)`` and
``score(pod_class, node)``, ``post_filter(pod, reasons)`` with the reasons by the name of the node
gives what is to be said, or that and the name of a node where it has made room;
``pre_enqueue(pod)``, and with ``(pod, node_name)``: ``reserve`` and ``pre_bind`` give a reason to
refuse, or nothing; ``permit`` a reason, or the seconds after which to ask again; ``bind`` whether
it has bound the pod; ``unreserve`` and ``post_bind`` nothing. ``pre_bind`` and ``bind`` may be
coroutines; as plain functions they run in a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.vectors import Ints, Rows
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import Pod, PodClass


def adapt(name: str, foreign: Any) -> type[framework.Plugin]:
    """A plugin class around ``foreign``, which is made with the profile's arguments."""
    taken = {
        point: method
        for point, method in vars(_Points).items()
        if not point.startswith("_") and hasattr(foreign, _THEIRS.get(point, point))
    }
    members = {"name": name, "made_by": staticmethod(foreign), **taken}
    return cast("type[framework.Plugin]", type("Adapted", (_Adapted,), members))


#: Points that are called otherwise in the foreign class.
_THEIRS = {"queue_key": "less"}


class _Adapted(framework.Plugin):
    """A foreign plugin: the points that it has are added by ``adapt``."""

    made_by: Any

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self.foreign = self.made_by(args)

    def answer(self, point: str, *asked: Any) -> Any:
        """What a point answers; an error in it is a refusal that names it."""
        try:
            return getattr(self.foreign, point)(*asked)
        except Exception as error:
            raise framework.RefusedError(f"plugin {self.name} failed: {error}") from error

    async def waited(self, point: str, pod: Pod, node: str) -> Any:
        """The same for what may take time: a coroutine is awaited, anything else runs beside us."""
        call = getattr(self.foreign, point)
        try:
            if inspect.iscoroutinefunction(call):
                return await call(pod, node)
            return await asyncio.to_thread(call, pod, node)
        except Exception as error:
            raise framework.RefusedError(f"plugin {self.name} failed: {error}") from error


class _Points(_Adapted):
    """Every point, as ``adapt`` adds it."""

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter:
        def refuses(node: Node, _row: int) -> framework.Verdict | None:
            try:
                reason = str(self.foreign.filter(pod_class, node) or "")
            except Exception as error:  # noqa: BLE001 -- foreign code must not stop the scheduler
                reason = f"plugin failed: {error}"
            return framework.Verdict((reason,), resolvable=True) if reason else None

        return _Asked(columns, refuses)

    def score(self, pod_class: PodClass, columns: Columns) -> framework.Score:
        return _Rated(self.foreign, pod_class, columns)

    def queue_key(self, pod: Pod) -> Any:
        return _Compared(pod, self.foreign)

    def post_filter(
        self, pod: Pod, refused: Mapping[str, framework.Verdict]
    ) -> framework.Rescue | None:
        by_node = {name: verdict.reasons for name, verdict in refused.items()}
        try:
            answer = self.answer("post_filter", pod, by_node)
        except framework.RefusedError as error:
            return framework.Rescue(error.reason)
        message, node = answer if isinstance(answer, tuple) else (answer, "")
        return framework.Rescue(str(message or ""), str(node or ""))

    def pre_enqueue(self, pod: Pod) -> str:
        try:
            return str(self.answer("pre_enqueue", pod) or "")
        except framework.RefusedError as error:
            return error.reason

    def reserve(self, pod: Pod, node: str) -> None:
        _refuse(self.answer("reserve", pod, node))

    def unreserve(self, pod: Pod, node: str) -> None:
        with contextlib.suppress(framework.RefusedError):
            self.answer("unreserve", pod, node)

    def permit(self, pod: Pod, node: str) -> float:
        answer = self.answer("permit", pod, node)
        if isinstance(answer, str):
            _refuse(answer)
            return 0.0
        return max(0.0, float(answer or 0))

    async def pre_bind(self, pod: Pod, node: str) -> None:
        _refuse(await self.waited("pre_bind", pod, node))

    async def bind(self, pod: Pod, node: str) -> bool:
        return bool(await self.waited("bind", pod, node))

    def post_bind(self, pod: Pod, node: str) -> None:
        with contextlib.suppress(framework.RefusedError):
            self.answer("post_bind", pod, node)


def _refuse(reason: Any) -> None:
    if reason:
        raise framework.RefusedError(str(reason))


class _Compared:
    """A pod in the order of a foreign ``less``; who fails to compare leaves the order to time."""

    def __init__(self, pod: Pod, foreign: Any) -> None:
        self._pod, self._foreign = pod, foreign

    def __lt__(self, other: _Compared) -> bool:
        try:
            return bool(self._foreign.less(self._pod, other._pod))
        except Exception:  # noqa: BLE001 -- foreign code must not stop the scheduler
            return False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Compared):
            return NotImplemented
        return not self < other and not other < self

    __hash__ = None  # type: ignore[assignment]


class _Asked(framework.ByNode):
    kind = framework.Kind.CONTEXT


class _Rated(framework.ContextScore):
    def __init__(self, foreign: Any, pod_class: PodClass, columns: Columns) -> None:
        self._foreign, self._pod_class, self._columns = foreign, pod_class, columns

    def final(self, raw: Ints, rows: Rows) -> Ints:
        return np.array([self._rate(row) for row in rows.tolist()], np.int64)

    def _rate(self, row: int) -> int:
        try:
            rated = int(self._foreign.score(self._pod_class, self._columns.nodes[row]))
        except Exception:  # noqa: BLE001 -- foreign code must not stop the scheduler
            return 0
        return max(0, min(framework.MAX_SCORE, rated))
