"""On the real kernel: a stop that comes while an agent's modules are imported is a final stop."""

from __future__ import annotations

import signal

import pytest

from tests.kit import deadline, images, live, live_workloads

pytestmark = pytest.mark.e2e


def test_limits_of_a_crashed_predecessor(
    place: live.Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are put back, although the agent that is told to stop has not read a file yet."""
    before = live_workloads.furnish(place)
    assert place.forked(live_workloads.settle) == 0
    assert images.difference(before, place.image()), "the predecessor's limits"
    # Each module is told as it is imported.
    monkeypatch.setenv("PYTHONPROFILEIMPORTTIME", "1")
    with place.running("--config", str(live_workloads.config(place))) as agent:
        deadline.until(lambda: "koordlet.cli.streams" in agent.err, "it begins to import")
        assert agent.ends(signal.SIGTERM) == 0, agent.err[-2000:]

    assert images.difference(before, place.image()) == {}
