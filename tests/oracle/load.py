"""What nodes use, as the arguments' defaults judge it."""

from __future__ import annotations

from datetime import datetime
from fractions import Fraction

from tests.oracle.objects import (
    Amounts,
    Body,
    add,
    amounts,
    annotation,
    key,
    most,
    name,
    requests,
    room,
)
from tests.oracle.world import World

THRESHOLDS = {"cpu": 65, "memory": 95}
FACTORS = {"cpu": 85, "memory": 70}
USUAL = {"cpu": 250, "memory": 200 << 20}
EXPIRATION = 180


def seconds(text: str) -> float:
    """Since 1970."""
    return datetime.fromisoformat(text).timestamp()


def rounded(value: Fraction) -> int:
    """Half up."""
    return int(value + Fraction(1, 2))


def limits(pod: Body) -> Amounts:
    """What a pod may use at its most demanding moment; overhead where there is a limit."""
    total: Amounts = {}
    for container in pod["spec"]["containers"]:
        total = add(total, _limit(container))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in pod["spec"].get("initContainers", []):
        stays = container.get("restartPolicy") == "Always"
        total = add(total, _limit(container)) if stays else total
        peak = most(peak, add(sidecars, _limit(container)))
        sidecars = add(sidecars, _limit(container)) if stays else sidecars
    total = {resource: much for resource, much in most(total, peak).items() if much}
    extra = amounts(pod["spec"].get("overhead", {}))
    return {resource: much + extra.get(resource, 0) for resource, much in total.items()}


def _limit(container: Body) -> Amounts:
    return amounts(container.get("resources", {}).get("limits", {}))


def is_best_effort(pod: Body) -> bool:
    """Whether no container asks for, or is limited in, CPU or memory."""
    spec = pod["spec"]
    asked = [
        amounts(container.get("resources", {}).get(part, {}))
        for container in [*spec["containers"], *spec.get("initContainers", [])]
        for part in ("requests", "limits")
    ]
    return not any(each.get(resource) for each in asked for resource in USUAL)


def estimate(pod: Body) -> Amounts:
    """What a pod will use; of one that is best-effort in Kubernetes the batch amounts count."""
    mine, bound = requests(pod), limits(pod)
    estimates: Amounts = {}
    prefix = "kubernetes.io/batch-" if is_best_effort(pod) else ""
    for resource, usual in USUAL.items():
        spelled = f"{prefix}{resource}"
        base = max(mine.get(spelled, 0), bound.get(spelled, 0))
        if not base:
            estimates[resource] = usual
            continue
        value = rounded(Fraction(base * FACTORS[resource], 100))
        estimates[resource] = min(value, bound[spelled]) if bound.get(spelled) else value
    return estimates


def since(pod: Body) -> float | None:
    """When it got its node, as far as anybody says."""
    for condition in pod["status"].get("conditions", []):
        if condition["type"] == "PodScheduled" and condition["status"] == "True":
            return seconds(condition["lastTransitionTime"])
    return None


def used(world: World, metric: Body, node: Body) -> Amounts:
    """The reported use, and what it misses of pods that it cannot know well."""
    status = metric["status"]
    total = amounts(status["nodeMetric"]["nodeUsage"]["resources"])
    known = {
        f"{pod_metric['namespace']}/{pod_metric['name']}": amounts(
            pod_metric["podUsage"]["resources"]
        )
        for pod_metric in status.get("podsMetric", [])
    }
    fresh = seconds(status["updateTime"]) - 60
    for pod in world.on[name(node)]:
        start = since(pod)
        if key(pod) in known and start is not None and start <= fresh:
            continue
        mine = known.get(key(pod), {})
        for resource, much in estimate(pod).items():
            total[resource] = total.get(resource, 0) + max(0, much - mine.get(resource, 0))
    return total


def expired(world: World, metric: Body) -> bool:
    """Too old to be believed."""
    reported_at = metric["status"].get("updateTime")
    return reported_at is None or world.now - seconds(reported_at) >= EXPIRATION


def verdict(world: World, pod: Body, node: Body) -> tuple[list[str], bool]:
    """Above a threshold, or nobody knows."""
    metric = world.metrics.get(name(node))
    if metric is None:
        return [], True
    if expired(world, metric):
        return ["node(s) nodeMetric expired"], True
    if not metric["status"].get("nodeMetric"):
        return [], True
    own = annotation(node, "scheduling.koordinator.sh/usage-thresholds").get("usageThresholds")
    total, free = add(used(world, metric, node), estimate(pod)), room(node)
    for resource, share in sorted((own if own is not None else THRESHOLDS).items()):
        if (
            share
            and free.get(resource)
            and rounded(Fraction(100 * total[resource], free[resource])) > share
        ):
            return [f"node(s) {resource} usage exceed threshold"], True
    return [], True


def score(world: World, pod: Body, node: Body) -> int:
    """The share that stays idle."""
    metric = world.metrics.get(name(node))
    if metric is None or expired(world, metric) or not metric["status"].get("nodeMetric"):
        return 0
    total, free = add(used(world, metric, node), estimate(pod)), room(node)
    parts = [
        max(0, (free[resource] - total[resource]) * 100 // free[resource])
        if free.get(resource)
        else 0
        for resource in ("cpu", "memory")
    ]
    return sum(parts) // 2
