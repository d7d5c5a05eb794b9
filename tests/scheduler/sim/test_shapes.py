"""Generated clusters: each named workload is scheduled."""

from __future__ import annotations

import pytest

from koordlet.model import errors
from koordlet.scheduler import cluster, picture, shapes, sim


@pytest.mark.parametrize("name", shapes.NAMES)
def test_every_workload_runs(name: str) -> None:
    """Every pod is placed or pending, and nothing was left out."""
    loaded = cluster.load(shapes.generate(name, 12, 24))
    found = sim.Simulation(loaded).run()

    assert 24 == len(found.placements) + len(found.pending)
    assert not loaded.warnings
    assert picture.svg(loaded.columns).startswith("<svg")


def test_unknown_workload() -> None:
    """The error lists the known ones."""
    with pytest.raises(errors.ConfigError, match="SchedulingBasic"):
        list(shapes.generate("Nothing", 1, 1))
