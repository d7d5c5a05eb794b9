"""The scheduler decides as the oracle does where volumes, NUMA nodes and use have a say."""

from __future__ import annotations

import os

import pytest

from koordlet.scheduler import cluster, sim
from tests.oracle.furnishing import NOW, Furnisher
from tests.oracle.simulation import Oracle
from tests.oracle.test_differential import told

ORDINARY = 120
SOAK = 6000
STEP = 500


def differ(seed: int) -> None:
    """Both decide about one cluster."""
    bodies = Furnisher(seed).bodies()
    oracle = Oracle(bodies, NOW)
    oracle.run()
    found = told(sim.Simulation(cluster.load(bodies), None, scores=True, now=NOW).run().document())

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
