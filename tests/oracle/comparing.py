"""One cluster decided about twice, by the scheduler and by the oracle; and many of them.

Every cluster comes from its number, which a failure names. A soak begins at the number in
``KOORDLET_SEED`` (0 where it is not set) and prints how far it is, so that it can go on there.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.sim import simulation
from tests.oracle.objects import Body
from tests.oracle.simulation import Oracle

#: A soak says so often where it is.
STEP = 500


def compare(seed: int, bodies: list[Body], now: float = 0.0) -> None:
    """Both decide about one cluster."""
    oracle = Oracle(bodies, now)
    oracle.run()
    made = (
        simulation.Simulation(inventory.load(bodies), None, scores=True, now=now).run().document()
    )

    placements, pending, preemptions = compared(made)
    assert (placements, preemptions) == (oracle.placements, oracle.preemptions), f"seed {seed}"
    assert pending.keys() == oracle.pending.keys(), f"seed {seed}"
    # The scheduler tries a pod again only after what may help it: its words may be older.
    unexpected = {key: why for key, why in pending.items() if why not in oracle.pending[key]}
    assert unexpected == {}, f"seed {seed}"


def compared(document: Body) -> tuple[Body, Body, Body]:
    """What is compared of a simulation's document."""
    placements = {
        placement["pod"]: {key: placement[key] for key in ("node", "ties", "scores")}
        for placement in document["placements"]
    }
    pending = {refusal["pod"]: refusal["message"] for refusal in document["pending"]}
    preemptions = {
        preemption["pod"]: {"node": preemption["node"], "victims": preemption["victims"]}
        for preemption in document["preemptions"]
    }
    return placements, pending, preemptions


def soak(differ: Callable[[int], None], count: int, capsys: pytest.CaptureFixture[str]) -> None:
    """So many clusters, one after the other."""
    first = int(os.environ.get("KOORDLET_SEED", "0"))
    for seed in range(first, first + count):
        if seed % STEP == 0:
            with capsys.disabled():
                print(f"seed {seed}")  # noqa: T201 - a soak is watched
        differ(seed)
