"""Pools of devices, as each node sees them.

Covers: which slices are relevant to a node, whether a pool is complete and sound, the order of its
devices; a node's view is kept until a slice changes it.
Does not cover: whether a device may be taken (``allocator``), what is in use (``devices_in_use``).

Rules:
1. Relevant are slices whose nodes include this one, and all that have shared counters. Of these,
   the highest generation of a pool counts.
2. A pool of which the relevant slices are as many as it has is complete. Otherwise all slices of
   the pool are looked at: a newer generation hides it, a wrong number makes it incomplete.
3. A device or counter set that is there twice, or a consumption of a counter that is not there,
   makes a pool invalid. Neither kind gives devices.
4. Order: pools by driver and name, those with binding conditions last; slices by name; devices as
   the slice has them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import field
from fractions import Fraction

from koordlet.model.record import dataclass
from koordlet.scheduler.cluster import vectors
from koordlet.scheduler.objects import resource_slices

PoolKey = tuple[str, str]
#: Driver, pool, device.
DeviceId = tuple[str, str, str]
#: Counter set and counter, to an amount.
CounterAmounts = Mapping[tuple[str, str], Fraction]


class PoolState(enum.Enum):
    """Whether a pool gives devices."""

    SOUND = "sound"
    INCOMPLETE = "being updated"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class PoolDevice:
    """A device that nodes may reach, and what was learnt of it."""

    id: DeviceId
    device: resource_slices.SliceDevice
    #: Its own, or that of its slice.
    selection: resource_slices.NodeSelection
    consumes: CounterAmounts
    #: By selectors, whether it satisfies them: a device never changes.
    answers: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class PoolView:
    """A pool as one node sees it."""

    key: PoolKey
    state: PoolState = PoolState.SOUND
    #: Why it is invalid.
    reason: str = ""
    devices: tuple[PoolDevice, ...] = ()
    counters: CounterAmounts = field(default_factory=dict)
    #: By name what devices of the pool consume, also those that this node does not reach.
    consumers: Mapping[str, CounterAmounts] = field(default_factory=dict)
    has_binding_conditions: bool = False

    @property
    def name(self) -> str:
        """``driver/pool``, for messages."""
        return "/".join(self.key)


@dataclass(frozen=True, slots=True)
class NodePools:
    """Everything that one node reaches, in the order of the search."""

    pools: tuple[PoolView, ...] = ()
    devices: tuple[PoolDevice, ...] = ()
    #: Of each device, its pool.
    owners: tuple[PoolView, ...] = ()

    @property
    def has_invalid(self) -> bool:
        """Whether some pool is invalid."""
        return any(pool.state is PoolState.INVALID for pool in self.pools)


class _Invalid(Exception):  # noqa: N818 -- a state of the pool, not of this program
    """A pool contradicts itself."""


@dataclass(frozen=True, slots=True)
class _Published:
    """A slice with its devices made ready."""

    content: resource_slices.ResourceSlice
    devices: tuple[PoolDevice, ...]

    def concerns(self, node: str, labels: Mapping[str, str]) -> bool:
        """Whether the slice is relevant to a node."""
        content = self.content
        if content.counter_sets:
            return True
        if content.per_device:
            return any(device.selection.matches(node, labels) for device in self.devices)
        return content.selection.matches(node, labels)


class PoolBook:
    """All slices of a cluster, and what nodes see of them."""

    def __init__(self) -> None:
        self._slices: dict[str, _Published] = {}
        self._pools: dict[PoolKey, dict[str, _Published]] = {}
        #: By the name of a node the pools of which slices name it.
        self._local: dict[str, set[PoolKey]] = {}
        #: Pools that any node may see: by a selector, or because their counters are no good.
        self._wide: set[PoolKey] = set()
        self._views: dict[str, tuple[Mapping[str, str], NodePools]] = {}
        #: By the identities of their pools, which they keep alive: views of wide pools alone.
        self._wide_views: dict[tuple[int, ...], NodePools] = {}
        self._built: dict[PoolKey, dict[tuple[str, ...], PoolView]] = {}
        #: Nodes that see something else.
        self.changes: vectors.ChangeLog[str] = vectors.ChangeLog()

    def put(self, content: resource_slices.ResourceSlice) -> None:
        """A slice comes, or changes."""
        self.drop(content.name)
        published = _published(content)
        key = (content.driver, content.pool)
        self._slices[content.name] = published
        self._pools.setdefault(key, {})[content.name] = published
        self._changed(key)

    def drop(self, name: str) -> None:
        """A slice goes."""
        known = self._slices.pop(name, None)
        if known is None:
            return
        key = (known.content.driver, known.content.pool)
        del self._pools[key][name]
        if not self._pools[key]:
            del self._pools[key]
        self._changed(key, known.content)

    def forget(self, node: str) -> None:
        """A node goes, or its labels change."""
        self._views.pop(node, None)
        self.changes.append(node)

    def viewers(self, key: PoolKey) -> set[str] | None:
        """The nodes that see a pool; ``None``: any may."""
        if key in self._wide:
            return None
        members = self._pools.get(key, {}).values()
        return {member.content.selection.node_name for member in members}

    def view(self, node: str, labels: Mapping[str, str]) -> NodePools:
        """What a node sees; the same object for as long as nothing changes that."""
        known = self._views.get(node)
        if known is not None and (known[0] is labels or known[0] == labels):
            return known[1]
        seen = [
            pool
            for key in sorted(self._wide | self._local.get(node, set()))
            if (pool := self._seen(key, node, labels)) is not None
        ]
        seen.sort(key=lambda pool: pool.has_binding_conditions)
        # Thousands of nodes that reach nothing but the network's devices share one view.
        names = tuple(map(id, seen))
        made = self._wide_views.get(names) or _node_pools(seen)
        if all(pool.key in self._wide for pool in seen):
            self._wide_views[names] = made
        self._views[node] = labels, made
        return made

    def _changed(self, key: PoolKey, gone: resource_slices.ResourceSlice | None = None) -> None:
        """Forget what nodes saw of a pool, and note who can see it."""
        self._built.pop(key, None)
        members = self._pools.get(key, {}).values()
        contents = [member.content for member in members]
        was_wide = key in self._wide
        named = {content.selection.node_name for content in [*contents, *([gone] if gone else [])]}
        local = all(content.selection.node_name and not content.per_device for content in contents)
        is_wide = bool(contents) and (not local or self._is_suspect(key))
        (self._wide.add if is_wide else self._wide.discard)(key)
        for node in filter(None, named):
            owners = self._local.setdefault(node, set())
            still = any(content.selection.node_name == node for content in contents)
            (owners.add if still else owners.discard)(key)
            if not owners:
                del self._local[node]
            self._views.pop(node, None)
            self.changes.append(node)
        if was_wide or is_wide:
            self._views.clear()
            self._wide_views.clear()
            self.changes.forget()

    def _is_suspect(self, key: PoolKey) -> bool:
        """Whether nodes that reach nothing of a pool but its counters see it as no good."""
        if not any(member.content.counter_sets for member in self._pools[key].values()):
            return False
        seen = self._seen(key, "", {})
        return seen is not None and seen.state is not PoolState.SOUND

    def _seen(self, key: PoolKey, node: str, labels: Mapping[str, str]) -> PoolView | None:
        members = self._pools[key].values()
        relevant = [member for member in members if member.concerns(node, labels)]
        if not relevant:
            return None
        generation = max(member.content.generation for member in relevant)
        relevant = [member for member in relevant if member.content.generation == generation]
        relevant.sort(key=lambda member: member.content.name)
        if any(member.content.per_device for member in relevant):
            return self._build(key, relevant, node, labels)
        # Nodes that see the same slices share what is made of them.
        names = tuple(member.content.name for member in relevant)
        built = self._built.setdefault(key, {})
        if names not in built:
            made = self._build(key, relevant, node, labels)
            if made is None:
                return None
            built[names] = made
        return built[names]

    def _build(
        self, key: PoolKey, relevant: list[_Published], node: str, labels: Mapping[str, str]
    ) -> PoolView | None:
        first, whole = relevant[0].content, relevant
        if len(relevant) != first.slice_count:
            members = self._pools[key].values()
            if any(member.content.generation > first.generation for member in members):
                return None
            whole = [member for member in members if member.content.generation == first.generation]
            if len(whole) != first.slice_count:
                return PoolView(key, PoolState.INCOMPLETE)
        try:
            counters = _check(relevant, whole)
        except _Invalid as problem:
            return PoolView(key, PoolState.INVALID, str(problem))
        offered = tuple(
            device
            for member in relevant
            for device in member.devices
            if not member.content.per_device or device.selection.matches(node, labels)
        )
        return PoolView(
            key,
            devices=offered,
            counters=counters,
            consumers={
                device.device.name: device.consumes
                for member in whole
                for device in member.devices
                if device.consumes
            },
            has_binding_conditions=any(
                device.device.binding_conditions for member in relevant for device in member.devices
            ),
        )


def _node_pools(seen: list[PoolView]) -> NodePools:
    return NodePools(
        tuple(seen),
        tuple(device for pool in seen for device in pool.devices),
        tuple(pool for pool in seen for _ in pool.devices),
    )


def _published(content: resource_slices.ResourceSlice) -> _Published:
    devices = tuple(
        PoolDevice(
            (content.driver, content.pool, device.name),
            device,
            device.selection if content.per_device else content.selection,
            _amounts(device.consumes),
        )
        for device in content.devices
    )
    return _Published(content, devices)


def _amounts(sets: Iterable[resource_slices.CounterSet]) -> CounterAmounts:
    """Amounts of several counter sets; what is named twice is added."""
    amounts: dict[tuple[str, str], Fraction] = {}
    for each in sets:
        for counter, amount in each.counters.items():
            place = (each.name, counter)
            amounts[place] = amounts.get(place, Fraction(0)) + amount
    return amounts


def _check(relevant: list[_Published], whole: list[_Published]) -> CounterAmounts:
    """The counters of a pool, unless it contradicts itself."""
    names = [device.name for member in relevant for device in member.content.devices]
    sets = [shared for member in relevant for shared in member.content.counter_sets]
    if (name := _first_twice(names)) is not None:
        raise _Invalid(f"duplicate device name {name}")
    if (name := _first_twice([shared.name for shared in sets])) is not None:
        raise _Invalid(f"duplicate counter set name {name}")
    known, counters = {shared.name for shared in sets}, _amounts(sets)
    for used in (
        used for member in whole for device in member.content.devices for used in device.consumes
    ):
        if used.name not in known:
            raise _Invalid(f"counter set {used.name} not found")
        for counter in used.counters:
            if (used.name, counter) not in counters:
                raise _Invalid(f"counter {counter} not found in counter set {used.name}")
    return counters


def _first_twice(names: list[str]) -> str | None:
    known: set[str] = set()
    for name in names:
        if name in known:
            return name
        known.add(name)
    return None
