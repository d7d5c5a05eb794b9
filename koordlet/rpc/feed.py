"""State of the feed: current sections, their revisions, and events between revisions.

Covers: revisions, deltas, resuming. Does not cover: who listens (``server``).

Rules:
1. Each section has the revision at which it last changed. So the delta from any earlier revision
   to now is the sections with a later one: nothing is queued for a slow watcher, no window of old
   deltas is kept, and the newest always wins.
2. A section that did not change enough (``settled``) did not change: what is told stays as it is.
3. A view is encoded when somebody asks for what is new, and once. Bytes are shared by all who ask
   for the same event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from google.protobuf import message as protobuf
from google.protobuf import timestamp_pb2

from koordlet.history import series
from koordlet.model import remember
from koordlet.model.record import dataclass
from koordlet.report import view
from koordlet.rpc import encode, encode_usage
from koordlet.rpc.gen import feed_pb2

SECTIONS = (
    *("summary", "topology", "allocation", "workloads", "conditions"),
    *("usage", "free", "pressure", "best_effort"),
)
#: What a scheduler is told: its own state is about single workloads.
FOR_SCHEDULERS = tuple(name for name in SECTIONS if name != "workloads")
_WINDOW_AGE = 15.0

_TargetT = TypeVar("_TargetT", bound=protobuf.Message)
#: Whether a section says what it said: what was told, what is so now.
Settled = Callable[[protobuf.Message, protobuf.Message], bool]


@dataclass(slots=True)
class FeedSection:
    """One part of the node, as it is since ``revision``."""

    name: str
    revision: int = 0
    bytes: bytes | None = None
    message: protobuf.Message | None = None


class Feed:
    """The content of one agent's feed."""

    def __init__(
        self,
        version: str,
        *,
        names: Iterable[str] = SECTIONS,
        past: series.History | None = None,
        settled: Settled = lambda _old, _new: False,
    ) -> None:
        self._past = past
        self._settled = settled
        #: The windows of the node, and when they were made: they move slowly.
        self._windows: tuple[float, list[feed_pb2.Window]] = (float("-inf"), [])
        self._view: view.ReportView | None = None
        #: The view that the sections are made of.
        self._encoded: view.ReportView | None = None
        # Seldom another object, and by far the largest on a large machine.
        machine = remember.last(encode.machine)
        self._sections = [FeedSection(name) for name in names]
        self._events: dict[int | str, bytes] = {}
        self._encoders: Mapping[str, Callable[[view.ReportView], protobuf.Message]] = {
            "summary": lambda now: encode.summary(now, version),
            "topology": lambda now: machine(now.snapshot.topology),
            "allocation": encode.allocation,
            "workloads": encode.Workloads().made,
            "conditions": encode.conditions,
            "usage": self._usage,
            "free": encode_usage.free,
            "pressure": encode_usage.pressure,
            "best_effort": encode_usage.best_effort,
        }
        self.revision = 0

    def publish(self, now: view.ReportView) -> None:
        """Take a new view. Encoding waits for the first reader."""
        self._view = now

    @property
    def epoch(self) -> str:
        """Epoch of this process; empty before the first view."""
        return "" if self._view is None else self._view.epoch

    def refresh(self) -> int:
        """Encode the newest view, unless that is done; the revision now."""
        now = self._view
        if now is None or now is self._encoded:
            return self.revision
        changed = False
        for section in self._sections:
            made = self._encoders[section.name](now)
            if made is section.message:
                continue
            if section.message is not None and self._settled(section.message, made):
                continue
            data = made.SerializeToString()
            if data != section.bytes:
                section.message, section.bytes = made, data
                section.revision = self.revision + 1
                changed = True
        self._encoded = now
        self._events.clear()
        if changed:
            self.revision += 1
        return self.revision

    def resumable(self, epoch: str, revision: int) -> bool:
        """True if a watcher with this revision can resume there."""
        return bool(epoch) and epoch == self.epoch and 0 < revision <= self.refresh()

    def node(self) -> bytes:
        """The ``Node``."""
        return self._event("node", lambda: self._node().SerializeToString())

    def full(self) -> bytes:
        """The event that has everything."""
        return self._event("full", lambda: self._made(full=self._node()))

    def since(self, revision: int) -> bytes:
        """The event from an earlier revision to now."""
        delta = feed_pb2.Delta()
        return self._event(revision, lambda: self._made(delta=self._fill(delta, revision)))

    def heartbeat(self) -> bytes:
        """The event that says that nothing changed."""
        return self._event("heartbeat", lambda: self._made(heartbeat=feed_pb2.Heartbeat()))

    def _event(self, key: int | str, make: Callable[[], bytes]) -> bytes:
        self.refresh()
        kept = self._events.get(key)
        if kept is None:
            kept = self._events[key] = make()
        return kept

    def _usage(self, now: view.ReportView) -> feed_pb2.Usage:
        at = now.snapshot.at
        if self._past is not None and at - self._windows[0] >= _WINDOW_AGE:
            self._windows = (at, encode_usage.windows(self._past, at))
        return encode_usage.usage(now, self._windows[1])

    def _node(self) -> feed_pb2.Node:
        node = feed_pb2.Node(epoch=self.epoch, revision=self.revision)
        self._fill(node, 0)
        _stamp(node.observed_at, self._encoded)
        return node

    def _fill(self, target: _TargetT, revision: int) -> _TargetT:
        for section in self._sections:
            if section.revision > revision and section.message is not None:
                getattr(target, section.name).CopyFrom(section.message)
        return target

    def _made(self, **content: Any) -> bytes:
        event = feed_pb2.WatchEvent(epoch=self.epoch, revision=self.revision, **content)
        _stamp(event.observed_at, self._encoded)
        return event.SerializeToString()


def _stamp(target: timestamp_pb2.Timestamp, now: view.ReportView | None) -> None:
    if now is not None:
        seconds, rest = divmod(round(now.snapshot.wall * 1e6), 1_000_000)
        target.seconds, target.nanos = seconds, rest * 1000
