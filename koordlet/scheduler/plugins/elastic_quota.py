"""ElasticQuota: pods are admitted by their quota, and kept on the nodes of its tree.

Covers: the extension points. Does not cover: quotas (``scheduler.quotas``), making room inside a
quota and waking who waits (``scheduler.loop.quota_scheduler``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from koordlet.kubeapi.selectors import Requirement
from koordlet.scheduler import framework
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.cluster.events import ActionType
from koordlet.scheduler.objects.pods import Pod, PodClass
from koordlet.scheduler.quotas import settings

NOT_IN_TREE = "node(s) not in the quota tree"


class AdmittingQuotas(Protocol):
    """What the plugin asks."""

    def refusal(self, pod: Pod) -> str:
        """Why a quota does not admit a pod; empty: it does."""

    def selector(self, pod_class: PodClass) -> tuple[Requirement, ...]:
        """What nodes satisfy that a class is kept on; empty: all nodes do."""

    def assumed(self, pod: Pod) -> None:
        """A pod got a node."""

    def released(self, pod: Pod) -> None:
        """A pod gave its node back."""


class ElasticQuotaPlugin(framework.Plugin):
    """Quotas of Koordinator's meaning."""

    name = "ElasticQuota"
    #: A refused pod is woken when its quota has room, whatever made that.
    listens = ActionType(0)

    def __init__(self, args: Mapping[str, Any]) -> None:
        super().__init__(args)
        self.arguments = settings.arguments(args)
        self._quotas: AdmittingQuotas | None = None

    @property
    def warnings(self) -> Sequence[str]:
        return self.arguments.warnings

    def attach(self, quotas: AdmittingQuotas) -> None:
        """Ask these quotas."""
        self._quotas = quotas

    def pre_filter(self, pod: Pod) -> str:
        return self._quotas.refusal(pod) if self._quotas is not None else ""

    def filter(self, pod_class: PodClass, columns: Columns) -> framework.Filter | None:
        selector = self._quotas.selector(pod_class) if self._quotas is not None else ()
        if not selector:
            return None
        passing = [
            node is not None and all(requirement.matches(node.labels) for requirement in selector)
            for node in columns.nodes
        ]
        return framework.masked(np.array(passing, np.bool_), NOT_IN_TREE)

    def reserve(self, pod: Pod, node: str) -> None:
        if self._quotas is not None:
            self._quotas.assumed(pod)

    def unreserve(self, pod: Pod, node: str) -> None:
        if self._quotas is not None:
            self._quotas.released(pod)
