"""A scheduler's core with a node of four CPUs, which a test gives pods and turns itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from koordlet.scheduler.framework import profile
from koordlet.scheduler.loop.core import Core
from koordlet.scheduler.loop.outcomes import Bind, Refusal
from koordlet.scheduler.objects import nodes
from koordlet.scheduler.objects.pods import Pod
from tests.kit import clusters

Body = dict[str, Any]


class Scene:
    """A node of four CPUs; each attempt comes after everybody is tried again."""

    def __init__(self, arguments: Mapping[str, Body] | None = None) -> None:
        self.profile = profile.default("default-scheduler", arguments)
        self.core = Core({"default-scheduler": self.profile})
        self.now = 0.0
        self._node = nodes.decode(clusters.node("n"))
        self.core.node(None, self._node, self.now)

    def pod(self, old: Pod | None = None, **more: Any) -> Pod:
        """A pod as the store shows it."""
        body = clusters.pod(**more)
        body["metadata"]["uid"] = body["metadata"]["name"]
        decoded = self.core.decoder.decode(body, 0)
        self.core.pod(old, decoded, self.now)
        return decoded

    def changed(self, **spec: Any) -> None:
        """The node is another than before."""
        new = nodes.decode(clusters.node("n", labels={"turn": str(self.now)}, spec=spec))
        self.core.node(self._node, new, self.now)
        self._node = new

    def refused(self) -> Refusal:
        """The next attempt is one."""
        self.now += 400.0
        decision = self.core.step(self.now)
        assert isinstance(decision, Refusal)
        return decision

    def bound(self) -> Pod:
        """The next attempt finds a node."""
        decision = self.core.step(self.now)
        assert isinstance(decision, Bind)
        return decision.pod
