"""Pods that are handed to a standalone scheduler: what an API server would make of them.

Covers: ClusterColocationProfiles, defaults, priority classes, runtime classes, admission,
ResourceQuotas, a pod with gates that comes again.
Does not cover: the rules of each (``scheduler.standalone``), all other objects
(``standalone_api``).
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from koordlet import log
from koordlet.kubeapi import kinds, objects, pod_groups, refusals
from koordlet.scheduler.colocation import mutation
from koordlet.scheduler.colocation import profile as colocation_profile
from koordlet.scheduler.framework import profile
from koordlet.scheduler.standalone import gated_pod, pod_admission, resource_quota, taints

_CRITICAL = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
#: On a pod with gates: the profiles that it was given, less what selects pods.
_GIVEN = "koordlet.io/colocation-profiles"
_SELECTING = {"namespaceSelector", "selector", "probability"}
#: What gangs are made of where there is no controller of Kubernetes' own.
USE_POD_GROUP = (
    f"use a PodGroup of {kinds.POD_GROUPS.api_version}, and its label on the pods:"
    f" {pod_groups.POD_GROUP}"
)


class PodIntake:
    """Takes pods in for the profiles that are served."""

    def __init__(
        self, store: objects.Objects, served: Collection[str], switches: Collection[str] = ()
    ) -> None:
        """``switches``: admission plugins that are enabled by name."""
        self._store, self._served = store, served
        self._switches = [pod_admission.SWITCHES[name] for name in sorted(switches)]
        self._repeats = log.Repeats(time.monotonic)

    def check_served(self, name: str) -> None:
        """``Invalid`` where no profile would ever try what asks for this scheduler."""
        if name not in self._served:
            raise refusals.Invalid(
                f"schedulerName is {name!r}, which this scheduler does not serve",
                fix=f"it serves {', '.join(self._served)}",
            )

    async def completed(self, body: dict[str, Any]) -> dict[str, Any]:
        """The pod as it is stored; what is there already stays.

        A pod that is there already, with gates, keeps what it was given of its labels, its class
        and its profiles.
        """
        stored: objects.Object = {}
        with contextlib.suppress(refusals.NotFound):
            stored = await self._store.get(objects.ref(kinds.PODS, body))
        body = _with_given(body, [])
        body = _colocated_again(body, stored) if stored else await self._colocated(body)
        spec = dict(objects.part(body, "spec"))
        if "schedulingGroup" in spec:
            raise refusals.Invalid(
                "spec.schedulingGroup names a PodGroup that exists in clusters only",
                fix=USE_POD_GROUP,
            )
        usual = profile.SERVED[-1]
        spec.setdefault(
            "schedulerName", usual if usual in self._served else next(iter(self._served))
        )
        self.check_served(str(spec["schedulerName"]))
        if stored:
            spec = {**_priority_of(stored), **spec}
        else:
            spec |= await self._priority(spec, objects.text(body, "name"))
        spec["tolerations"] = taints.tolerations(spec, best_effort=_asks_nothing(spec))
        named = spec.get("runtimeClassName")
        runtime: Mapping[str, Any] = {}
        if named:
            runtime = await self._store.get(objects.Ref(kinds.RUNTIME_CLASSES, str(named)))
        spec = pod_admission.with_runtime_class(spec, runtime)
        marks = objects.part(objects.metadata(stored or body), "labels")
        spec = pod_admission.with_label_keys(spec, marks)
        for switch in self._switches:
            spec = switch(spec)
        completed = {**body, "spec": spec}
        if not stored:  # else it counts already, and with its gates it may not ask for more
            await self._check_quotas(completed)
        return completed

    async def _colocated(self, body: dict[str, Any]) -> dict[str, Any]:
        """The pod after the ClusterColocationProfiles of the store; what is left out is logged."""
        listing = await objects.collect(self._store.list(kinds.CLUSTER_COLOCATION_PROFILES))
        if not listing.items:
            return body
        known = await objects.collect(self._store.list(kinds.PRIORITY_CLASSES))
        priorities = {objects.text(each, "name"): each for each in known.items}
        space, name = objects.key(body)
        namespace = None
        with contextlib.suppress(refusals.NotFound):
            namespace = await self._store.get(objects.Ref(kinds.NAMESPACES, space))
        made = mutation.colocated(
            body,
            map(colocation_profile.read, listing.items),
            mutation.namespace_of(space, namespace),
            priorities.get,
            colocation_profile.identity(space, name),
        )
        for fault in made.faults:
            self._repeats.say(log.get().warning, "colocation.left_out", fault, detail=fault)
        given = [item for item in listing.items if objects.text(item, "name") in made.profiles]
        return _with_given(made.body, given)

    async def _check_quotas(self, pod: objects.Object) -> None:
        """``Forbidden`` where a ResourceQuota of the namespace has no room for the pod."""
        namespace = objects.text(pod, "namespace")
        listing = await objects.collect(
            self._store.list(kinds.RESOURCE_QUOTAS, namespace=namespace)
        )
        if not listing.items:
            return
        pods = await objects.collect(self._store.list(kinds.PODS, namespace=namespace))
        resource_quota.check(pod, map(resource_quota.read, listing.items), pods.items)

    async def updated(self, wish: objects.Object, *, dry_run: bool) -> objects.Object | None:
        """A pod with scheduling gates that is there already, changed; ``None``: it has none."""
        ref = objects.ref(kinds.PODS, wish)
        stored = await self._store.get(ref)
        if not objects.part(stored, "spec").get("schedulingGates"):
            return None
        patch = objects.Merge(gated_pod.patch(stored, wish), revision=objects.revision(stored))
        return await self._store.patch(ref, patch, dry_run=dry_run)

    async def _priority(self, spec: Mapping[str, Any], culprit: str) -> dict[str, Any]:
        """From the store itself: the class may have been handed in a moment ago."""
        named = str(spec.get("priorityClassName") or "")
        if named in _CRITICAL:
            return {"priority": _CRITICAL[named]}
        listing = await objects.collect(self._store.list(kinds.PRIORITY_CLASSES))
        meant = (
            item
            for item in listing.items
            if (objects.text(item, "name") == named if named else item.get("globalDefault") is True)
        )
        known = next(meant, None)
        if known is None and named:
            raise refusals.Invalid(f"no PriorityClass is named {named!r}", culprit=culprit)
        if known is None:
            return {"priority": spec.get("priority", 0)}
        never = {"preemptionPolicy": "Never"} if known.get("preemptionPolicy") == "Never" else {}
        return {**never, "priority": known.get("value", 0)}


def _with_given(pod: objects.Object, profiles: Sequence[objects.Object]) -> dict[str, Any]:
    """A pod that knows what it was given, where it has gates; nobody else says that of it."""
    meta = objects.metadata(pod)
    notes = dict(objects.part(meta, "annotations"))
    forged = _GIVEN in notes
    notes.pop(_GIVEN, None)
    if profiles and objects.part(pod, "spec").get("schedulingGates"):
        notes[_GIVEN] = json.dumps([_effects(profile) for profile in profiles])
    elif not forged:
        return dict(pod)
    return {**pod, "metadata": {**meta, "annotations": notes}}


def _effects(profile: objects.Object) -> dict[str, Any]:
    """What a profile does to whatever it is for."""
    notes = objects.part(objects.metadata(profile), "annotations")
    spec = {
        key: value for key, value in objects.part(profile, "spec").items() if key not in _SELECTING
    }
    return {"metadata": {"name": objects.text(profile, "name"), "annotations": notes}, "spec": spec}


def _colocated_again(pod: objects.Object, stored: objects.Object) -> dict[str, Any]:
    """The pod after the profiles that it was given, whatever these say by now."""
    given = objects.part(objects.metadata(stored), "annotations").get(_GIVEN)
    if given is None:
        return dict(pod)
    own = _priority_of(stored)
    priority_class = {**own, "value": own.get("priority", 0)}
    made = mutation.colocated(
        pod, map(colocation_profile.read, json.loads(given)), {}, lambda _: priority_class, ""
    )
    return dict(made.body)


def _priority_of(pod: objects.Object) -> dict[str, Any]:
    """What a pod was given of its PriorityClass, whatever that says by now."""
    spec = objects.part(pod, "spec")
    return {key: spec[key] for key in ("priority", "preemptionPolicy") if key in spec}


def _asks_nothing(spec: Mapping[str, Any]) -> bool:
    """Whether a pod is best-effort: no container requests or limits anything."""
    several = (*objects.parts(spec, "containers"), *objects.parts(spec, "initContainers"))
    return not any(
        objects.part(objects.part(container, "resources"), key)
        for container in several
        for key in ("requests", "limits")
    )
