"""On the real kernel: an agent in a cgroup that allows hardly any threads.

gRPC's core aborts the process where it gets none, and that comes after the first limits.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordlet.host.cgroup import hierarchies
from tests.e2e.test_configuration import address
from tests.kit import answers, deadline, images, live, live_workloads, needs

pytestmark = pytest.mark.e2e


@pytest.fixture
def bounded(place: live.Place) -> Iterator[Path]:
    """A group of the pids controller."""
    holder = hierarchies.discover(live.HOST).holder("pids")
    if holder is None or holder.unified:
        needs.missing("no cgroup v1 hierarchy has pids")
    made = Path(holder.mount, place.name)
    made.mkdir()
    try:
        yield made
    finally:
        deadline.removed(made)


@pytest.mark.parametrize("most", [1, 2, 3, 4, 6, 8, 60])
def test_few_threads(place: live.Place, bounded: Path, most: int) -> None:
    """It does without gRPC, in words, or has it; limits are in place, and go back at the end."""
    before = live_workloads.furnish(place)
    (bounded / "pids.max").write_text(str(most))
    with place.running("--config", str(live_workloads.config(place)), inside=bounded) as agent:
        agent.until("all surfaces up")
        assert images.difference(before, place.image()), "limits"
        checks = answers.text(address(agent), "/healthz?verbose")
        without = "gRPC needs" in checks
        assert without == (most < 10), checks
        assert ("pids.max" in checks) == without
        assert agent.ends(signal.SIGTERM) == 0, agent.err[-2000:]
        assert "Traceback" not in agent.err

    assert images.difference(before, place.image()) == {}
