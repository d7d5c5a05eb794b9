"""The scheduler decides as the oracle does: nodes, totals, ties, messages, victims."""

from __future__ import annotations

import pytest

from tests.oracle import comparing
from tests.oracle.clusters import Maker

ORDINARY = 600
SOAK = 20_000


def differ(seed: int) -> None:
    """Both decide about one cluster."""
    comparing.compare(seed, Maker(seed).bodies())


@pytest.mark.parametrize("block", range(8))
def test_the_scheduler_decides_as_the_oracle(block: int) -> None:
    """Placement by placement, on clusters that nobody chose."""
    for seed in range(block, ORDINARY, 8):
        differ(seed)


def test_a_pod_is_tried_again_only_after_what_may_help_it() -> None:
    """Where it finds no room, a neighbour for it to be beside does not, though it might preempt."""
    differ(12300)


@pytest.mark.soak
def test_a_soak_of_clusters(capsys: pytest.CaptureFixture[str]) -> None:
    """The same, on many more."""
    comparing.soak(differ, SOAK, capsys)
