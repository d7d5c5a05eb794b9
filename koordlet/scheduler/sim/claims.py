"""Claims of a simulation: made of templates, had at once, given back when pods leave.

Covers: what controllers and the store of a cluster would do. Does not cover: which devices
(``plugins.dynamic_resources``).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping

from koordlet.scheduler.claims.allocation_state import AllocationState
from koordlet.scheduler.claims.claim_book import ClaimKey
from koordlet.scheduler.loop.claim_events import ClaimEvents
from koordlet.scheduler.objects import generated_claims, resource_claims
from koordlet.scheduler.objects.pod_claims import PodClaim
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.resource_claims import Consumer, ResourceClaim


class SimulatedClaims:
    """Writes claims into the state itself, so that the next decision sees them."""

    def __init__(
        self,
        state: AllocationState,
        templates: Mapping[ClaimKey, generated_claims.ClaimTemplate],
        events: ClaimEvents,
    ) -> None:
        self._state, self._templates, self._events = state, templates, events

    def make(self, pod: Pod) -> None:
        """Make the claims of a waiting pod that have a template, and tell it their names."""
        pod.name_claims(tuple(self._made(pod, entry) for entry in pod.claims))

    def _made(self, pod: Pod, entry: PodClaim) -> PodClaim:
        template = self._templates.get((pod.namespace, entry.template))
        if entry.claim or entry.needless or template is None:
            return entry
        name = f"{pod.name}-{entry.name}"
        body = generated_claims.of_template(template, pod.name, pod.uid, entry.name)
        body["metadata"] |= {"name": name, "uid": f"{pod.namespace}/{name}"}
        self._state.claims.put(resource_claims.decode(body))
        return dataclasses.replace(entry, claim=name)

    def settle(self, pod: Pod) -> dict[str, list[str]]:
        """A pod has its node: its claims have what they were promised; their devices."""
        devices = {}
        for claim in self._of(pod):
            key = claim.namespace, claim.name
            allocation = self._state.claims.allocation(key)
            consumers = claim.reserved_for
            if not claim.serves(pod.uid):
                consumers = (*consumers, Consumer("pods", pod.name, pod.uid))
            # Others have counted on it since the decision: this helps nobody.
            settled = dataclasses.replace(claim, allocation=allocation, reserved_for=consumers)
            self._state.claims.put(settled)
            results = allocation.devices if allocation is not None else ()
            # Of one that a store would give its name: what that begins with.
            devices[claim.key.removesuffix("-")] = [
                f"{each.driver}/{each.pool}/{each.device}" for each in results
            ]
        return devices

    def ended(self, pods: Iterable[Pod]) -> None:
        """Pods are gone: claims that nobody uses have no devices any more."""
        for pod in pods:
            for claim in self._of(pod):
                if claim.is_extended:
                    self.delete(claim)
                    continue
                rest = tuple(each for each in claim.reserved_for if each.uid != pod.uid)
                allocation = claim.allocation if rest else None
                self._put(dataclasses.replace(claim, allocation=allocation, reserved_for=rest))

    def _of(self, pod: Pod) -> Iterator[ResourceClaim]:
        for entry in pod.claims:
            claim = self._state.claims.get((pod.namespace, entry.claim))
            if claim is not None:
                yield claim
        extended = self._state.claims.extended(pod.uid) if pod.pod_class.extended else None
        if extended is not None:
            yield extended

    def _put(self, claim: ResourceClaim) -> None:
        key = claim.namespace, claim.name
        self._events.claim(key, self._state.claims.get(key), claim)

    # What the plugin asks for.

    async def bind(self, pod: Pod, patience: float) -> None:
        """Nothing: ``settle`` does it."""

    def waiting(self, pod: Pod, patience: float) -> float:
        """Devices are ready at once."""
        del pod, patience  # time stands still
        return 0.0

    def release(self, pod: Pod, claim: ResourceClaim) -> None:
        """A pod does not use a claim."""
        rest = tuple(each for each in claim.reserved_for if each.uid != pod.uid)
        self._put(dataclasses.replace(claim, reserved_for=rest))

    def delete(self, claim: ResourceClaim) -> None:
        """A claim is not needed any more."""
        self._events.claim((claim.namespace, claim.name), claim, None)

    def deallocate(self, claim: ResourceClaim) -> None:
        """A claim has no devices any more."""
        self._put(dataclasses.replace(claim, allocation=None, reserved_for=()))
