"""The history: spaces side by side."""

from __future__ import annotations

from koordlet.history import series
from koordlet.model import meter
from tests.kit import counting, views


def test_each_reading_goes_to_its_space() -> None:
    """What was read of one kind of subject is not asked of another."""
    past = series.History()
    past.take({"cpus": counting.reading(0, {meter.PIDS: [7.0]}, names=("3",))})

    assert 7 == past.cpus.last("3", meter.PIDS)
    assert past.groups.last("3", meter.PIDS) is None
    assert 7 == past.usage().cpus.value("3", meter.PIDS)
    assert {} == past.usage().node.slots


def test_what_is_expected_is_learned_in_turns() -> None:
    """Every workload is sampled once a minute; then there is a prediction, once it is known."""
    past, workloads = series.History(), views.pods(3)
    names = [str(one.group) for one in workloads]
    for at in range(130):
        cpu, memory = [1.0 * at] * 3, [100.0] * 3
        groups = counting.reading(
            at,
            {meter.CPU: cpu, meter.MEMORY: memory, meter.MEMORY_INACTIVE_FILE: [0.0] * 3},
            names=names,
        )
        node = {meter.CPU: [4.0 * at], meter.WORKING_SET: [500.0], meter.MEMORY_TOTAL: [1e9]}
        past.take({"groups": groups, "node": counting.reading(at, node, names=("",))})
        past.share(groups, workloads)
        past.learn(groups, workloads, 8)

    assert 5 == len(past.expectation)
    # Three cores of prod and one of the system, a tenth more, rounded up to a bucket.
    assert 4.4 <= past.predicted.peak["cpu"] <= 4.8
    assert 0 == past.predicted.reclaimable["cpu"]
