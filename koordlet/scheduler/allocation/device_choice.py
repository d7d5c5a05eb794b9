"""The devices that a pod would get on one node, of all types that it asks for, or why none.

Covers: which devices it may have, types that are allocated together, devices of reservations first.
Does not cover: the choice among the devices of one type (``device_pool``), what is free
(``device_room``), NUMA nodes (``device_alignment``).

Rules:
1. A device serves a pod if it is healthy, its labels are selected, it is on the given NUMA nodes,
   it has a virtual function to give where one is needed, and enough left. A pod that must be alone
   on its PCIe switch gets no device beside one of that type of which somebody has something.
2. Who draws on a reservation gets its devices where they suffice; from a Restricted one it gets
   nothing else; else the reservation's are preferred.
3. Types that are allocated together: the first as if alone, the others on the same PCIe switches if
   possible. Where they must be there and are not, the first is chosen once more among the switches
   that have all types.
4. A reservation that takes over from running pods has their devices, whatever it wishes.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from koordlet.scheduler.allocation import (
    device_hints,
    device_room,
    gpu_partitions,
    gpu_templates,
)
from koordlet.scheduler.allocation.device_hints import DeviceHint
from koordlet.scheduler.allocation.device_pool import (
    ANYWHERE,
    Choice,
    DevicePool,
    GPURules,
    NearbySwitches,
    PooledDevice,
)
from koordlet.scheduler.allocation.device_requests import DeviceAsk, DeviceRequest
from koordlet.scheduler.allocation.device_room import (
    NOBODY,
    TASTE,
    DevicePreference,
    DeviceRefusal,
    DeviceRoom,
    DrawContext,
    Left,
)
from koordlet.scheduler.allocation.devices import GPU, Device, DeviceFunction, Devices, Slice
from koordlet.scheduler.cluster.columns import Columns
from koordlet.scheduler.objects import peer_keys
from koordlet.scheduler.objects.nodes import Node

NO_PRIMARY = "node(s) Insufficient primary device"
APART = "node(s) Device Joint-Allocate rules violation"

Answer = tuple[Slice, ...] | DeviceRefusal
#: NUMA nodes; ``None``: any.
Mask = Collection[int] | None
_Pools = Mapping[str, DevicePool]


def admit(
    ask: DeviceAsk,
    columns: Columns,
    row: int,
    apart: DrawContext = NOBODY,
    taste: DevicePreference = TASTE,
) -> Answer:
    """The devices that a pod would get on a node; none where no Device is reported."""
    made = trial(ask, columns, row, apart, taste)
    return () if made is None else made.admit()


def trial(
    ask: DeviceAsk,
    columns: Columns,
    row: int,
    apart: DrawContext = NOBODY,
    taste: DevicePreference = TASTE,
    *,
    reserving: bool = False,
) -> DeviceTrial | None:
    """A pod and a node; ``None`` where it asks for no devices or the node reports none."""
    node = columns.nodes[row]
    devices = columns.devices.get(node.name) if node is not None else None
    if node is None or devices is None or not ask.requests:
        return None
    room = DeviceRoom.of(devices, columns, row, apart)
    return DeviceTrial(node, devices, ask, room, apart, taste=taste, reserving=reserving)


class DeviceTrial:
    """A pod on one node, as both stand now."""

    def __init__(
        self,
        node: Node,
        devices: Devices,
        ask: DeviceAsk,
        room: DeviceRoom,
        apart: DrawContext,
        *,
        taste: DevicePreference,
        reserving: bool,
    ) -> None:
        self.devices = devices
        self._ask = ask
        self._room, self._apart, self._taste = room, apart, taste
        self._node = node
        draws = apart.draws
        self._kept: Left = device_room.rest(draws, devices) if draws is not None else {}
        self._functions = device_room.kept_functions(draws) if draws is not None else {}
        self._alone = {
            kind
            for kind in {kind for kind, _ in self._kept}
            if draws is not None and device_room.restricts(draws, kind)
        }
        others = () if reserving or len(ask.joint) < 2 or not self._planned() else ask.joint[1:]
        self.requests = tuple(
            self._counted(request) for request in ask.requests if request.kind not in others
        )

    def _counted(self, request: DeviceRequest) -> DeviceRequest:
        """A request with the number of devices that it means on this node."""
        if not request.every:
            return request
        selector = self._ask.hint(request.kind).selector
        count = sum(_selected(device, selector) for device in self.devices.of(request.kind))
        return replace(request, count=count)

    def _label(self, key: str) -> str:
        """A label of the node, or of its report."""
        return self._node.labels.get(key) or self.devices.labels.get(key, "")

    @property
    def _vendor(self) -> str:
        return self._label(peer_keys.GPU_VENDOR)

    @property
    def _model(self) -> str:
        return self._label(peer_keys.GPU_MODEL)

    @functools.cached_property
    def _rules(self) -> GPURules:
        wishes, table = self._ask.wishes, self.devices.partitions
        if table is None:
            table = gpu_partitions.of_model(self._vendor, self._model)
        return GPURules(
            tree=self.devices.tree,
            table=table,
            honored=wishes.partition is not None
            or self._label(peer_keys.GPU_PARTITION_POLICY) == "Honor",
            spec=wishes.partition or gpu_partitions.ANY,
            scope=self._ask.hint(GPU).scope,
        )

    def _planned(self) -> bool:
        """Whether each whole GPU has its own devices of the other types, and nobody need ask."""
        whole = any(each.kind == GPU and not each.shared for each in self._ask.requests)
        return whole and self._label(peer_keys.WELL_PLANNED) == "true"

    def share(self) -> int:
        """How empty or how full the node's healthy devices would be, from 0 to 100."""
        shares = [self._room.share(request, self._taste) for request in self.requests]
        return sum(shares) // len(shares)

    def admit(self, numa: Mask = None) -> Answer:
        """The devices by type and minor, on these NUMA nodes."""
        if refusal := self._lacking():
            return refusal
        answer: Answer = ()
        for within in self._stages():
            answer = self._all(
                {each.kind: self._pool(each, within, numa) for each in self.requests}
            )
            if not isinstance(answer, DeviceRefusal):
                break
        return answer

    def fits(self) -> bool:
        """Whether it is served for sure: enough of each type, and nothing else decides.

        That is nearly every pod, and half of the cost of ``admit``.
        """
        plain = self._ask.wishes is device_hints.NONE and self._ask.templates is None
        if not plain or self._kept or self._label(peer_keys.GPU_PARTITION_POLICY) == "Honor":
            return False
        return all(len(self._room.candidates(each)) >= each.count for each in self.requests)

    def able(self, request: DeviceRequest) -> Iterator[Device]:
        """The devices that have enough for a request, wherever they are."""
        for pooled in self._pool(request, self._alone, None).several:
            yield pooled.candidate.device

    def _lacking(self) -> DeviceRefusal | None:
        """What the node does not have at all."""
        for request in self.requests:
            kind, several = request.kind, self.devices.of(request.kind)
            if not several or not request.count:
                return DeviceRefusal((f"Insufficient {kind} devices",), final=True)
            needs = self._ask.hint(kind).functions is not None
            if needs and not any(device.groups for device in several):
                return DeviceRefusal((f"Insufficient {kind} VirtualFunctions",), final=True)
        return None

    def _stages(self) -> Iterator[Collection[str]]:
        """The types of which the reservation's devices must do; the last answer counts."""
        kinds = {kind for kind, _ in self._kept}
        if kinds > self._alone and not self._apart.heirs_of:
            yield kinds
        yield self._alone

    # Which devices it may have.

    def _pool(self, request: DeviceRequest, within: Collection[str], numa: Mask) -> DevicePool:
        kind, room = request.kind, self._room
        hint = self._ask.hint(kind) if not self._apart.heirs_of else device_hints.NO_HINT
        several = self.devices.of(kind)
        eligible = tuple(self._eligible(several, hint, numa))
        minors = {device.minor for device in eligible}
        inside = self._kept if kind in within else None
        pooled = tuple(
            PooledDevice(candidate, functions)
            for candidate in room.candidates(request, inside)
            if candidate.device.minor in minors
            if (functions := self._function(candidate.device, hint)) is not None
        )
        used = {minor for known, minor in room.used if known == kind}
        if len(eligible) < len(several):
            used |= {device.minor for device in several} - minors
        return DevicePool(
            request=request,
            several=pooled,
            used=frozenset(used),
            preferred=frozenset(self._preferred(kind)),
            eligible=eligible,
            taste=self._taste,
        )

    def _eligible(
        self, several: Collection[Device], hint: DeviceHint, numa: Mask
    ) -> Iterator[Device]:
        """The healthy devices that are where they should be, and selected."""
        if hint is device_hints.NO_HINT and numa is None:
            yield from (device for device in several if device.healthy)
            return
        placed = any(at.numa >= 0 for device in several if (at := device.position) is not None)
        busy = {
            device.position for device in several if (device.kind, device.minor) in self._room.used
        }
        for device in several:
            at = device.position
            if hint.exclusive == device_hints.PCIE_LEVEL and (at is None or at in busy):
                continue
            if numa is not None and placed and (at is None or at.numa not in {-1, *numa}):
                continue
            if device.healthy and _selected(device, hint.selector):
                yield device

    def _function(self, device: Device, hint: DeviceHint) -> tuple[DeviceFunction, ...] | None:
        """The virtual function that it gets of a device; ``None``: it needs one and gets none."""
        if hint.functions is None:
            return ()
        key = device.kind, device.minor
        kept = self._functions.get(key, {})
        only = device.kind in self._alone and key in self._functions
        free = [
            (function.bus not in kept, function.bus, function)
            for group in device.groups
            if _holds(hint.functions, group.labels)
            for function in group.functions
            if (key, function.bus) not in self._room.functions
            if function.bus in kept or not only
        ]
        return (min(free, key=lambda each: each[:2])[2],) if free else None

    def _preferred(self, kind: str) -> Iterator[int]:
        yield from (minor for known, minor in self._kept if known == kind)
        for pod in self._apart.heirs_of:
            yield from (part.minor for part in pod.devices if part.kind == kind)

    # All types.

    def _all(self, pools: _Pools) -> Answer:
        chosen: dict[str, list[Slice]] = {}
        joint = [kind for kind in self._ask.joint if kind in pools]
        if joint and not self._apart.heirs_of:
            together = self._together(pools, joint)
            if isinstance(together, DeviceRefusal):
                return together
            chosen |= together
        refusals: list[DeviceRefusal] = []
        for kind, pool in pools.items():
            choice = chosen.get(kind) or self._of(pool)
            if isinstance(choice, DeviceRefusal):
                refusals.append(choice)
            else:
                chosen[kind] = choice
        if refusals:
            reasons = tuple(reason for refusal in refusals for reason in refusal.reasons)
            return DeviceRefusal(reasons, final=any(refusal.final for refusal in refusals))
        return tuple(
            part for kind in pools for part in sorted(chosen[kind], key=lambda part: part.minor)
        )

    def _of(self, pool: DevicePool, near: NearbySwitches = ANYWHERE) -> Choice:
        if pool.request.kind != GPU or self._apart.heirs_of:
            return pool.walk(near)
        if self._ask.templates is None or not pool.request.shared:
            return pool.gpus(self._rules, near)
        names = self._ask.templates.get(f"{self._vendor}-{self._model}", ())
        choice = pool.gpus(self._rules, near)
        if not names:
            return DeviceRefusal((gpu_templates.NO_MATCH,), final=True)
        if isinstance(choice, DeviceRefusal) or len(names) > 1:
            return choice
        return [replace(part, template=names[0]) for part in choice]

    def _together(
        self, pools: _Pools, kinds: Collection[str]
    ) -> dict[str, list[Slice]] | DeviceRefusal:
        """The types that are allocated together."""
        first, *others = kinds
        answer = self._beside(pools, pools[first], others)
        if not isinstance(answer, DeviceRefusal) or not self._same_switches or not others:
            return answer
        shared = {device.switch for device in pools[first].several} - {""}
        for kind in others:
            shared &= {device.switch for device in pools[kind].several}
        again = self._beside(pools, pools[first].on(shared), others)
        return answer if isinstance(again, DeviceRefusal) else again

    @property
    def _same_switches(self) -> bool:
        joint = self._ask.wishes.joint
        return joint is not None and joint.same_pcie

    def _beside(
        self, pools: _Pools, first: DevicePool, others: Collection[str]
    ) -> dict[str, list[Slice]] | DeviceRefusal:
        """The first type as if alone, and the others near it."""
        choice = self._of(first)
        if isinstance(choice, DeviceRefusal):
            # What the node lacks altogether, such as a table of groups, is said as it is.
            short = choice.reasons[0].startswith("Insufficient")
            return replace(choice, reasons=(NO_PRIMARY,)) if short and others else choice
        chosen, switches = {first.request.kind: choice}, first.switches(choice)
        near = NearbySwitches(switches, self._same_switches)
        for kind in others:
            beside = self._of(pools[kind], near)
            if isinstance(beside, DeviceRefusal):
                return beside
            if near.same and pools[kind].switches(beside) != switches:
                return DeviceRefusal((APART,), final=False)
            chosen[kind] = beside
        return chosen


def _selected(device: Device, selector: device_hints.Selector | None) -> bool:
    return selector is None or _holds(selector, device.labels)


def _holds(selector: device_hints.Selector, labels: Mapping[str, str]) -> bool:
    return all(requirement.matches(labels) for requirement in selector.labels)
