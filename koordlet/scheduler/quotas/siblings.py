"""The quotas that name one parent, and what their minimums add up to.

Covers: the sum, kept up with each change: nobody walks ten thousand siblings for one of them.
Does not cover: whether the parent is there, or has that much (``validation``).
"""

from __future__ import annotations

from koordlet.kubeapi.elastic_quotas import ElasticQuota
from koordlet.scheduler.quotas.amounts import add


class Siblings:
    """Quotas in force by name."""

    def __init__(self) -> None:
        self.specs: dict[str, ElasticQuota] = {}
        self.minimum: dict[str, int] = {}

    def put(self, spec: ElasticQuota) -> None:
        """Take in a quota, or its newer version."""
        self.drop(spec.name)
        self.specs[spec.name] = spec
        add(self.minimum, spec.min)

    def drop(self, name: str) -> None:
        """A quota goes, if it is there."""
        spec = self.specs.pop(name, None)
        if spec is not None:
            add(self.minimum, spec.min, -1)


#: For a quota that nobody names.
NOBODY = Siblings()
