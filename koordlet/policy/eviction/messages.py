"""Eviction messages in the kubelet's sentences, for status, event and audit. Pure.

Covers: messages, annotations of the event, words of the conditions.
Does not cover: who goes (``ranking``), publishing.

Each sentence ends with a full stop and a blank, as the kubelet's do. Facts: the kubelet's messages,
which controllers and people search for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from koordlet.model import decision, quantity_text, resources, thresholds
from koordlet.model import pod as pods
from koordlet.policy.eviction import pod_use, pressure_signals

REASON = "Evicted"

#: Condition to reason and message where it holds, and where it does not.
_WORDS = {
    "MemoryPressure": (
        ("KubeletHasInsufficientMemory", "kubelet has insufficient memory available"),
        ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ),
    "DiskPressure": (
        ("KubeletHasDiskPressure", "kubelet has disk pressure"),
        ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ),
    "PIDPressure": (
        ("KubeletHasInsufficientPID", "kubelet has insufficient PID available"),
        ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ),
}


def conditions(holding: tuple[str, ...]) -> tuple[decision.Condition, ...]:
    """All conditions of a node, in the kubelet's words."""
    return tuple(
        decision.Condition(
            type=kind,
            status=kind in holding,
            reason=words[kind not in holding][0],
            message=words[kind not in holding][1],
        )
        for kind, words in _WORDS.items()
    )


def available(signal: str, value: int) -> str:
    """An amount as messages print it: bytes in binary, counts in decimal form, time as lost."""
    if signal in thresholds.STALLS:
        return f"{(thresholds.WHOLE - value) / 100:g}%"
    counted = signal == thresholds.PIDS or signal.endswith("inodesFree")
    return quantity_text.decimal(value) if counted else quantity_text.binary(value)


def wanted(due: thresholds.Threshold, capacity: int) -> str:
    """A threshold as messages print it."""
    return due.value.text if due.signal in thresholds.STALLS else due.value.spelled(capacity)


def message(
    pod: pods.Pod,
    use: pod_use.Use | None,
    due: thresholds.Threshold,
    seen: pressure_signals.Observation | None,
) -> str:
    """The reason that this pod is evicted, in sentences."""
    resource = thresholds.RESOURCE[due.signal]
    text = f"The node was low on resource: {resource}. "
    if due.signal == thresholds.SWAP:
        text = "The node was low on swap space. "
    if due.signal in thresholds.STALLS:
        text = f"The node lost time to short {resource}. "
    if seen is not None:
        there = available(due.signal, seen.available)
        what = "lost" if due.signal in thresholds.STALLS else "available"
        text += f"Threshold quantity: {wanted(due, seen.capacity)}, {what}: {there}. "
    whole = _whole(pod, use, resource)
    if whole:
        text += f"Pod {pod.name} was using {whole[0]}, request is {whole[1]}, has larger"
        text += f" consumption of {resource}. "
    for name, used, asked in _large(pod, use, resource):
        text += f"Container {name} was using {used}, request is {asked}, has larger"
        text += f" consumption of {resource}. "
    return text


def event_annotations(pod: pods.Pod, use: pod_use.Use | None, resource: str) -> Mapping[str, str]:
    """Annotations of the pod's event."""
    if use is None:
        return {}
    large = list(_large(pod, use, resource))
    annotations = {
        "offending_containers": ",".join(name for name, _, _ in large),
        "offending_containers_usage": ",".join(used for _, used, _ in large),
        "starved_resource": resource,
    }
    whole = _whole(pod, use, resource)
    if whole:
        annotations |= {"offending_pod": pod.name, "offending_pod_usage": whole[0]}
    return annotations


def _whole(pod: pods.Pod, use: pod_use.Use | None, resource: str) -> tuple[str, str] | None:
    """Use and request of a pod that asks for memory as a whole, where it uses more."""
    asked = pod.own_requests.get(resources.MEMORY)
    if use is None or resource != resources.MEMORY or asked is None or use.memory is None:
        return None
    if use.memory <= asked:
        return None
    return quantity_text.binary(use.memory), quantity_text.binary(asked)


def _large(pod: pods.Pod, use: pod_use.Use | None, resource: str) -> Iterator[tuple[str, str, str]]:
    """Containers above their request, in the order of the statistics."""
    if use is None or resource not in (resources.MEMORY, resources.EPHEMERAL_STORAGE):
        return
    counted = use.container_memory if resource == resources.MEMORY else use.container_disk
    boxes = {box.name: box for box in pod.containers if box.kind is not pods.Kind.EPHEMERAL}
    for name, used in counted.items():
        asked = boxes[name].requests.get(resource, 0) if name in boxes else used
        if used > asked:
            yield name, quantity_text.binary(used), quantity_text.binary(asked)
