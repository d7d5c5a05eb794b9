"""Elastic quotas by the rules alone: one tree, divided naively in fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

Body = dict[str, Any]
ROOT = "root"


class QuotaOracle:
    """Quotas as dictionaries: ``parent``, ``min``, ``max``, ``weight``, ``lends``, ``pods``.

    A pod is a pair of amounts: what it asks for, and what it uses.
    """

    def __init__(self, total: dict[str, int], quotas: dict[str, Body]) -> None:
        self.total, self.quotas = total, quotas

    def children(self, name: str) -> list[str]:
        """The quotas below, in the order of their names."""
        return sorted(key for key, quota in self.quotas.items() if quota["parent"] == name)

    def used(self, name: str, resource: str) -> int:
        """By the quota's own pods and everything below."""
        own: int = sum(
            used.get(resource, 0) for _, used in self.quotas.get(name, {}).get("pods", ())
        )
        return own + sum(self.used(child, resource) for child in self.children(name))

    def request(self, name: str, resource: str) -> int:
        """What a quota asks for, before its maximum."""
        quota = self.quotas[name]
        asked: int = sum(wanted.get(resource, 0) for wanted, _ in quota["pods"])
        asked += sum(self.limited(child, resource) for child in self.children(name))
        return asked if quota["lends"] else max(asked, quota["min"].get(resource, 0))

    def limited(self, name: str, resource: str) -> int:
        """What the quota above sees of it."""
        most = self.quotas[name]["max"].get(resource, math.inf)
        return int(min(self.request(name, resource), most))

    def runtime(self, name: str, resource: str) -> int:
        """What a quota may use now."""
        if name == ROOT:
            return self.total.get(resource, 0)
        if resource not in self.quotas[name]["max"]:
            return 0
        parent = self.quotas[name]["parent"]
        return self._shares(parent, resource, self.runtime(parent, resource))[name]

    def _shares(self, parent: str, resource: str, total: int) -> dict[str, int]:
        names = [name for name in self.children(parent) if resource in self.quotas[name]["max"]]
        minimum = {name: self.quotas[name]["min"].get(resource, 0) for name in names}
        whole = sum(minimum.values())
        if whole > total:
            minimum = {
                name: math.floor(Fraction(total) * Fraction(guaranteed, whole))
                for name, guaranteed in minimum.items()
            }
        asked = {name: self.limited(name, resource) for name in names}
        has: dict[str, int] = {}
        for name in names:
            idle = asked[name] <= minimum[name] and self.quotas[name]["lends"]
            has[name] = asked[name] if idle else minimum[name]
        pool = total - sum(has.values())
        while pool > 0:
            hungry = {
                name: Fraction(self.quotas[name]["weight"].get(resource, 0))
                for name in names
                if asked[name] > has[name]
            }
            weights = sum(hungry.values())
            if not weights:
                break
            exact = {name: pool * weight / weights for name, weight in hungry.items()}
            portions = {name: math.floor(part) for name, part in exact.items()}
            order = sorted(hungry, key=lambda name: (portions[name] - exact[name], name))
            for name in order[: pool - sum(portions.values())]:
                portions[name] += 1
            pool = 0
            for name, portion in portions.items():
                has[name] += portion
                pool += max(0, has[name] - asked[name])
                has[name] = min(has[name], asked[name])
        return has
