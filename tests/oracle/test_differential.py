"""The scheduler decides as the oracle does: nodes, totals, ties, messages, victims.

Every cluster comes from its number, which a failure names. A soak begins at the number in
``KOORDLET_SEED`` (0 where it is not set) and prints how far it is, so that it can go on there.
"""

from __future__ import annotations

import os

import pytest

from koordlet.scheduler import cluster, sim
from tests.oracle.clusters import Maker
from tests.oracle.objects import Body
from tests.oracle.simulation import Oracle

ORDINARY = 1000
SOAK = 20_000
#: A soak says so often where it is.
STEP = 500


def told(document: Body) -> tuple[Body, Body, Body]:
    """What is compared of a simulation's document."""
    placements = {
        one["pod"]: {key: one[key] for key in ("node", "ties", "scores")}
        for one in document["placements"]
    }
    pending = {one["pod"]: one["message"] for one in document["pending"]}
    preemptions = {
        one["pod"]: {"node": one["node"], "victims": one["victims"]}
        for one in document["preemptions"]
    }
    return placements, pending, preemptions


def differ(seed: int) -> None:
    """Both decide about one cluster."""
    bodies = Maker(seed).bodies()
    oracle = Oracle(bodies)
    oracle.run()
    found = told(sim.Simulation(cluster.load(bodies), None, scores=True).run().document())

    assert (oracle.placements, oracle.pending, oracle.preemptions) == found, f"seed {seed}"


@pytest.mark.parametrize("block", range(8))
def test_the_scheduler_decides_as_the_oracle(block: int) -> None:
    """Placement by placement, on clusters that nobody chose."""
    for seed in range(block, ORDINARY, 8):
        differ(seed)


@pytest.mark.soak
def test_a_soak_of_clusters(capsys: pytest.CaptureFixture[str]) -> None:
    """The same, on many more."""
    first = int(os.environ.get("KOORDLET_SEED", "0"))
    for seed in range(first, first + SOAK):
        if seed % STEP == 0:
            with capsys.disabled():
                print(f"seed {seed}")  # noqa: T201 - a soak is watched
        differ(seed)
