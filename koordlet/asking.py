"""What is read only where a policy asks for it: block devices, and how network links queue.

Covers: who asks, and putting it into the snapshot. Does not cover: reading (``host``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from koordlet.host import observe
from koordlet.model import plan, snapshot
from koordlet.policy import blkio_qos, network_qos


def complete(
    seen: snapshot.Snapshot,
    observer: observe.Observer,
    settings: Mapping[str, object],
    modes: Mapping[str, plan.Mode],
    *,
    slow: bool,
) -> snapshot.Snapshot:
    """The snapshot with what somebody wants to know."""
    if blkio_qos.asked(seen, settings[blkio_qos.STEM]):
        seen = replace(seen, blocks=observer.block_devices(again=slow))
    if modes.get(network_qos.STEM, plan.Mode.OFF) is not plan.Mode.OFF:
        names = cast("network_qos.Settings", settings[network_qos.STEM]).interfaces
        seen = replace(seen, links=observer.links(seen.at, names))
    return seen
