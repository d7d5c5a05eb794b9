"""Workloads near their own memory limit are told of, and harm nobody."""

from __future__ import annotations

import pytest

from koordlet.history import series
from koordlet.model import meter, resources
from koordlet.model.qos import Qos
from koordlet.policy.eviction import own_signals
from tests.kit import colocation, counting, moments

SHAPE = moments.machine(1, 2)


@pytest.mark.parametrize(("used", "met"), [(94, False), (95, True), (130, True)])
def test_the_nearest_counts(used: int, *, met: bool) -> None:
    """Of several the one that has the least left, by percent of its own limit."""
    limited = {"limits": {resources.MEMORY: 100}}
    near = colocation.declared("near", Qos.LS, group="near", **limited)
    far = colocation.declared("far", Qos.BE, group="far", limits={resources.MEMORY: 10_000})
    free = colocation.declared("free", Qos.BE, group="free")
    past = series.History()
    columns = {
        meter.MEMORY: [float(used), 900.0, 9e9],
        meter.MEMORY_INACTIVE_FILE: [0.0, 0.0, 0.0],
    }
    past.take({"groups": counting.reading(100.0, columns, names=("near", "far", "free"))})
    signal, condition = own_signals.judge_tight(
        colocation.moment(SHAPE, (near, far, free)), past, percent=95
    )

    assert signal.met is met
    assert signal.observed == f"{near.key} uses {used} of 100"
    assert condition.status is met


def test_nobody_is_limited() -> None:
    """Then it cannot be said."""
    signal, condition = own_signals.judge_tight(
        colocation.moment(SHAPE, ()), series.History(), percent=95
    )

    assert signal.met is None
    assert not condition.status
