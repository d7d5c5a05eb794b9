"""Gangs in the network: the scheduler and the oracle bind the same pods to the same nodes."""

from __future__ import annotations

from typing import ClassVar

import pytest

from koordlet.kubeapi import pod_groups
from tests.kit import clusters
from tests.oracle.objects import Body
from tests.oracle.test_gangs import Life

LIVES, SOAK = 120, 3000
LAYERS = ("spine", "block", "NodeTopologyLayer")


class GatheredLife(Life):
    """Nodes have places in a network, and most gangs say how they are gathered."""

    layers: ClassVar[dict[str, str] | None] = {layer: f"net/{layer}" for layer in LAYERS[:2]}

    def __init__(self, seed: int) -> None:
        #: By gang: what each of its members asks for, and whom they attract.
        self._wants: dict[str, Body] = {}
        self._texts: dict[str, str] = {}
        super().__init__(seed)

    def _node(self, name: str) -> Body:
        labels = {label: self._chance.choice("ab") for label in (self.layers or {}).values()}
        if labels and self._chance.random() < 0.1:
            labels.popitem()
        cpu = str(self._chance.randint(2, 8))
        return clusters.node(name, cpu=cpu, allocatable={"pods": "9"}, labels=labels)

    def _gathering(self, gang: str, together: list[str]) -> Body:
        """Layers with strategies and multiples; gangs that may share a place ask for the same."""
        wishes = self._wants.get(together[0], self._wishes())
        wishes.pop("schedulingGates", None)
        self._wants[gang] = wishes
        self._texts[gang] = self._chance.choice(("", "", "x", "y"))
        if self._chance.random() < 0.2:
            return {}
        strategies = [
            {
                "layer": layer,
                "strategy": self._chance.choice(("MustGather", "PreferGather")),
                **({"podCountMultiple": 2} if self._chance.random() < 0.2 else {}),
            }
            for layer in (*LAYERS, "ClusterTopologyLayer", "unknown")
            if self._chance.random() < (0.03 if layer == "unknown" else 0.35)
        ]
        return {"gather": {"gatherStrategy": strategies}}

    def _wishes_of(self, gang: str) -> Body:
        return dict(self._wants[gang])

    def _pod(self, gang: str, minimum: int = 2) -> Body:
        pod = super()._pod(gang, minimum)
        if self._texts[gang]:
            notes = pod["metadata"].setdefault("annotations", {})
            notes[pod_groups.TOPOLOGY_SELECTOR] = self._texts[gang]
        return pod


class UnknownNetworkLife(GatheredLife):
    """Nobody describes the network."""

    layers: ClassVar[dict[str, str] | None] = None


@pytest.mark.parametrize("block", range(4))
def test_the_scheduler_gathers_gangs_where_the_oracle_does(block: int) -> None:
    """Layers, multiples, selectors; late, dying and bound members, kills between two bindings."""
    for seed in range(block, LIVES, 4):
        GatheredLife(seed).run()


def test_without_a_network_only_gangs_wait_that_must_be_gathered() -> None:
    """A preference refuses nobody."""
    for seed in range(40):
        UnknownNetworkLife(seed).run()


@pytest.mark.soak
def test_a_soak_of_gathered_gangs() -> None:
    """The same, many more times."""
    for seed in range(SOAK):
        GatheredLife(seed).run()
