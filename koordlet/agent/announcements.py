"""What the container runtime announced before any source of workloads listed it.

Covers: pods, containers that have started, the cpuset that a container would have had without us.
Does not cover: the runtime's events (``nri.handler``).
"""

from __future__ import annotations

from koordlet.model import cpuset
from koordlet.workloads import announced, declared


class Announcements:
    """Everything that is known from the runtime alone. Each change makes a new mapping."""

    def __init__(self) -> None:
        self.pods = announced.Announced()
        #: Containers that have started: pod UID and container name to container id.
        self.started: declared.Begun = {}
        #: Groups that were created with a cpuset of ours: to the cpuset that the runtime asked for.
        self.created_with: dict[str, cpuset.CPUSet] = {}

    def on_synchronize(self, started: declared.Begun) -> None:
        """Take the containers that run as a new connection begins."""
        self.started = started

    def on_start(self, uid: str, name: str, container: str) -> None:
        """Take a container that is about to run."""
        self.started = {**self.started, (uid, name): container}

    def on_adopt(self, group: str, cpus: cpuset.CPUSet) -> None:
        """Take the cpuset that a new group would have had."""
        self.created_with = {**self.created_with, group: cpus}

    def on_end(self, container: str, group: str | None) -> None:
        """Forget a container that has ended, and its group."""
        if container in self.started.values():
            self.started = {who: known for who, known in self.started.items() if known != container}
        if group is not None:
            below = f"{group}/"
            gone = {p for p in self.created_with if p == group or p.startswith(below)}
            if gone:
                kept = {p: cpus for p, cpus in self.created_with.items() if p not in gone}
                self.created_with = kept
