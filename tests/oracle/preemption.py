"""Who has to go so that a pod fits."""

from __future__ import annotations

from typing import NamedTuple

from tests.oracle.filters import check
from tests.oracle.messages import histogram
from tests.oracle.objects import Body, labels, name, namespace, priority, selects, terminating
from tests.oracle.world import World

#: A start later than any that is written down.
NOW = "9999"


class Candidate(NamedTuple):
    """A node, who would leave it, and how many of them against a budget."""

    node: str
    victims: list[Body]
    violations: int


def start(pod: Body) -> str:
    """When it began to run."""
    return str(pod["status"].get("startTime", NOW))


def protects(budget: Body, pod: Body) -> bool:
    """Whether a pod's leaving counts against a budget, and is not counted yet."""
    selector = budget["spec"].get("selector")
    known = name(pod) in budget["status"].get("disruptedPods", {})
    if namespace(budget) != namespace(pod) or not labels(pod) or known:
        return False
    return bool(selector and any(selector.values()) and selects(selector, labels(pod)))


def count_down(world: World, victim: Body) -> None:
    """A victim leaves: its budgets allow one less, unless it was on its way already."""
    if terminating(victim):
        return
    for budget in world.budgets:
        if protects(budget, victim):
            status = budget["status"]
            status["disruptionsAllowed"] = status.get("disruptionsAllowed", 0) - 1


def violators(world: World, pods: list[Body]) -> list[Body]:
    """Those whose loss no budget allows, counted in the order given."""
    left = [budget["status"].get("disruptionsAllowed", 0) for budget in world.budgets]
    violating = []
    for pod in pods:
        violates = False
        for at, budget in enumerate(world.budgets):
            if protects(budget, pod):
                left[at] -= 1
                violates |= left[at] < 0
        if violates:
            violating.append(pod)
    return violating


def dry_run(world: World, pod: Body, node: Body) -> Candidate | list[str]:
    """Remove all who are less important, give back whom one can; or why it does not help."""
    before = world.on[name(node)]
    lower = [running for running in before if priority(running) < priority(pod)]
    if not lower:
        return ["No preemption victims found for incoming pod"]
    lower.sort(key=lambda running: (-priority(running), start(running)))
    kept = [running for running in before if running not in lower]
    try:
        world.on[name(node)] = kept
        if reasons := check(world, pod, node).reasons:
            return reasons
        against = violators(world, lower)
        victims = []
        for running in against + [running for running in lower if running not in against]:
            world.on[name(node)] = [*kept, running]
            if check(world, pod, node).reasons:
                victims.append(running)
            else:
                kept.append(running)
    finally:
        world.on[name(node)] = before
    victims.sort(key=lambda victim: (-priority(victim), start(victim)))
    return Candidate(name(node), victims, sum(victim in against for victim in victims))


def cost(candidate: Candidate) -> tuple[int, int, int, int]:
    """What makes a node worse, most important first."""
    ranks = [priority(victim) for victim in candidate.victims]
    return candidate.violations, max(ranks), sum(rank + 2**31 for rank in ranks), len(ranks)


def best(candidates: list[Candidate]) -> Candidate:
    """The cheapest; of equals the one whose most important victims started latest."""
    lowest = min(map(cost, candidates))
    equal = [candidate for candidate in candidates if cost(candidate) == lowest]

    def since(candidate: Candidate) -> str:
        top = priority(candidate.victims[0])
        return min(start(victim) for victim in candidate.victims if priority(victim) == top)

    return max(equal, key=since)


def preempt(world: World, pod: Body) -> Candidate | str:
    """The choice, or what the message says of it."""
    if pod["spec"].get("preemptionPolicy") == "Never":
        return "preemption: not eligible due to preemptionPolicy=Never."
    candidates, reasons = [], []
    for node in world.nodes:
        if not check(world, pod, node).helpful:
            reasons.append("Preemption is not helpful for scheduling")
            continue
        tried = dry_run(world, pod, node)
        if isinstance(tried, Candidate):
            candidates.append(tried)
        else:
            reasons += tried
    return best(candidates) if candidates else f"preemption: {histogram(world, reasons)}"
