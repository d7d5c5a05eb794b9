"""Finding the reservations that may mean a pod, without asking each one.

Covers: one key for each owner entry, the keys of a pod. Does not cover: whether it really is meant
(``matching``): the index finds too many rather than too few.

A pod is looked up by its labels, its owner references and its name: unrelated reservations cost
nothing. Only entries that name neither (``[{}]``, ``notin``) are asked for every class of pods.
"""

from __future__ import annotations

from collections.abc import Iterator

from koordlet.kubeapi import selectors
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation.held import Held
from koordlet.scheduler.reservation.spec import Owner

_Key = tuple[str, ...]
_ALL: _Key = ("all",)
#: The first words of keys that mean one pod.
_NAMING = ("uid", "pod")


class Index:
    """Reservations by what their owners say."""

    def __init__(self) -> None:
        self._by_key: dict[_Key, dict[str, Held]] = {}
        #: Grows with each change: what was looked up before it may be different now.
        self.epoch = 0
        #: How many of the keys are those of single pods.
        self._names = 0

    def add(self, held: Held) -> None:
        """From now on it is found."""
        for key in _keys(held):
            if key not in self._by_key:
                self._by_key[key] = {}
                self._names += key[0] in _NAMING
            self._by_key[key][held.spec.uid] = held
        self.epoch += 1

    def remove(self, held: Held) -> None:
        """Not any more."""
        for key in _keys(held):
            several = self._by_key.get(key)
            if several is None:
                continue
            several.pop(held.spec.uid, None)
            if not several:
                del self._by_key[key]
                self._names -= key[0] in _NAMING
        self.epoch += 1

    def personal(self, pod: Pod) -> bool:
        """Whether a reservation names this pod: then its class does not say everything."""
        return bool(self._names) and any(key in self._by_key for key in _own_keys(pod))

    def find(self, pod: Pod) -> list[Held]:
        """Those that may mean a pod, in the order of their arrival."""
        found: dict[str, Held] = {}
        for key in _pod_keys(pod):
            found |= self._by_key.get(key, {})
        return sorted(found.values(), key=lambda one: one.position)

    def everyone(self) -> list[Held]:
        """All of them."""
        found = {uid: one for several in self._by_key.values() for uid, one in several.items()}
        return sorted(found.values(), key=lambda one: one.position)


def _keys(held: Held) -> set[_Key]:
    """Where a reservation is filed; one that matches nobody is filed under a key of no pod."""
    if held.spec.fault:
        return {("nobody",)}
    return {key for owner in held.spec.owners for key in _owner_keys(owner)}


def _owner_keys(owner: Owner) -> set[_Key]:
    """All keys under which an entry must be filed to be found: the most telling part decides."""
    pod, controller = owner.object, owner.controller
    if pod is not None and (pod.uid or pod.name):
        return {("uid", pod.uid) if pod.uid else ("pod", pod.namespace, pod.name)}
    if controller is not None and (controller.uid or controller.name):
        by_uid = ("controller", controller.uid)
        return {by_uid if controller.uid else ("controlled", controller.name)}
    return _selector_keys(owner.selector)


def _selector_keys(selector: selectors.Compiled | None) -> set[_Key]:
    for one in selector.labels if selector is not None else ():
        if one.operator is selectors.Operator.IN:
            return {("label", one.key, value) for value in one.values}
        if one.operator is selectors.Operator.EXISTS:
            return {("labelled", one.key)}
    return {_ALL}


def _own_keys(pod: Pod) -> tuple[_Key, ...]:
    return ("uid", pod.uid), ("pod", pod.namespace, pod.name), ("pod", "", pod.name)


def _pod_keys(pod: Pod) -> Iterator[_Key]:
    yield _ALL
    yield from _own_keys(pod)
    for one in pod.pod_class.references:
        yield "controller", one.uid
        yield "controlled", one.name
    for key, value in pod.pod_class.labels.items():
        yield "label", key, value
        yield "labelled", key
