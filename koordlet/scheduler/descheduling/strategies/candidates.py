"""Arguments that Koordinator's balance plugins have in common: which nodes and pods they look at.

Covers: reading them, asking them. Does not cover: LowNodeLoad, whose nodes come in pools
(``load_settings``).
"""

from __future__ import annotations

from koordlet.kubeapi import selectors
from koordlet.model.record import dataclass
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling import selection
from koordlet.scheduler.descheduling.fields import Fields
from koordlet.scheduler.descheduling.traits import Resident
from koordlet.scheduler.objects import terms


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSettings:
    """Nodes and pods in view, and whether anything is done."""

    paused: bool = False
    dry_run: bool = False
    node_fit: bool = True
    nodes: selectors.Compiled | None = None
    namespaces: selection.Choice = selection.EVERYTHING
    selectors: tuple[selectors.Compiled, ...] = ()

    def rows(self, scene: rounds.Scene) -> list[int]:
        """The nodes in view."""
        return [
            row for row in scene.rows if selection.matches(self.nodes, scene.state.node(row).labels)
        ]

    def wants(self, resident: Resident) -> bool:
        """Whether a pod is looked at."""
        pod_class = resident.pod.pod_class
        if not self.namespaces.admits(pod_class.namespace):
            return False
        several = self.selectors
        return not several or any(terms.holds(each, pod_class.labels) for each in several)


def read(fields: Fields, *, dry_run: bool = False) -> CandidateSettings:
    """The common arguments; the caller reads its own, and calls ``done``.

    ``dry_run``: whether the strategy only shows where nothing is said.
    """
    return CandidateSettings(
        paused=fields.flag("paused"),
        dry_run=fields.flag("dryRun", default=dry_run),
        node_fit=fields.flag("nodeFit", default=True),
        nodes=fields.selector("nodeSelector"),
        namespaces=selection.choice(fields, "evictableNamespaces"),
        selectors=pod_selectors(fields),
    )


def pod_selectors(fields: Fields) -> tuple[selectors.Compiled, ...]:
    """``podSelectors``: one that is empty selects every pod, and is left out."""
    several = []
    for child in fields.children("podSelectors"):
        selector = child.selector("selector")
        child.done("name")
        if selector is not None:
            several.append(selector)
    return tuple(several)
