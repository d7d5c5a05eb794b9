"""Reading how links queue, as far as it needs no kernel; ``tests/e2e/test_network_qos`` has one."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from koordlet.host.devices import queueing
from koordlet.host.recording import directory
from koordlet.model import queueing as shapes


def keys(address: str, first: int) -> list[tuple[bytes, int]]:
    """The keys of a filter for an address."""
    raw = ipaddress.ip_address(address).packed
    return [(raw[at : at + 4], first + at) for at in range(0, len(raw), 4)]


@pytest.mark.parametrize(
    ("address", "first"),
    [("10.0.0.7", 12), ("10.0.0.7", 16), ("fd00::7", 8), ("fd00::7", 24)],
)
def test_addresses_of_filters(address: str, first: int) -> None:
    """Source or destination, of either protocol, in whatever order the keys come."""
    assert address == queueing.address(keys(address, first))
    assert address == queueing.address(reversed(keys(address, first)))


@pytest.mark.parametrize(
    "some", [[], keys("10.0.0.7", 20), keys("fd00::7", 8)[:3], keys("fd00::7", 12)]
)
def test_other_filters_have_none(some: list[tuple[bytes, int]]) -> None:
    """A part of an address, or another place of the header, is no address."""
    assert queueing.address(some) is None


def test_a_recording_has_no_network(tmp_path: Path) -> None:
    """Links of the machine that reads a recording are not those of the recording."""
    host = directory.DirHost(str(tmp_path))

    assert shapes.Links() == queueing.QueueingReader(host).look(0.0, ["lo"])
    assert queueing.side(host, "lo", "egress") is None
