"""The plugin CapacityScheduling; what it does is seen in the loop."""

from __future__ import annotations

import pytest

from koordlet.scheduler.objects.wire import BadObjectError
from koordlet.scheduler.plugins.capacity_scheduling import CapacityScheduling


def test_arguments_are_refused_by_name() -> None:
    """The peer has none: what somebody wrote there would do nothing."""
    with pytest.raises(BadObjectError, match="CapacityScheduling has no arguments; remove a, b"):
        CapacityScheduling({"kind": "CapacitySchedulingArgs", "b": 1, "a": 2})
    assert CapacityScheduling({"kind": "CapacitySchedulingArgs"}).name == "CapacityScheduling"
