"""All that this process remembers of what was used: one space for each kind of subject.

Covers: which spaces there are. Does not cover: what they do (``history.space``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from koordlet.history import shares, space
from koordlet.model import counters, pod, prediction

#: The node's own samples are few, so half an hour of them is kept one by one.
_NODE_DEPTH = 6


class History:
    """What policies and reports may ask about the past."""

    def __init__(self) -> None:
        #: By cgroup path.
        self.groups = space.Space()
        #: One subject, the empty name.
        self.node = space.Space(depth=_NODE_DEPTH)
        #: By CPU number, as text; so the others.
        self.cpus = space.Space()
        self.numa = space.Space(depth=_NODE_DEPTH)
        self.links = space.Space()
        self.disks = space.Space()
        #: By class of workloads, and the system: ``shares.SUBJECTS``.
        self.shares = space.Space(depth=_NODE_DEPTH)
        self._shares = shares.Shares()
        #: What is expected of prod workloads; empty until there is enough to go by.
        self.predicted = prediction.Prediction()

    def spaces(self) -> Mapping[str, space.Space]:
        """All of them, by the name that readings have."""
        return {
            "groups": self.groups,
            "node": self.node,
            "cpus": self.cpus,
            "numa": self.numa,
            "links": self.links,
            "disks": self.disks,
            "shares": self.shares,
        }

    def take(self, readings: Mapping[str, counters.Reading]) -> None:
        """Take what was read in one tick."""
        for name, one in self.spaces().items():
            if name in readings:
                one.take(readings[name])

    def share(self, now: counters.Reading, pods: Sequence[pod.Pod]) -> None:
        """Share out what was read just now."""
        self.shares.take(self._shares.reading(now.at, now.suspended, pods, self.groups, self.node))

    def usage(self) -> counters.Usage:
        """The newest values of everything."""
        return counters.Usage(**{name: one.table() for name, one in self.spaces().items()})
