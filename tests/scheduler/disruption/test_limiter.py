"""The twelve checks in their order; fairness; how long a question takes."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import pytest

from koordlet.scheduler.disruption import answers, limiter, pace
from koordlet.scheduler.objects.disruption import DisruptionBudget
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.objects.terms import selector
from tests.kit.disruptions import ACTS, START, UNBOUNDED, WATCHES, Picture, reason

RECLAIMS = answers.Mover(
    name="quota", acts=True, limit=answers.EvictionRate(30, 60.0), reclaims=True
)


def bounded(**limits: Any) -> Picture:
    """Without other bounds than these."""
    return Picture({"limiter": {**UNBOUNDED["limiter"], **limits}})


def pods(made: Picture, number: int, *, on: str = "", of: str = "web", **more: Any) -> list[Pod]:
    """Pods, each of its own controller and on its own node unless they are named."""
    several = []
    for place in range(number):
        owner = of if on else f"{of}-{place}"
        made.controller(owner, number if on else 1)
        several.append(made.pod(f"{of}-{place}", of=owner, on=on or f"n{place}", **more))
    return several


def test_a_mover_that_only_watches_is_told_what_it_would_be_told() -> None:
    """Check 1: the reason is Shadow, whatever the others say; the other answer comes with it."""
    made = Picture()
    (pod,) = pods(made, 1)

    answer = made.ask(pod, WATCHES)
    assert isinstance(answer, answers.Deny)
    assert (answer.reason, answer.would) == ("Shadow", answers.Allow())

    made.pod("web-0", of="web-0", ends="")
    answer = made.ask(made.pods["d/web-0"], WATCHES)
    assert isinstance(answer, answers.Deny)
    assert answer.reason == "Shadow"
    assert isinstance(answer.would, answers.Deny)
    assert answer.would.reason == "Gone"


def test_a_pod_that_ends_or_is_being_evicted_is_gone() -> None:
    """Check 2."""
    made = Picture(UNBOUNDED)
    ending, asked = pods(made, 2)
    made.limiter.begin(asked, "Eviction", ACTS, made.now())
    ending = made.pod("web-0", of="web-0", ends="")

    assert reason(made.ask(ending)) == "Gone"
    assert reason(made.ask(asked)) == "Gone"


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
    made = Picture(UNBOUNDED)
    answer = made.ask(made.pod("p", **{"of": "web", **fields}))

    assert isinstance(answer, answers.Deny)
    assert answer.reason == "Protected"
    assert answer.until is None
    assert words in answer.message
    made.gone("p")
    assert reason(made.ask(made.pod("p", of="web", priority=1_999_999_999))) == ""


def test_a_pod_without_a_controller_moves_where_it_says_so_or_a_rate_covers_it() -> None:
    """Rule 7; a mover that calls back moves nothing, and asks nobody."""
    made = Picture(UNBOUNDED)
    bare = made.pod("bare")
    assert reason(made.ask(bare)) == "Protected"
    assert reason(made.ask(bare, RECLAIMS)) == ""
    assert reason(made.ask(made.pod("says", annotations={"koordlet.io/movable": "true"}))) == ""
    made.rate(selector="web")
    assert reason(made.ask(bare)) == ""


def test_a_disruption_budget_without_any_left_defers_until_pods_are_healthy() -> None:
    """Check 5: our own count, less what was taken; a pod that is not up is left to the server."""
    made = Picture(UNBOUNDED)
    made.controller("web", 3)
    several = [made.pod(f"web-{place}", of="web") for place in range(2)]
    chosen = selector({"selector": {"matchLabels": {"app": "web"}}}, "selector")
    made.budgets.put("b", DisruptionBudget("d", chosen, 1))

    assert made.evict(several[0]) == ""
    answer = made.ask(several[1])
    assert isinstance(answer, answers.Defer)
    assert answer.reason == "PDB"
    assert reason(made.ask(made.pod("web-2", of="web", ready=False))) == ""


@pytest.mark.parametrize(("dial", "count"), [("Low", 2), ("Normal", 10), ("High", 30)])
def test_the_dial_bounds_evictions_a_minute_of_the_whole_cluster(dial: str, count: int) -> None:
    """Check 6, and when the next is allowed."""
    made = Picture({**UNBOUNDED, "aggressiveness": dial})
    made.limiter.settings = dataclasses.replace(
        made.limiter.settings,
        limiter=dataclasses.replace(made.limiter.settings.limiter, per_minute=None),
    )
    several = pods(made, count + 1)
    assert {made.evict(pod) for pod in several[:count]} == {""}

    made.at = 30.0
    answer = made.ask(several[count])
    assert isinstance(answer, answers.Deny)
    assert (answer.reason, answer.until) == ("GlobalRate", START + 60)
    made.at = 60.0
    assert reason(made.ask(several[count])) == ""


def test_a_movers_own_limit_takes_the_place_of_the_rate_of_all() -> None:
    """30 a minute pass where all others may have 1, and theirs is not used up by it."""
    made = bounded(perMinute=1)
    several = pods(made, 33)

    assert {made.evict(pod, RECLAIMS) for pod in several[:30]} == {""}
    assert made.evict(several[30], RECLAIMS) == "GlobalRate"
    assert made.evict(several[31]) == ""
    assert made.evict(several[32]) == "GlobalRate"


def test_evictions_in_flight_are_bounded_until_a_replacement_is_up_or_five_minutes_pass() -> None:
    """Check 6: gone alone is not enough; a replacement that is up is, once for one eviction."""
    made = bounded(inFlight=2)
    several = pods(made, 5)
    for pod in several[:2]:
        assert made.evict(pod) == ""
    assert made.evict(several[2]) == "InFlight"
    made.at = 10.0
    made.pod("new", of="web-0")
    assert made.evict(several[2]) == "InFlight", "the old pod is still there"
    made.gone("web-0")
    assert made.evict(several[2]) == ""
    made.gone("web-1")
    assert made.evict(several[3]) == "InFlight", "web-1 has no replacement"
    made.at = 309.0
    assert made.evict(several[3]) == "InFlight"
    made.at = 310.0
    assert made.evict(several[3]) == ""


def test_a_pod_that_was_there_before_is_no_replacement() -> None:
    """Its older sibling becomes ready: that replaces nobody."""
    made = bounded(inFlight=1)
    made.controller("web", 3)
    made.pod("sibling", of="web", ready=False)
    victim, other = made.pod("victim", of="web"), made.pod("other", of="web")
    made.at = 5.0
    made.evict(victim)
    made.gone("victim")
    made.pod("sibling", of="web", created=0.0)
    assert made.evict(other) == "InFlight"


def test_a_node_loses_two_at_once_and_five_in_five_minutes() -> None:
    """Check 7."""
    made = bounded(perNodeInFlight=2)
    several = pods(made, 3, on="n1")
    assert [made.evict(pod) for pod in several] == ["", "", "NodeRate"]

    made = bounded(perNodeFiveMinutes=5)
    several = pods(made, 6, on="n1")
    assert [made.evict(pod) for pod in several] == [*[""] * 5, "NodeRate"]
    made.at = 300.0
    assert made.evict(several[5]) == ""


def test_a_namespace_is_bounded_where_it_is_configured() -> None:
    """Check 8: unlimited without."""
    made = bounded(perNamespaceInFlight=1)
    several = pods(made, 2)
    assert [made.evict(pod) for pod in several] == ["", "NamespaceRate"]


@pytest.mark.parametrize(("replicas", "most"), [(3, 1), (4, 2), (10, 2), (11, 1), (30, 3)])
def test_a_workload_loses_as_many_at_once_as_the_formula_says(replicas: int, most: int) -> None:
    """Check 9: 10 % of more than 10, 2 of 4 to 10, 1 of fewer."""
    made = bounded(perControllerInFlight=None)
    several = pods(made, replicas, on="n1")
    outcomes = [made.evict(pod) for pod in several[: most + 1]]
    assert outcomes == [*[""] * most, "ControllerRate"]


def test_a_workload_with_pods_that_are_not_up_keeps_the_others() -> None:
    """Check 9: what is not up counts like what is in flight; a pod that is not up may go."""
    made = bounded(perControllerUnavailable=1)
    several = pods(made, 3, on="n1")
    down = made.pod("web-2", of="web", ready=False)

    answer = made.ask(several[0])
    assert isinstance(answer, answers.Defer)
    assert answer.reason == "ControllerRate"
    assert reason(made.ask(down)) == ""


def test_a_workload_loses_no_more_in_five_minutes_than_it_may_at_once() -> None:
    """Check 9, the rate: replaced at once, and still not the next."""
    made = bounded(perControllerInFlight=1)
    several = pods(made, 2, on="n1")
    made.evict(several[0])
    made.gone("web-0")
    made.at = 1.0
    made.pod("new", of="web")
    answer = made.ask(several[1])
    assert isinstance(answer, answers.Deny)
    assert (answer.reason, answer.until) == ("ControllerRate", START + 300)


def test_a_workload_that_was_moved_rests() -> None:
    """Check 11: 30 minutes unless configured; a mover that calls back does not wait."""
    made = bounded(coolDown="30m")
    several = pods(made, 3, on="n1")
    made.evict(several[0])
    made.at = 1799.0
    answer = made.ask(several[1])
    assert isinstance(answer, answers.Deny)
    assert (answer.reason, answer.until) == ("CoolDown", START + 1800)
    assert reason(made.ask(several[1], RECLAIMS)) == ""
    made.at = 1800.0
    assert reason(made.ask(several[1])) == ""


def test_an_eviction_that_the_server_refused_leaves_no_trace() -> None:
    """Neither rate nor flight nor rest: as if nobody had asked."""
    made = Picture({"limiter": {"perMinute": 1}})
    made.controller("web", 2)
    several = [made.pod(f"web-{place}", of="web") for place in range(2)]
    made.rate()
    made.limiter.begin(several[0], "Eviction", ACTS, made.now())
    assert reason(made.ask(several[1])) == "RateSpent"
    made.limiter.refused(several[0])

    assert made.evict(several[1]) == ""


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
    made = Picture()
    (pod,) = pods(made, 1)
    made.health = health

    assert reason(made.ask(pod)) == ("Unhealthy" if refused else "")
    assert reason(made.ask(pod, RECLAIMS)) == ("Unhealthy" if health.not_ready == 3 else "")


def test_the_first_check_that_refuses_gives_the_reason() -> None:
    """Each is taken away in turn, and the next one speaks."""
    made = Picture(
        {
            "limiter": {
                "perMinute": 0,
                "perNodeInFlight": 0,
                "perNamespaceInFlight": 0,
                "coolDown": "1h",
            }
        }
    )
    made.controller("web", 1)
    chosen = selector({"selector": {"matchLabels": {"app": "web"}}}, "selector")
    made.budgets.put("b", DisruptionBudget("d", chosen, 0))
    made.health = limiter.ClusterHealth(nodes=1, not_ready=1)
    made.rate(limits=[{"count": 0, "window": "1h"}])
    made.limiter.pace.begin(_earlier(made))
    fixes: list[tuple[str, Callable[[], Any]]] = [
        ("Gone", lambda: made.pod("p", of="web", annotations={"koordlet.io/movable": "false"})),
        ("Protected", lambda: made.pod("p", of="web")),
        ("RateSpent", lambda: made.limiter.rates.drop("d/web")),
        ("PDB", lambda: made.budgets.put("b", None)),
        ("GlobalRate", lambda: _set(made, per_minute=9)),
        ("NodeRate", lambda: _set(made, per_node_in_flight=9)),
        ("NamespaceRate", lambda: _set(made, per_namespace_in_flight=None)),
        ("ControllerRate", lambda: made.controller("web", 9)),
        ("ControllerRate", lambda: [made.pod(f"p{place}", of="web") for place in range(8)]),
        ("CoolDown", lambda: _set(made, cool_down_seconds=0.0)),
        ("Unhealthy", lambda: setattr(made, "health", limiter.ClusterHealth(nodes=1))),
    ]
    made.pod("p", of="web", ends="", annotations={"koordlet.io/movable": "false"})
    made.pods["d/p"].terminating = True
    seen = []
    for _, fix in fixes:
        seen.append(reason(made.ask(made.pods["d/p"])))
        fix()
    assert seen == [name for name, _ in fixes]
    assert reason(made.ask(made.pods["d/p"])) == ""


def _earlier(made: Picture) -> Any:
    """Another pod of the same workload that was moved on another node."""
    other = made.pod("other", of="web", on="n9")
    signature = made.limiter.workloads.signature(other.pod_class)
    made.gone("other")
    return pace.Eviction(
        uid="other",
        node="n9",
        signature=signature,
        namespace="d",
        mover=ACTS,
        since=made.now(),
        shadow=False,
        gone=1000.0,
    )


def _set(made: Picture, **fields: Any) -> None:
    made.limiter.settings = dataclasses.replace(
        made.limiter.settings,
        limiter=dataclasses.replace(made.limiter.settings.limiter, **fields),
    )


def test_among_equals_the_workload_goes_that_was_disrupted_least_per_replica() -> None:
    """Then the youngest pod, then the name; a day later all is forgotten."""
    made = Picture(UNBOUNDED)
    made.controller("big", 10)
    made.controller("small", 2)
    for name, of, created in (("b", "big", 0.0), ("s", "small", 0.0), ("t", "small", 9.0)):
        made.pod(name, of=of, created=created)
    for place in range(2):
        made.pod(f"b-{place}", of="big", ends="EvictionByEvictionAPI")
    made.pod("s-0", of="small", ends="EvictionByEvictionAPI")

    def order() -> list[str]:
        several = [made.pods[f"d/{name}"] for name in "bst"]
        return [
            pod.name
            for pod in sorted(several, key=lambda pod: made.limiter.fairness(pod, made.now()))
        ]

    assert order() == ["b", "t", "s"], "2 of 10 before 1 of 2"
    made.at = 86400.0
    assert order() == ["t", "b", "s"]


def test_a_question_about_a_workload_of_ten_thousand_pods_takes_under_fifty_milliseconds() -> None:
    """With a full ledger, a rate over all of them, and evictions in flight."""
    made = Picture(UNBOUNDED)
    made.controller("web", 10_000)
    for place in range(10_000):
        made.pod(f"web-{place}", of="web")
    made.rate(limits=[{"count": "10%", "window": "7d"}], minUp="80%")
    for place in range(60):
        made.at = float(place)
        made.debit(made.pods[f"d/web-{place}"])
    pod = made.pods["d/web-9999"]

    def spent() -> float:
        began = time.process_time()
        assert reason(made.ask(pod)) == ""
        return time.process_time() - began

    assert min(spent() for _ in range(5)) < 0.05
