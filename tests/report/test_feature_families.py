"""Metrics of the container runtime and of resource control."""

from __future__ import annotations

from dataclasses import replace

from koordlet.model import resctrl
from koordlet.report import feature_families
from tests.kit import views


def test_unknown_values_have_no_sample() -> None:
    """What reads Unavailable is not shown as zero; the peer's names cover the classes only."""
    usage = (
        resctrl.Usage(group="BE", domain="0", llc_bytes=4096, total_bytes=None),
        resctrl.Usage(group="", domain="0", llc_bytes=1),
    )
    now = views.view()
    held = resctrl.Resctrl(mount="/r", usage=usage)
    now = replace(now, snapshot=replace(now.snapshot, resctrl=held))
    rows = {family.name: list(family.rows(now)) for family in feature_families.RESCTRL}

    assert rows["koordlet_resctrl_llc_bytes"] == [(("BE", "0"), 4096), (("root", "0"), 1)]
    assert all(value is None for _, value in rows["koordlet_resctrl_memory_bytes"])
    node = now.snapshot.node.name
    assert [((node, "0", "BE"), 4096)] == rows["koordlet_resctrl_llc_occupancy"]


def test_without_resctrl_there_are_no_rows() -> None:
    """A machine that has none shows none."""
    now = views.view()

    assert [row for family in feature_families.RESCTRL for row in family.rows(now)] == []


def test_what_is_counted_of_the_runtime_is_shown() -> None:
    """What was not counted has no sample; without a runtime there is none at all."""
    now = replace(views.view(), runtime={"connected": True, "late": 2, "verified": 7})
    rows = {
        family.name: samples
        for family in feature_families.RUNTIME
        if (samples := list(family.rows(now)))
    }

    assert rows == {
        "koordlet_nri_connected": [((), True)],
        "koordlet_nri_late": [((), 2)],
        "koordlet_nri_checked": [(("verified",), 7)],
    }
    assert [row for family in feature_families.RUNTIME for row in family.rows(views.view())] == []


def test_a_shutdown_has_times_and_no_shutdown_has_none() -> None:
    """The end is there once all workloads have ended."""
    shutdowns: tuple[dict[str, float], ...] = ({}, {"start": 1.5}, {"start": 1.5, "end": 2.0})
    ends = [
        [value for family in feature_families.SHUTDOWN for _, value in family.rows(now)]
        for now in (replace(views.view(), shutdown=times) for times in shutdowns)
    ]
    assert ends == [[], [1.5], [1.5, 2.0]]
