"""Generated clusters: each named workload is scheduled."""

from __future__ import annotations

import pytest

from koordlet.model import errors
from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.sim import picture, shapes, simulation


@pytest.mark.parametrize("name", shapes.NAMES)
def test_every_workload_runs(name: str) -> None:
    """Every pod is placed or pending, and nothing was left out."""
    loaded = inventory.load(shapes.generate(name, 12, 24))
    report = simulation.Simulation(loaded).run()

    assert len(report.placements) + len(report.pending) == 24
    assert not loaded.warnings
    assert picture.svg(loaded.columns).startswith("<svg")


def test_unknown_workload() -> None:
    """The error lists the known ones."""
    with pytest.raises(errors.ConfigError, match="SchedulingBasic"):
        list(shapes.generate("Nothing", 1, 1))
