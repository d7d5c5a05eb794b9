"""The vocabulary of resource control: what a machine has, and what no limit is."""

from __future__ import annotations

from koordlet.model import resctrl


def test_the_scarcest_resource_bounds_the_groups() -> None:
    """L3 has 16 classes and MB 8: eight groups in all."""
    cache = resctrl.Cache(name="L3", mask=0xFFF, num_closids=16)
    bandwidth = resctrl.Bandwidth(name="MB", unit=resctrl.Unit.PERCENT, num_closids=8)
    hardware = resctrl.Hardware(caches=(cache,), bandwidths=(bandwidth,))

    assert hardware.most_groups == 8
    assert resctrl.Hardware().most_groups == 1
    assert (cache, None) == (hardware.cache("L3"), hardware.cache("L2"))


def test_no_limit_is_what_the_machine_shows() -> None:
    """AMD: the largest value in any group; Intel: 100; with mba_MBps: all ones."""
    amd = resctrl.Bandwidth(name="MB", unit=resctrl.Unit.EIGHTHS, unlimited={0: 4096})
    none = resctrl.Bandwidth(name="MB", unit=resctrl.Unit.EIGHTHS)
    rate = resctrl.Bandwidth(name="MB", unit=resctrl.Unit.MBPS, unlimited={0: 12})

    assert (amd.free(0), amd.free(7), none.free(0)) == (4096, 4096, 2048)
    assert rate.free(0) == resctrl.MBPS_UNLIMITED
