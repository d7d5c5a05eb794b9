"""A core with quotas, step by step."""

from __future__ import annotations

from typing import Any

from koordlet.kubeapi import pod_groups
from koordlet.scheduler.quotas.book import QuotaBook
from tests.kit import clusters
from tests.kit.gang_scene import Scene
from tests.kit.quotas import KEY

Body = dict[str, Any]


class QuotaScene(Scene):
    """A core and its cluster, whose pods are in quotas by their labels."""

    @property
    def book(self) -> QuotaBook:
        """The book after everything that has changed."""
        self.core.quotas.settle(self.now)
        return self.core.quotas.book

    def pod(self, name: str, quota: str = "", cpu: str = "1", **more: Any) -> None:
        """A pod of a quota comes, or changes."""
        labels = {**({f"{KEY}name": quota} if quota else {}), **more.pop("labels", {})}
        self.put(clusters.pod(name, cpu=cpu, labels=labels, **more))

    def gang(self, number: int, cpu: str = "1", **more: Any) -> None:
        """A gang of the quota ``q`` comes, which needs so many members."""
        notes = {pod_groups.GANG_NAME: "g", pod_groups.GANG_MINIMUM: str(number)}
        for place in range(number):
            self.pod(f"g{place}", "q", cpu, meta={"annotations": notes}, **more)

    def used(self, quota: str) -> dict[str, int]:
        """What a quota uses now."""
        return dict(self.book.nodes[quota].used)

    def drop_quota(self, name: str) -> None:
        """A quota is deleted."""
        owner = self.book.owner(name)
        assert owner is not None
        self.core.quotas.drop_quota(owner)

    def leave(self, *names: str) -> None:
        """Victims are gone."""
        for name in names:
            self.drop(name)
