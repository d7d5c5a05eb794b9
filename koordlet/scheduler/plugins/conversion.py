"""CPUs and devices of a reservation that pre-allocates: chosen when its room is there, not before.

Covers: which it has beside those of the pods that it adopted, writing them down.
Does not cover: its amounts and who is adopted (``reservation.preallocation``), handing CPUs over to
owners (``scheduler.allocation.handover``), amounts by NUMA node: it has none.

Rules:
1. It has every CPU and device of the pods that it adopted and that still run, and others until it
   has as many as it asks for: when those pods end, theirs are held without a gap.
2. Where the others cannot be had, it goes on waiting: who is available has what it promises.
3. Of a device that shrank below what such a pod has of it, it has that share as the device is now.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TypeVar

from koordlet.kubeapi import pod_annotations
from koordlet.model import cpuset
from koordlet.policy.cpu import allocation
from koordlet.scheduler import framework
from koordlet.scheduler.allocation import (
    device_choice,
    device_requests,
    device_room,
    devices,
    placement,
)
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.framework.profile import Profile
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.plugins import deviceshare, numa
from koordlet.scheduler.reservation.info import ReservationInfo

_Plugin = TypeVar("_Plugin", bound=framework.Plugin)


class Chooser:
    """Asked whenever the room of one that waits is there."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self._profiles = profiles

    def ready(self, info: ReservationInfo, columns: Columns) -> bool:
        """Whether it has its CPUs and devices, from now on; so does one that needs none."""
        slices = self._devices(info, columns)
        if slices is None or not self._cpus(info, columns):
            return False
        if info.reserve_pod is not None and slices:
            info.reserve_pod.devices = slices
            columns.touch(info.row)
        return True

    def _plugin(self, pod: Pod | None, plugin_class: type[_Plugin]) -> _Plugin | None:
        served = self._profiles.get(pod.pod_class.scheduler) if pod is not None else None
        return served.find(plugin_class) if served is not None else None

    def _devices(self, info: ReservationInfo, columns: Columns) -> tuple[devices.Slice, ...] | None:
        """Its devices; ``None``: they cannot be had yet."""
        mine = info.reserve_pod
        plugin = self._plugin(mine, deviceshare.DeviceShare)
        asked = device_requests.DeviceAsk(device_requests.rough(info.spec.allocatable))
        if mine is None or plugin is None or not asked.requests:
            return ()
        heirs = tuple(info.owners.values())
        apart = device_room.DrawContext(info, heirs_of=heirs)
        answer = device_choice.admit(asked, columns, info.row, apart, plugin.taste)
        if isinstance(answer, device_room.DeviceRefusal):
            return None
        several = columns.devices[mine.node].several if answer else ()
        chosen = {(part.kind, part.minor): part.amounts for part in answer}
        inside = not answer or all(_within(pod, several, chosen) for pod in heirs)
        return answer if inside else None

    def _cpus(self, info: ReservationInfo, columns: Columns) -> bool:
        mine, node = info.reserve_pod, columns.nodes[info.row]
        plugin = self._plugin(mine, numa.NodeNUMAResource)
        if mine is None or node is None or plugin is None:
            return True
        request, offer = plugin.request(mine.pod_class), plugin.offer(node)
        trial = placement.PlacementTrial(request, offer, columns, info.row)
        machine = offer.machine
        if not trial.bound or machine is None or not machine.shape.cores or request.cpu % 1000:
            return True
        chosen = mine.cpus or cpuset.CPUSet()
        for pod in info.owners.values():
            chosen |= pod.cpus or cpuset.CPUSet()
        lacking = request.cpu // 1000 - len(chosen)
        if lacking > 0:
            room = trial.room(trial.zones(machine))
            answer = room.allocate(allocation.Request(cpus=trial.cpus(lacking)))
            if isinstance(answer, allocation.Refusal):
                return False
            chosen |= answer.cpus
        mine.cpus = chosen
        return True


def _within(
    pod: Pod, several: Iterable[devices.Device], chosen: Mapping[device_room.Key, devices.Amounts]
) -> bool:
    """Whether all that a pod has of a node's devices is part of what was chosen."""
    known = {(part.kind, part.minor): part for part in several}
    for device in pod.devices:
        key = device.kind, device.minor
        its = device.amounts
        if key in known:
            its = known[key].kept(its, pod.pod_class.requests.real)
        part = chosen.get(key, {})
        if any(much > part.get(name, 0) for name, much in its.items()):
            return False
    return True


def marks(info: ReservationInfo) -> dict[str, str]:
    """The annotations by which agents and the next scheduler know them; none that is there."""
    if info.reserve_pod is None:
        return {}
    status = numa.spelled(info.reserve_pod)
    notes = {pod_annotations.RESOURCE_STATUS: json.dumps(status)} if status else {}
    notes |= deviceshare.marks(info.reserve_pod)
    known = info.spec.annotations
    return {key: spelled for key, spelled in notes.items() if known.get(key) != spelled}
