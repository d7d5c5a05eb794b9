"""Changes of slices, device classes and claims, applied to the state of allocations and the queue.

Covers: which informers there are, whom a change may help. Does not cover: reading objects
(``scheduler.objects``), what follows for nodes (``plugins.dynamic_resources``).

Devices that come, or that a claim gave back, may help every pod that waits for some. Another change
of a claim helps the pods that name it, and nobody else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from koordlet import log
from koordlet.kubeapi import informer, kinds
from koordlet.scheduler.claims.allocation_state import AllocationState
from koordlet.scheduler.cluster.events import ActionType, ClusterEvent
from koordlet.scheduler.framework import profile
from koordlet.scheduler.objects import device_classes, resource_claims, resource_slices
from koordlet.scheduler.objects.nodes import Node
from koordlet.scheduler.objects.pods import PodClass
from koordlet.scheduler.objects.resource_slices import UnreadAttribute
from koordlet.scheduler.plugins.dynamic_resources import DynamicResources


class ClaimingCore(Protocol):
    """The parts of ``loop.core.Core`` that changes of claims concern."""

    def wake(self, event: ClusterEvent, now: float) -> None:
        """Wake the pods that an event may help."""

    def rouse(self, key: str, now: float) -> bool:
        """Try a waiting pod again; whether it waits."""

    def forget_views(self, concerned: Callable[[PodClass], bool]) -> None:
        """Forget the views of some classes, and what was said of pods that no node takes."""


class ClaimEvents:
    """Applies changes to one state."""

    def __init__(
        self, core: ClaimingCore, state: AllocationState, clock: Callable[[], float]
    ) -> None:
        self._core, self._state, self._clock = core, state, clock
        self._warned: set[str] = set()

    def kinds(
        self, profiles: Mapping[str, profile.Profile]
    ) -> Mapping[kinds.Kind, tuple[Callable[..., Any], Callable[..., None]]]:
        """Each kind with who decodes it and who takes its changes, where a plugin allocates."""
        if not profile.plugins(profiles, DynamicResources):
            return {}
        return {
            kinds.DEVICE_CLASSES: (device_classes.decode, self.device_class),
            kinds.RESOURCE_SLICES: (resource_slices.decode, self.resource_slice),
            kinds.RESOURCE_CLAIMS: (self._state.claims.read, self.claim),
        }

    def node(self, old: Node | None, new: Node | None) -> None:
        """A node goes, or its labels change: it may see other devices."""
        if old is not None and (new is None or new.labels != old.labels):
            self._state.pools.forget(old.name)

    def device_class(
        self,
        key: informer.Key,
        old: device_classes.DeviceClass | None,
        new: device_classes.DeviceClass | None,
    ) -> None:
        """A class comes, changes or goes."""
        if old == new:
            return
        if new is None:
            self._state.drop_class(key[1])
        else:
            self._state.put_class(new)
        self._moved(ActionType.DEVICES | ActionType.DEVICE_CLASSES)

    def resource_slice(
        self,
        key: informer.Key,
        old: resource_slices.ResourceSlice | None,
        new: resource_slices.ResourceSlice | None,
    ) -> None:
        """A slice comes, changes or goes."""
        if old == new:
            return
        if new is None:
            self._state.pools.drop(key[1])
        else:
            self._warn(new)
            self._state.pools.put(new)
        self._moved()

    def claim(
        self,
        key: informer.Key,
        old: resource_claims.ResourceClaim | None,
        new: resource_claims.ResourceClaim | None,
    ) -> None:
        """A claim comes, changes or goes."""
        if new is None:
            self._state.claims.drop(key)
        else:
            self._state.claims.put(new)
        had, has = (None if claim is None else claim.allocation for claim in (old, new))
        if had is not None and (has is None or has.devices != had.devices):
            self._moved()
        if new is None:
            matters = old is not None and old.is_extended
        else:
            matters = old is None or not _is_like(old, new)
        if matters:
            # What was said of pods may be otherwise now.
            self._core.forget_views(lambda _: False)
            for pod in list(self._state.users(key)):
                if not self._core.rouse(pod, self._clock()):
                    self._state.users(key).discard(pod)

    def _moved(self, what: ActionType = ActionType.DEVICES) -> None:
        self._core.forget_views(lambda _: False)
        self._core.wake(ClusterEvent(what), self._clock())

    def _warn(self, content: resource_slices.ResourceSlice) -> None:
        """Name a field that is not served, once for a driver."""
        unread = [
            name
            for device in content.devices
            for name, value in device.attributes.items()
            if isinstance(value, UnreadAttribute)
        ]
        if unread and content.driver not in self._warned:
            self._warned.add(content.driver)
            log.get().warning(
                "scheduler.device_attribute_unread", driver=content.driver, attribute=unread[0]
            )


def _is_like(old: resource_claims.ResourceClaim, new: resource_claims.ResourceClaim) -> bool:
    """Whether nothing has changed that a pod waits for: a scheduler adds a finalizer, say."""
    return new == dataclasses.replace(
        old, resource_version=new.resource_version, finalizers=new.finalizers
    )
