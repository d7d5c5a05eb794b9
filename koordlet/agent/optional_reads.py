"""What is read only where a policy asks for it: block devices, network links, cookies of processes.

Covers: who asks, putting it into the snapshot, and what we changed of it ourselves.
Does not cover: reading (``host``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from koordlet.host import observe
from koordlet.model import action, plan, result, snapshot
from koordlet.policy.cpu import core_scheduling
from koordlet.policy.memory_io import blkio_qos, network_qos


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
    if modes.get(core_scheduling.STEM, plan.Mode.OFF) is not plan.Mode.OFF:
        seen = replace(seen, cookies=observer.cookies(seen.at, seen.groups))
    return seen


def acted(observer: observe.Observer, results: Iterable[result.Result]) -> None:
    """What was changed has to be seen: threads moved, links shaped, cookies given."""
    did = [one.step.action for one in results if one.step is not None]
    if any(isinstance(one, action.MoveTasks) and one.taken_from for one in did):
        observer.resctrl.tasks.due()
    if any(isinstance(one, action.SetQdisc | action.ShareCore) for one in did):
        observer.changed()
