"""The scheduler decides as the oracle does where volumes, NUMA nodes and use have a say."""

from __future__ import annotations

import pytest

from tests.oracle import comparing
from tests.oracle.furnishing import NOW, Furnisher

ORDINARY = 120
SOAK = 6000


def differ(seed: int) -> None:
    """Both decide about one cluster."""
    comparing.compare(seed, Furnisher(seed).bodies(), NOW)


@pytest.mark.parametrize("block", range(8))
def test_the_scheduler_decides_as_the_oracle(block: int) -> None:
    """Placement by placement, on clusters that nobody chose."""
    for seed in range(block, ORDINARY, 8):
        differ(seed)


@pytest.mark.parametrize("seed", [814, 12240, 13477])
def test_what_only_few_clusters_have(seed: int) -> None:
    """A wish for neighbours that is kept off by others; best-effort work; a volume that is gone."""
    differ(seed)


@pytest.mark.soak
def test_a_soak_of_clusters(capsys: pytest.CaptureFixture[str]) -> None:
    """The same, on many more."""
    comparing.soak(differ, SOAK, capsys)
