"""The rules of pods in the store: binding, deletion, eviction.

Covers: the rules of the subresources ``binding`` and ``eviction`` and of deleting a pod, as pure
functions. Does not cover: who stops the pod on its node; the status of a budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from koordlet.kubeapi import disruption_target, objects, refusals, selectors
from koordlet.scheduler.store import merging

Body = dict[str, Any]

DEFAULT_GRACE = 30
_ENDED = {"Succeeded", "Failed"}
_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."


def bound(pod: Body, ref: objects.Ref, node: str, annotations: Mapping[str, str], now: str) -> Body:
    """The pod bound to its node; ``Conflict`` where it cannot be bound."""
    spec = objects.part(pod, "spec")
    why = ""
    if spec.get("nodeName"):
        why = f'is already assigned to node "{spec["nodeName"]}"'
    elif objects.text(pod, "deletionTimestamp"):
        why = "is being deleted, cannot be assigned to a node"
    elif spec.get("schedulingGates"):
        why = "has non-empty .spec.schedulingGates"
    if why:
        raise refusals.Conflict(f"pod {ref.name} {why}", culprit=str(ref), reason="Conflict")
    status = dict(objects.part(pod, "status"))
    status.pop("nominatedNodeName", None)
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
    wanted = {
        "spec": {"nodeName": node},
        "status": {"conditions": _with(status, scheduled)},
        **({"metadata": {"annotations": dict(annotations)}} if annotations else {}),
    }
    merged: Body = merging.merge({**pod, "status": status}, wanted)
    return merged


def ending(pod: Body, grace: int, deadline: str) -> Body | None:
    """The pod marked for deletion; ``None`` where it can be removed at once.

    A pod without a node, or that has ended, has nothing to stop. A second wish may only shorten
    the first one.
    """
    status, spec = objects.part(pod, "status"), objects.part(pod, "spec")
    if grace == 0 or not spec.get("nodeName") or status.get("phase") in _ENDED:
        return None
    known = objects.metadata(pod).get("deletionGracePeriodSeconds")
    if isinstance(known, int) and known <= grace:
        return pod
    metadata = {"deletionTimestamp": deadline, "deletionGracePeriodSeconds": grace}
    return {**pod, "metadata": {**pod["metadata"], **metadata}}


def grace_of(pod: Body, asked: int | None) -> int:
    """Seconds that a pod gets to end: what was asked for, else its own, else 30."""
    if asked is not None:
        return max(0, asked)
    own = objects.part(pod, "spec").get("terminationGracePeriodSeconds")
    return own if isinstance(own, int) and own >= 0 else DEFAULT_GRACE


def budget_of(pod: Body, ref: objects.Ref, budgets: Sequence[Body]) -> Body | None:
    """The disruption budget that an eviction must respect; ``None`` where there is none.

    ``Failed`` where there are several. A pod that has not begun, has ended or is ending counts for
    no budget; neither does one that is not ready while its budget says so.
    """
    phase = objects.part(pod, "status").get("phase")
    if phase in {*_ENDED, "Pending"} or objects.text(pod, "deletionTimestamp"):
        return None
    covering = [budget for budget in budgets if _covers(budget, pod)]
    if len(covering) > 1:
        raise refusals.Failed(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does"
            " not support.",
            culprit=str(ref),
            fix="keep only one budget for the pod",
            reason="InternalError",
        )
    if not covering or _unready_is_free(pod, covering[0]):
        return None
    return covering[0]


def spend(budget: Body, pod: objects.Ref, now: str) -> Body:
    """A budget with one disruption less; ``TooMany`` or ``Forbidden`` where it has none."""
    status, name = objects.part(budget, "status"), objects.text(budget, "name")
    if _number(status, "observedGeneration") < _number(budget["metadata"], "generation"):
        why = f"The disruption budget {name} is still being processed by the server."
        raise _too_many(pod, why, retry_after=10)
    allowed = _number(status, "disruptionsAllowed")
    if allowed < 0:
        raise refusals.Forbidden("pdb disruptions allowed is negative", culprit=name)
    if allowed == 0:
        raise _too_many(pod, _why_none(status, name), retry_after=None)
    disrupted = {**objects.part(status, "disruptedPods"), pod.name: now}
    return {
        **budget,
        "status": {**status, "disruptionsAllowed": allowed - 1, "disruptedPods": disrupted},
    }


def evicted(pod: Body, now: str) -> Body:
    """The pod with the condition that announces its eviction."""
    condition = disruption_target.condition(
        reason="EvictionByEvictionAPI",
        message="Eviction API: evicting",
        at=now,
        generation=objects.part(pod, "metadata").get("generation"),
    )
    status = objects.part(pod, "status")
    return {**pod, "status": {**status, "conditions": _with(status, condition)}}


def _why_none(status: Mapping[str, Any], name: str) -> str:
    """The first reason that applies for a budget that allows no disruption."""
    healthy, desired = _number(status, "currentHealthy"), _number(status, "desiredHealthy")
    refused = f"The disruption budget {name} does not allow evicting pods currently"
    false = [
        condition
        for condition in objects.parts(status, "conditions")
        if condition.get("status") == "False"
    ]
    failed = next((each for each in false if each.get("reason") == "SyncFailed"), None)
    if failed is not None:
        return f"{refused} because it failed sync: {failed.get('message', '')}"
    if healthy <= desired:
        return (
            f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    explained = next((condition for condition in false if condition.get("message")), None)
    if explained is None:
        return refused
    return f"{refused} ({explained.get('reason')}): {explained['message']}"


def _covers(budget: Body, pod: Body) -> bool:
    if objects.text(budget, "namespace") != objects.text(pod, "namespace"):
        return False
    try:
        selector = selectors.from_object(objects.part(budget, "spec").get("selector"))
    except ValueError:
        return False
    return selector is not None and selector.matches(pod)


def _unready_is_free(pod: Body, budget: Body) -> bool:
    conditions = objects.parts(objects.part(pod, "status"), "conditions")
    if any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions):
        return False
    if objects.part(budget, "spec").get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = objects.part(budget, "status")
    desired = _number(status, "desiredHealthy")
    return desired > 0 and _number(status, "currentHealthy") >= desired


def _with(status: Mapping[str, Any], condition: Body) -> list[Mapping[str, Any]]:
    """The conditions with one in place of the one of its type."""
    conditions = objects.parts(status, "conditions")
    return [*(each for each in conditions if each.get("type") != condition["type"]), condition]


def _number(status: Mapping[str, Any], name: str) -> int:
    number = status.get(name)
    return number if isinstance(number, int) else 0


def _too_many(pod: objects.Ref, why: str, retry_after: float | None) -> refusals.TooMany:
    return refusals.TooMany(
        _VIOLATES,
        culprit=str(pod),
        fix=why,
        reason="TooManyRequests",
        retry_after=retry_after,
        causes=(refusals.Cause("DisruptionBudget", why),),
    )
