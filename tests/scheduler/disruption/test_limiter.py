"""The twelve checks in their order; fairness; how much a question costs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from koordlet.scheduler.disruption import answers, limiter, pace, settings
from koordlet.scheduler.objects.disruption import DisruptionBudget
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.terms import selector
from tests.kit import steps
from tests.kit.disruptions import ACTS, START, UNBOUNDED, WATCHES, Picture, reason

RECLAIMS = answers.Mover(
    name="quota", acts=True, limit=answers.EvictionRate(30, 60.0), reclaims=True
)


def bounded(**limits: Any) -> Picture:
    """Without other bounds than these."""
    return Picture({"limiter": {**UNBOUNDED["limiter"], **limits}})


def pods(cluster: Picture, number: int, *, on: str = "", of: str = "web", **more: Any) -> list[Pod]:
    """Pods, each of its own controller and on its own node unless they are named."""
    several = []
    for place in range(number):
        owner = of if on else f"{of}-{place}"
        cluster.controller(owner, number if on else 1)
        several.append(cluster.pod(f"{of}-{place}", of=owner, on=on or f"n{place}", **more))
    return several


def test_a_mover_that_only_watches_is_told_what_it_would_be_told() -> None:
    """Check 1: the reason is Shadow, whatever the others say; the other answer comes with it."""
    cluster = Picture()
    (pod,) = pods(cluster, 1)

    answer = cluster.ask(pod, WATCHES)
    assert isinstance(answer, answers.Deny)
    assert (answer.reason, answer.would) == ("Shadow", answers.Allow())

    cluster.pod("web-0", of="web-0", ends="")
    answer = cluster.ask(cluster.pods["d/web-0"], WATCHES)
    assert isinstance(answer, answers.Deny)
    assert answer.reason == "Shadow"
    assert isinstance(answer.would, answers.Deny)
    assert answer.would.reason == "Gone"


def test_a_pod_that_ends_or_is_being_evicted_is_gone() -> None:
    """Check 2."""
    cluster = Picture(UNBOUNDED)
    ending, asked = pods(cluster, 2)
    cluster.limiter.begin(asked, "Eviction", ACTS, cluster.now())
    ending = cluster.pod("web-0", of="web-0", ends="")

    assert reason(cluster.ask(ending)) == "Gone"
    assert reason(cluster.ask(asked)) == "Gone"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"annotations": {"koordlet.io/movable": "false"}}, 'movable is "false"'),
        ({"annotations": {"kubernetes.io/config.mirror": "x"}}, "static pod"),
        ({"annotations": {"kubernetes.io/config.source": "file"}}, "static pod"),
        ({"kind": "DaemonSet"}, "DaemonSet"),
        ({"priority": 2_000_000_000}, "system-critical"),
        ({"of": ""}, "nobody would create it again"),
    ],
)
def test_what_forbids_it_or_would_be_lost_is_protected(fields: Any, words: str) -> None:
    """Check 3, with the reason; none of them is refused without the field."""
    cluster = Picture(UNBOUNDED)
    answer = cluster.ask(cluster.pod("p", **{"of": "web", **fields}))

    assert isinstance(answer, answers.Deny)
    assert answer.reason == "Protected"
    assert answer.until is None
    assert words in answer.message
    cluster.gone("p")
    assert reason(cluster.ask(cluster.pod("p", of="web", priority=1_999_999_999))) == ""


def test_a_pod_without_a_controller_moves_where_it_says_so_or_a_rate_covers_it() -> None:
    """Rule 7; a mover that calls back moves nothing, and asks nobody."""
    cluster = Picture(UNBOUNDED)
    bare = cluster.pod("bare")
    assert reason(cluster.ask(bare)) == "Protected"
    assert reason(cluster.ask(bare, RECLAIMS)) == ""
    assert (
        reason(cluster.ask(cluster.pod("says", annotations={"koordlet.io/movable": "true"}))) == ""
    )
    cluster.rate(selector="web")
    assert reason(cluster.ask(bare)) == ""


def test_a_disruption_budget_without_any_left_defers_until_pods_are_healthy() -> None:
    """Check 5: our own count, less what was taken; a pod that is not up is left to the server."""
    cluster = Picture(UNBOUNDED)
    cluster.controller("web", 3)
    several = [cluster.pod(f"web-{place}", of="web") for place in range(2)]
    chosen = selector({"selector": {"matchLabels": {"app": "web"}}}, "selector")
    cluster.budgets.put("b", DisruptionBudget("d", chosen, 1))

    assert cluster.evict(several[0]) == ""
    answer = cluster.ask(several[1])
    assert isinstance(answer, answers.Defer)
    assert answer.reason == "PDB"
    assert reason(cluster.ask(cluster.pod("web-2", of="web", ready=False))) == ""


@pytest.mark.parametrize(("dial", "count"), [("Low", 2), ("Normal", 10), ("High", 30)])
def test_the_dial_bounds_evictions_a_minute_of_the_whole_cluster(dial: str, count: int) -> None:
    """Check 6, and when the next is allowed."""
    cluster = Picture({**UNBOUNDED, "aggressiveness": dial})
    cluster.limiter.settings = dataclasses.replace(
        cluster.limiter.settings,
        limiter=dataclasses.replace(cluster.limiter.settings.limiter, per_minute=None),
    )
    several = pods(cluster, count + 1)
    assert {cluster.evict(pod) for pod in several[:count]} == {""}

    cluster.at = 30.0
    answer = cluster.ask(several[count])
    assert isinstance(answer, answers.Deny)
    assert (answer.reason, answer.until) == ("GlobalRate", START + 60)
    cluster.at = 60.0
    assert reason(cluster.ask(several[count])) == ""


def test_a_movers_own_limit_takes_the_place_of_the_rate_of_all() -> None:
    """30 a minute pass where all others may have 1, and theirs is not used up by it."""
    cluster = bounded(perMinute=1)
    several = pods(cluster, 33)

    assert {cluster.evict(pod, RECLAIMS) for pod in several[:30]} == {""}
    assert cluster.evict(several[30], RECLAIMS) == "GlobalRate"
    assert cluster.evict(several[31]) == ""
    assert cluster.evict(several[32]) == "GlobalRate"


def test_evictions_in_flight_are_bounded_until_a_replacement_is_up_or_five_minutes_pass() -> None:
    """Check 6: gone alone is not enough; a replacement that is up is, once for one eviction."""
    cluster = bounded(inFlight=2)
    several = pods(cluster, 5)
    for pod in several[:2]:
        assert cluster.evict(pod) == ""
    assert cluster.evict(several[2]) == "InFlight"
    cluster.at = 10.0
    cluster.pod("new", of="web-0")
    assert cluster.evict(several[2]) == "InFlight", "the old pod is still there"
    cluster.gone("web-0")
    assert cluster.evict(several[2]) == ""
    cluster.gone("web-1")
    assert cluster.evict(several[3]) == "InFlight", "web-1 has no replacement"
    cluster.at = 309.0
    assert cluster.evict(several[3]) == "InFlight"
    cluster.at = 310.0
    assert cluster.evict(several[3]) == ""


def test_a_pod_that_was_there_before_is_no_replacement() -> None:
    """Its older sibling becomes ready: that replaces nobody."""
    cluster = bounded(inFlight=1)
    cluster.controller("web", 3)
    cluster.pod("sibling", of="web", ready=False)
    victim, other = cluster.pod("victim", of="web"), cluster.pod("other", of="web")
    cluster.at = 5.0
    cluster.evict(victim)
    cluster.gone("victim")
    cluster.pod("sibling", of="web", created=0.0)
    assert cluster.evict(other) == "InFlight"


def test_a_node_loses_two_at_once_and_five_in_five_minutes() -> None:
    """Check 7."""
    cluster = bounded(perNodeInFlight=2)
    several = pods(cluster, 3, on="n1")
    assert [cluster.evict(pod) for pod in several] == ["", "", "NodeRate"]

    cluster = bounded(perNodeFiveMinutes=5)
    several = pods(cluster, 6, on="n1")
    assert [cluster.evict(pod) for pod in several] == [*[""] * 5, "NodeRate"]
    cluster.at = 300.0
    assert cluster.evict(several[5]) == ""


def test_a_namespace_is_bounded_where_it_is_configured() -> None:
    """Check 8: unlimited without."""
    cluster = bounded(perNamespaceInFlight=1)
    several = pods(cluster, 2)
    assert [cluster.evict(pod) for pod in several] == ["", "NamespaceRate"]


@pytest.mark.parametrize(("replicas", "most"), [(3, 1), (4, 2), (10, 2), (11, 1), (30, 3)])
def test_a_workload_loses_as_many_at_once_as_the_formula_says(replicas: int, most: int) -> None:
    """Check 9: 10 % of more than 10, 2 of 4 to 10, 1 of fewer."""
    cluster = bounded(perControllerInFlight=None)
    several = pods(cluster, replicas, on="n1")
    outcomes = [cluster.evict(pod) for pod in several[: most + 1]]
    assert outcomes == [*[""] * most, "ControllerRate"]


def test_a_workload_with_pods_that_are_not_up_keeps_the_others() -> None:
    """Check 9: what is not up counts like what is in flight; a pod that is not up may go."""
    cluster = bounded(perControllerUnavailable=1)
    several = pods(cluster, 3, on="n1")
    down = cluster.pod("web-2", of="web", ready=False)

    answer = cluster.ask(several[0])
    assert isinstance(answer, answers.Defer)
    assert answer.reason == "ControllerRate"
    assert reason(cluster.ask(down)) == ""


def test_a_workload_loses_no_more_in_five_minutes_than_it_may_at_once() -> None:
    """Check 9, the rate: replaced at once, and still not the next."""
    cluster = bounded(perControllerInFlight=1)
    several = pods(cluster, 2, on="n1")
    cluster.evict(several[0])
    cluster.gone("web-0")
    cluster.at = 1.0
    cluster.pod("new", of="web")
    answer = cluster.ask(several[1])
    assert isinstance(answer, answers.Deny)
    assert (answer.reason, answer.until) == ("ControllerRate", START + 300)


def test_a_workload_that_was_moved_rests() -> None:
    """Check 11: 30 minutes unless configured; a mover that calls back does not wait."""
    cluster = bounded(coolDown="30m")
    several = pods(cluster, 3, on="n1")
    cluster.evict(several[0])
    cluster.at = 1799.0
    answer = cluster.ask(several[1])
    assert isinstance(answer, answers.Deny)
    assert (answer.reason, answer.until) == ("CoolDown", START + 1800)
    assert reason(cluster.ask(several[1], RECLAIMS)) == ""
    cluster.at = 1800.0
    assert reason(cluster.ask(several[1])) == ""


def test_an_eviction_that_the_server_refused_leaves_no_trace() -> None:
    """Neither rate nor flight nor rest: as if nobody had asked."""
    cluster = Picture({"limiter": {"perMinute": 1}})
    cluster.controller("web", 2)
    several = [cluster.pod(f"web-{place}", of="web") for place in range(2)]
    cluster.rate()
    cluster.limiter.begin(several[0], "Eviction", ACTS, cluster.now())
    assert reason(cluster.ask(several[1])) == "RateSpent"
    cluster.limiter.refused(several[0])

    assert cluster.evict(several[1]) == ""


@pytest.mark.parametrize(
    ("health", "refused"),
    [
        (limiter.ClusterHealth(nodes=10, not_ready=2, pods=100, pending=25), False),
        (limiter.ClusterHealth(nodes=10, not_ready=3, pods=100), True),
        (limiter.ClusterHealth(nodes=10, pods=100, pending=26), True),
    ],
)
def test_nobody_is_moved_in_a_cluster_that_is_not_well(health: Any, *, refused: bool) -> None:
    """Check 12: more than 20 % of the nodes, or 25 % of the pods; pods bind no reclaim."""
    cluster = Picture()
    (pod,) = pods(cluster, 1)
    cluster.health = health

    assert reason(cluster.ask(pod)) == ("Unhealthy" if refused else "")
    assert reason(cluster.ask(pod, RECLAIMS)) == ("Unhealthy" if health.not_ready == 3 else "")


@pytest.mark.parametrize(
    ("bounds", "more"),
    [(11, {}), (4, {"follows": True}), (4, {"name": "plan/p"}), (4, {"name": "drain/n1"})],
)
def test_the_first_check_that_refuses_gives_the_reason(bounds: int, more: Any) -> None:
    """Each is taken away in turn, and the next one speaks.

    What is one with a move before it is bound by the first four alone, and by each of them.
    """
    bound = {"perMinute": 0, "perNodeInFlight": 0, "perNamespaceInFlight": 0, "coolDown": "1h"}
    cluster = Picture({"limiter": bound})
    cluster.controller("web", 1)
    chosen = selector({"selector": {"matchLabels": {"app": "web"}}}, "selector")
    cluster.budgets.put("b", DisruptionBudget("d", chosen, 0))
    cluster.health = limiter.ClusterHealth(nodes=1, not_ready=1)
    cluster.rate(limits=[{"count": 0, "window": "1h"}])
    cluster.limiter.pace.begin(_earlier(cluster))
    fixes: list[tuple[str, Callable[[], Any]]] = [
        ("Gone", lambda: cluster.pod("p", of="web", annotations={"koordlet.io/movable": "false"})),
        ("Protected", lambda: cluster.pod("p", of="web")),
        ("RateSpent", lambda: cluster.limiter.rates.drop("d/web")),
        ("PDB", lambda: cluster.budgets.put("b", None)),
        ("GlobalRate", lambda: _set(cluster, per_minute=9)),
        ("NodeRate", lambda: _set(cluster, per_node_in_flight=9)),
        ("NamespaceRate", lambda: _set(cluster, per_namespace_in_flight=None)),
        ("ControllerRate", lambda: cluster.controller("web", 9)),
        ("ControllerRate", lambda: [cluster.pod(f"p{place}", of="web") for place in range(8)]),
        ("CoolDown", lambda: _set(cluster, cool_down_seconds=0.0)),
        ("Unhealthy", lambda: setattr(cluster, "health", limiter.ClusterHealth(nodes=1))),
    ]
    cluster.pod("p", of="web", ends="", annotations={"koordlet.io/movable": "false"})
    cluster.pods["d/p"].terminating = True
    seen = []
    for _, fix in fixes:
        seen.append(reason(cluster.ask(cluster.pods["d/p"], dataclasses.replace(ACTS, **more))))
        fix()
    assert seen == [name if place < bounds else "" for place, (name, _) in enumerate(fixes)]
    assert reason(cluster.ask(cluster.pods["d/p"], dataclasses.replace(ACTS, **more))) == ""


def _earlier(cluster: Picture) -> Any:
    """Another pod of the same workload that was moved on another node."""
    other = cluster.pod("other", of="web", on="n9")
    signature = cluster.limiter.workloads.signature(other.pod_class)
    cluster.gone("other")
    return pace.Eviction(
        uid="other",
        node="n9",
        signature=signature,
        namespace="d",
        mover=ACTS,
        since=cluster.now(),
        shadow=False,
        gone=1000.0,
    )


def _set(cluster: Picture, **fields: Any) -> None:
    cluster.limiter.settings = dataclasses.replace(
        cluster.limiter.settings,
        limiter=dataclasses.replace(cluster.limiter.settings.limiter, **fields),
    )


def test_among_equals_the_workload_goes_that_was_disrupted_least_per_replica() -> None:
    """Then the youngest pod, then the name; a day later all is forgotten."""
    cluster = Picture(UNBOUNDED)
    cluster.controller("big", 10)
    cluster.controller("small", 2)
    for name, of, created in (("b", "big", 0.0), ("s", "small", 0.0), ("t", "small", 9.0)):
        cluster.pod(name, of=of, created=created)
    for place in range(2):
        cluster.pod(f"b-{place}", of="big", ends="EvictionByEvictionAPI")
    cluster.pod("s-0", of="small", ends="EvictionByEvictionAPI")

    def order() -> list[str]:
        several = [cluster.pods[f"d/{name}"] for name in "bst"]
        return [
            pod.name
            for pod in sorted(several, key=lambda pod: cluster.limiter.fairness(pod, cluster.now()))
        ]

    assert order() == ["b", "t", "s"], "2 of 10 before 1 of 2"
    cluster.at = 86400.0
    assert order() == ["t", "b", "s"]


def test_a_question_about_a_workload_of_ten_thousand_pods_costs_a_few_lines_for_each() -> None:
    """With a full ledger, a rate over all of them, and evictions in flight."""
    cluster = Picture(UNBOUNDED)
    cluster.controller("web", 10_000)
    for place in range(10_000):
        cluster.pod(f"web-{place}", of="web")
    cluster.rate(limits=[{"count": "10%", "window": "7d"}], minUp="80%")
    for place in range(60):
        cluster.at = float(place)
        cluster.debit(cluster.pods[f"d/web-{place}"])
    pod = cluster.pods["d/web-9999"]

    assert reason(cluster.ask(pod)) == ""
    assert steps.lines(lambda: cluster.ask(pod)) < 8 * 10_000


def test_other_settings_hold_from_the_next_question_on_and_what_happened_counts() -> None:
    """One a minute is spent by the eviction before; with two there is room for one more."""
    cluster = Picture(UNBOUNDED)
    several = pods(cluster, 3)
    assert cluster.evict(several[0]) == ""
    for number in (1, 2):
        limits = {**UNBOUNDED["limiter"], "perMinute": number}
        head = {"apiVersion": settings.API_VERSION, "kind": settings.KIND}
        cluster.limiter.configure(settings.read({**head, "limiter": limits}, "f"))
        refused = reason(cluster.ask(several[1]))
        assert refused == ("GlobalRate" if number == 1 else "")
    assert cluster.evict(several[1]) == ""
    assert reason(cluster.ask(several[2])) == "GlobalRate"
