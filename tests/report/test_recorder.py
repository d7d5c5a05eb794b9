"""The recorder: one row a second, one a minute, in memory that does not grow."""

from __future__ import annotations

import dataclasses
import gc
import tracemalloc
from array import array

import pytest

from koordlet.history import series
from koordlet.model import best_effort, counters, meter, resctrl, resources, strain
from koordlet.report import recorder
from tests.kit import clocks, pasts, recorders, views

#: Everything that is remembered for people.
BUDGET_BYTES = 8 << 20


def used(cores: float = 2.0) -> counters.Usage:
    """A node and its classes."""
    node = counters.Table(slots={"": 0}, columns={meter.CPU: array("d", [cores])})
    shares = counters.Table(
        slots={"LS": 0, "BE": 1},
        columns={
            meter.CPU_SHARE: array("d", [1.0, counters.NAN]),
            meter.STALLED_SHARES[0]: array("d", [0.25, 0.5]),
        },
    )
    return counters.Usage(node=node, shares=shares)


def test_a_row_has_every_known_quantity_by_its_key() -> None:
    """Node, classes, parts of the machine; what is not known is not in it."""
    links = counters.Table(slots={"eth0": 0}, columns={meter.SENT: array("d", [7.0])})
    row = dict(
        recorder.samples(views.view(used=dataclasses.replace(used(), links=links)), latency=0.004)
    )

    expected = {
        "node/cpuCores": 2.0,
        "LS/cpuCores": 1.0,
        "LS/pressure.cpu.some": 0.25,
        "BE/pressure.cpu.some": 0.5,
        "link eth0/sentBytesPerSecond": 7.0,
        "LS/latencySeconds": 0.004,
        "node/cpus": 7.0,
        "reserved/ownedCPUs": 2.0,
        "LS pool/ownedCPUs": 5.0,
        "BE pool/ownedCPUs": 3.0,
    }
    assert row == expected


def test_limit_offer_waiting_and_caches_are_recorded() -> None:
    """The limit only where it is in force; caches of the classes, not of groups inside them."""
    limit = best_effort.Limit(policy="adaptive", actuator="x", milli=2500)
    offer = best_effort.Offer(amounts={resources.BATCH_CPU: 1500})
    now = views.view(made=views.made_plan(limit=limit, offer=offer))
    usage = (
        resctrl.Usage(group="BE", domain="0", llc_bytes=10, total_rate=1.0),
        resctrl.Usage(group="BE", domain="1", llc_bytes=20, total_rate=2.0),
        resctrl.Usage(group="BE/mon_groups/x", domain="1", llc_bytes=9),
    )
    snapshot = dataclasses.replace(
        now.snapshot,
        strain=strain.Strain(at=1.0, waiting=0.03),
        resctrl=resctrl.Resctrl(mount="/r", usage=usage),
    )
    row = dict(recorder.samples(dataclasses.replace(now, snapshot=snapshot), latency=None))

    assert {name: row[name] for name in row if name.startswith(("BE/", "LS/"))} == {
        "BE/limitCores": 2.5,
        "BE/offeredCores": 1.5,
        "LS/waitingRatio": 0.03,
        "BE/cacheBytes": 30.0,
        "BE/memoryBandwidthBytesPerSecond": 3.0,
    }
    idle = best_effort.idle(limit, "shadow")
    plan = dataclasses.replace(now.plan, limit=idle)
    assert "BE/limitCores" not in dict(recorder.samples(dataclasses.replace(now, plan=plan), None))


def test_passes_between_the_seconds_get_no_row() -> None:
    """A protective pass ten times a second does not fill an hour in six minutes."""
    clock = clocks.Clock(100.0)
    recorded = recorders.recorder(clock=clock)
    for at in (100.0, 100.1, 100.74, 100.76, 101.8):
        clock.now = at
        recorded.publish(views.view(used=used()))

    assert recorded.seconds.samples(("node/cpuCores",)).at == [100.0, 100.76, 101.8]


def test_a_minute_has_the_means_of_its_seconds_and_the_busiest_workloads() -> None:
    """After the first whole one; of a workload that is not counted nothing is recorded."""
    clock = clocks.Clock(0.0)
    busy = {meter.CPU: 1.5, meter.WORKING_SET: 2.0**20}
    past = pasts.past(groups={"shop/web": busy}, until=160.0, seconds=90)
    recorded = recorders.recorder(past, clock=clock)
    for second in range(62):
        clock.now = 100.0 + second
        recorded.publish(views.view(used=used(float(second % 2)), at=clock.now))

    minutes = recorded.minutes.samples(("node/cpuCores",))
    assert (minutes.at, list(minutes.columns["node/cpuCores"])) == ([160.0], [0.5])
    workloads = recorded.workloads.samples(recorded.workloads.names())
    assert {name: list(column) for name, column in workloads.columns.items()} == {
        "default/web/cpuCores": [pytest.approx(1.5)],
        "default/web/memoryBytes": [2.0**20],
    }


def test_recent_use_of_a_workload_is_told_on_the_recorders_clock() -> None:
    """Five seconds apart, the newest sample included, so that a page can draw it at once."""
    past = pasts.past(groups={"shop/web": {meter.CPU: 1.5}}, until=100.0, seconds=20)
    recorded = recorders.recorder(past, clock=clocks.Clock(1100.0))

    samples = recorded.recent(views.view(at=100.0))

    assert list(samples.at) == [1085.0, 1090.0, 1095.0, 1100.0]
    assert [list(column) for column in samples.columns.values()] == [[1.5] * 4]


def test_a_day_of_a_crowded_node_stays_within_the_budget() -> None:
    """All memory is taken at the start: full columns, full marks and churn add nothing."""
    gc.collect()
    tracemalloc.start()
    try:
        clock = clocks.Clock(0.0)
        recorded = recorders.recorder(series.History(), clock=clock)
        for minute in range(recorder.MINUTES + 60):
            clock.now += 60
            row = {f"subject {n + minute}/cpuCores": 1.0 for n in range(recorder.CAPACITY)}
            recorded.row = row
            recorded.seconds.take(clock.now, row)
            recorded.minutes.take(clock.now, row)
            names = (f"team/pod-{n + minute:05}-with-a-long-name/cpuCores" for n in range(192))
            recorded.workloads.take(clock.now, dict.fromkeys(names, 1.0))
            recorded.marks.take(recorders.limited(minute), clock.now)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert held < BUDGET_BYTES
    assert len(recorded.marks.after(0.0)) > 200
