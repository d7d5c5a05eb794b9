"""Rates over pods: windows, minUp, minGap, reserve, several rates, defaults, the floor."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.kubeapi.disruption_rates import CountOrPercent
from koordlet.scheduler.disruption import answers, rate_book, settings
from koordlet.scheduler.disruption.workloads import Signature, WorkloadIndex
from koordlet.scheduler.objects.pods import PodClass
from tests.kit.disruptions import ACTS, BACKGROUND, START, UNBOUNDED, WATCHES, Picture, reason

DAILY = {"priorityAtLeast": 0, "count": 4, "window": "24h"}


def picture(number: int = 3, *, of: str = "web", **configured: Any) -> Picture:
    """Pods ``web-0`` … of one ReplicaSet, bounded by rates alone."""
    cluster = Picture({**UNBOUNDED, **configured})
    cluster.controller(of, number)
    for place in range(number):
        cluster.pod(f"{of}-{place}", of=of)
    return cluster


def pod(cluster: Picture, name: str) -> Any:
    """A pod of the picture."""
    return cluster.pods[f"d/{name}"]


def test_a_disruption_that_is_exactly_as_old_as_the_window_is_free() -> None:
    """Allowed at t iff fewer than count are later than t - window; the refusal says until when."""
    cluster = picture()
    cluster.rate(limits=[{"count": 1, "window": "1h"}])
    assert cluster.evict(pod(cluster, "web-0")) == ""
    cluster.at = 3599.0

    answer = cluster.ask(pod(cluster, "web-1"))

    assert isinstance(answer, answers.Deny)
    assert (answer.reason, answer.until) == ("RateSpent", START + 3600)
    assert answer.message == (
        "DisruptionRate d/web allows 1 in 1h, and 1 happened; the next is allowed at"
        " 2026-01-01T01:00:00Z"
    )
    cluster.at = 3600.0
    assert cluster.evict(pod(cluster, "web-1")) == ""


def test_every_limit_must_allow_and_the_next_moment_is_that_of_the_count_th_newest() -> None:
    """Two an hour and three a day: the day holds when the hour is free again."""
    cluster = picture(5)
    cluster.rate(limits=[{"count": 2, "window": "1h"}, {"count": 3, "window": "24h"}])
    for place, at in enumerate((0.0, 600.0, 3600.0)):
        cluster.at = at
        assert cluster.evict(pod(cluster, f"web-{place}")) == "", place
    cluster.at = 3700.0

    answer = cluster.ask(pod(cluster, "web-3"))

    assert isinstance(answer, answers.Deny)
    assert answer.until == START + 600 + 3600, "the hour speaks first"
    cluster.at = 8000.0
    answer = cluster.ask(pod(cluster, "web-3"))
    assert isinstance(answer, answers.Deny)
    assert answer.until == START + 86400


def test_ten_percent_of_three_pods_is_one() -> None:
    """A percentage is of the expected pods, rounded down, at least 1: a count of 19 gives 1, 20 2.

    ``allowed`` is asked at each size.
    """
    for number, allowed in ((3, 1), (19, 1), (20, 2)):
        cluster = picture(number)
        cluster.rate(limits=[{"count": "10%", "window": "1h"}])
        outcomes = [cluster.evict(pod(cluster, f"web-{place}")) for place in range(3)]
        assert outcomes == [""] * allowed + ["RateSpent"] * (3 - allowed), number


def test_min_up_counts_expected_pods_and_lets_a_pod_go_that_is_not_up() -> None:
    """80 % of 4 is 4, rounded up: nobody who is up may go, and one who is not up may."""
    cluster = picture(4)
    cluster.rate(limits=[{"count": 50, "window": "1h"}], minUp="80%")
    cluster.pod("web-3", of="web", ready=False)

    answer = cluster.ask(pod(cluster, "web-0"))

    assert answer == answers.Defer(
        "BelowMinUp",
        "DisruptionRate d/web needs 4 of 4 pods up, and 3 are: wait until more are ready",
    )
    assert cluster.evict(pod(cluster, "web-3")) == ""


def test_a_pod_whose_eviction_is_asked_for_is_not_up_any_more() -> None:
    """The store shows it only later: two questions in a row must not both pass."""
    cluster = picture(2)
    cluster.rate(limits=[{"count": 50, "window": "1h"}], minUp=1)

    assert cluster.evict(pod(cluster, "web-0")) == ""
    assert cluster.evict(pod(cluster, "web-1")) == "BelowMinUp"


def test_the_least_gap_between_two_disruptions_is_kept_to_the_second() -> None:
    """``minGap`` refuses with the moment."""
    cluster = picture()
    cluster.rate(limits=[{"count": 5, "window": "1h"}], minGap="5m")
    cluster.evict(pod(cluster, "web-0"))
    cluster.at = 299.0
    answer = cluster.ask(pod(cluster, "web-1"))
    assert isinstance(answer, answers.Deny)
    assert (answer.reason, answer.until) == ("MinGap", START + 300)
    cluster.at = 300.0
    assert cluster.evict(pod(cluster, "web-1")) == ""


def test_causes_that_are_exempt_are_counted_and_never_refused() -> None:
    """Pressure of a node cannot wait; what it takes is taken from what others may."""
    cluster = picture()
    cluster.rate()
    cluster.evict(pod(cluster, "web-0"))

    assert reason(cluster.ask(pod(cluster, "web-1"), cause="NodePressure")) == ""
    assert reason(cluster.ask(pod(cluster, "web-1"))) == "RateSpent"
    cluster.rate("strict", selector="web", exempt=[])
    assert reason(cluster.ask(pod(cluster, "web-1"), cause="NodePressure")) == ""
    cluster.evict(pod(cluster, "web-1"), cause="NodePressure")
    assert reason(cluster.ask(pod(cluster, "web-2"), cause="NodePressure")) == "RateSpent"


def test_two_rates_of_a_pod_must_both_allow_and_are_both_debited() -> None:
    """Unlike disruption budgets, which refuse a pod that two of them cover."""
    cluster = picture()
    cluster.rate("wide", selector="web", limits=[{"count": 2, "window": "1h"}])
    cluster.rate("narrow", limits=[{"count": 1, "window": "1h"}])

    assert cluster.evict(pod(cluster, "web-0")) == ""
    answer = cluster.ask(pod(cluster, "web-1"))
    assert isinstance(answer, answers.Deny)
    assert "d/narrow" in answer.message
    for name, group in (("wide", ""), ("narrow", "ReplicaSet/web")):
        held = cluster.limiter.rates.get(f"d/{name}")
        assert held is not None
        assert [entry.uid for entry in held.ledger(group)] == ["uid-web-0"], name


def test_each_controller_has_a_ledger_of_its_own_and_a_rollout_does_not_forget() -> None:
    """The ReplicaSets of a Deployment share one."""
    cluster = Picture(UNBOUNDED)
    for name, above in (("web-1", "web"), ("web-2", "web"), ("db", "")):
        cluster.controller(name, 2, above=above)
        cluster.pod(f"{name}-a", of=name)
    cluster.rate("all")

    assert cluster.evict(pod(cluster, "web-1-a")) == ""
    assert cluster.evict(pod(cluster, "web-2-a")) == "RateSpent"
    assert cluster.evict(pod(cluster, "db-a")) == ""


def test_the_reserve_is_kept_from_movers_in_the_background() -> None:
    """Of two, one is kept back; a mover in the foreground may have it."""
    cluster = picture(aggressiveness="High")
    cluster.rate(limits=[{"count": 2, "window": "1h"}], reserve=1)

    assert cluster.evict(pod(cluster, "web-0"), BACKGROUND) == ""
    assert cluster.evict(pod(cluster, "web-1"), BACKGROUND) == "RateSpent"
    assert cluster.evict(pod(cluster, "web-1"), ACTS) == ""


def test_a_rate_that_cannot_be_read_any_more_is_as_it_was_and_a_new_one_limits_nobody() -> None:
    """A typing error must not open a budget."""
    cluster = picture()
    cluster.rate("old")
    cluster.rate("old", limits=[{"count": "many", "window": "1h"}])
    assert cluster.evict(pod(cluster, "web-0")) == ""
    assert cluster.evict(pod(cluster, "web-1")) == "RateSpent"
    cluster.disruptions.limiter.rates.drop("d/old")
    cluster.rate("new", limits=[])
    assert cluster.evict(pod(cluster, "web-1")) == ""


DEFAULTS = {
    "defaults": [
        {"priorityAtLeast": 0, "count": 2, "window": "1h"},
        {"priorityAtLeast": 9000, "count": 1, "window": "6h"},
    ]
}


def test_a_controller_without_a_rate_has_the_default_of_its_pods_highest_priority() -> None:
    """The row with the highest bound that its priority reaches; an object takes its place."""
    cluster = picture(3, disruption=DEFAULTS)
    assert [cluster.evict(pod(cluster, f"web-{place}")) for place in range(3)] == [
        "",
        "",
        "RateSpent",
    ]

    cluster = picture(3, disruption=DEFAULTS)
    cluster.pod("web-2", of="web", priority=9500)
    assert [cluster.evict(pod(cluster, f"web-{place}")) for place in range(2)] == ["", "RateSpent"]
    cluster.rate(limits=[{"count": 5, "window": "1h"}])
    assert cluster.evict(pod(cluster, "web-1")) == ""


def test_without_defaults_a_controller_without_a_rate_is_unlimited() -> None:
    """Rule 7: the implicit budget is infinite."""
    cluster = picture(20)
    assert {cluster.evict(pod(cluster, f"web-{place}")) for place in range(20)} == {""}


FLOOR = {"priorityAtLeast": 9000, "maxMinUp": "50%", "minCountPerDay": 2}


@pytest.mark.parametrize(
    ("spec", "honoured"),
    [
        ({"minUp": "100%"}, {"min_up": CountOrPercent(50, percent=True)}),
        ({"minUp": 1}, {"min_up": CountOrPercent(1)}),
        ({"limits": [{"count": 0, "window": "1h"}]}, {"count": 1}),
        ({"limits": [{"count": 1, "window": "7d"}]}, {"count": 14}),
        ({"limits": [{"count": 1, "window": "12h"}]}, {"count": 1}),
        ({"minGap": "7d"}, {"min_gap_seconds": 43200.0}),
    ],
)
def test_nobody_without_the_right_is_stricter_than_the_floor(
    spec: dict[str, Any], honoured: dict[str, Any]
) -> None:
    """What is stricter is honoured up to the floor; from its priority on as it is."""
    for priority in (0, 9000):
        cluster = picture(4, disruption={"floor": FLOOR})
        for place in range(4):
            cluster.pod(f"web-{place}", of="web", priority=priority)
        rate = cluster.rate(**spec)
        held = cluster.limiter.rates.get("d/web")
        assert held is not None
        group = cluster.limiter.rates.group(held, "ReplicaSet/web")
        if priority == 9000:
            assert group.spec == rate.spec
            continue
        honours = dict(honoured)
        count = honours.pop("count", None)
        if count is not None:
            assert [limit.count.floor(4) for limit in group.spec.limits] == [count]
        assert {name: getattr(group.spec, name) for name in honours} == honours


def test_what_a_mover_in_shadow_would_do_counts_for_shadow_alone() -> None:
    """Shadow decisions are those of the acting mover until the first eviction."""
    cluster, acting = picture(), picture()
    for each in (cluster, acting):
        each.rate(limits=[{"count": 2, "window": "1h"}])
    for place in range(3):
        answer = cluster.ask(pod(cluster, f"web-{place}"), WATCHES)
        assert isinstance(answer, answers.Deny)
        assert answer.reason == "Shadow"
        assert answer.would is not None
        if answer.would == answers.Allow():
            cluster.limiter.begin(pod(cluster, f"web-{place}"), "Eviction", WATCHES, cluster.now())
        assert reason(answer.would) == acting.evict(pod(acting, f"web-{place}")), place

    assert cluster.evict(pod(cluster, "web-2")) == ""
    held = cluster.limiter.rates.get("d/web")
    assert held is not None
    kept = [(entry.uid, entry.shadow) for entry in held.ledger("ReplicaSet/web")]
    assert sorted(kept) == [("uid-web-0", True), ("uid-web-1", True), ("uid-web-2", False)]


def test_an_accepted_eviction_of_a_pod_that_still_runs_after_ten_minutes_is_credited() -> None:
    """It lapses; one that ends by a finalizer only does not, and a second eviction counts anew."""
    cluster = picture()
    cluster.rate(limits=[{"count": 2, "window": "24h"}])
    cluster.evict(pod(cluster, "web-0"))
    cluster.evict(pod(cluster, "web-1"))
    cluster.pod("web-1", of="web", ends="EvictionByEvictionAPI")
    cluster.at = 600.0
    cluster.limiter.settle(cluster.now())
    assert cluster.evict(pod(cluster, "web-2")) == "RateSpent"
    cluster.at = 601.0
    cluster.limiter.settle(cluster.now())

    held = cluster.limiter.rates.get("d/web")
    assert held is not None
    lapsed = {entry.uid: entry.lapsed for entry in held.ledger("ReplicaSet/web")}
    assert lapsed == {"uid-web-0": True, "uid-web-1": False}
    assert cluster.evict(pod(cluster, "web-0")) == ""
    assert cluster.evict(pod(cluster, "web-2")) == "RateSpent"


class CountedIndex(WorkloadIndex):
    """Counts the classes whose workload is asked for."""

    asked = 0

    def signature(self, pod_class: PodClass) -> Signature | None:
        """The workload of a class."""
        self.asked += 1
        return super().signature(pod_class)


def test_a_question_about_a_pod_looks_at_no_other_controller() -> None:
    """It costs the same beside fifty controllers: a plan asks it of thousands of pods."""
    body = {"apiVersion": settings.API_VERSION, "disruption": {"defaults": [DAILY]}}
    asked = []
    for others in (0, 50):
        cluster = picture()
        for place in range(others):
            cluster.pod(f"other-{place}", of=f"other-{place}")
        known = CountedIndex(cluster.pods.values)
        book = rate_book.RateBook(settings.read(body, "test"), known)
        assert [group.standing.expected for group in book.groups(pod(cluster, "web-0"))] == [3]
        known.asked = 0
        book.groups(pod(cluster, "web-1"))
        asked.append(known.asked)
    assert asked[0] == asked[1]


def test_an_entry_of_a_status_whose_controller_is_no_controller_harms_nobody() -> None:
    """Somebody else wrote it: it is counted for nobody, and never credited."""
    entry = {"pod": "x", "uid": "u", "time": "2026-01-01T00:00:00Z", "cause": "Eviction"}
    cluster = picture()
    cluster.at = 3000.0
    cluster.rate(status={"disruptions": [{**entry, "controller": "web"}]})
    cluster.limiter.settle(cluster.now())
    assert cluster.evict(pod(cluster, "web-0")) == ""


def test_the_ledger_comes_back_from_the_status() -> None:
    """A restart counts what the status keeps, for the controller that each entry names."""
    entry = {"pod": "web-0", "uid": "u", "time": "2026-01-01T00:00:00Z", "cause": "Eviction"}
    cluster = picture()
    cluster.at = 10.0
    cluster.rate(status={"disruptions": [{**entry, "controller": "ReplicaSet/web"}]})
    assert cluster.evict(pod(cluster, "web-1")) == "RateSpent"

    for change in ({"controller": "ReplicaSet/db"}, {"accepted": False}, {"lapsed": True}):
        other = picture()
        other.at = 10.0
        other.rate(status={"disruptions": [{**entry, "controller": "ReplicaSet/web", **change}]})
        assert other.evict(pod(other, "web-1")) == "", change


def test_a_component_has_its_share_of_each_count_and_at_least_one() -> None:
    """25 % of 1 is 1, of 8 is 2; a mover with a limit of its own has no share."""
    for count, share in ((1, 1), (8, 2)):
        cluster = picture(8, limiter={**UNBOUNDED["limiter"], "shares": {"migrate": "25%"}})
        cluster.rate(limits=[{"count": count, "window": "1h"}])
        outcomes = [cluster.evict(pod(cluster, f"web-{place}")) for place in range(3)]
        assert outcomes[:share] == [""] * share
        assert outcomes[share] == ("Share" if count > share else "RateSpent")
        own = dataclasses.replace(ACTS, limit=answers.EvictionRate(30, 60.0))
        assert cluster.evict(pod(cluster, "web-7"), own) == ("" if count > share else "RateSpent")


@pytest.mark.parametrize(("dial", "parts"), [("Low", 1), ("Normal", 2), ("High", 4)])
def test_the_dial_gives_the_background_its_part_of_every_budget(dial: str, parts: int) -> None:
    """25, 50 or 100 % of four, all movers in the background together."""
    cluster = picture(6, aggressiveness=dial)
    cluster.rate(limits=[{"count": 4, "window": "1h"}])
    movers = [BACKGROUND, answers.Mover(name="defragment", acts=True)]
    outcomes = [
        cluster.evict(pod(cluster, f"web-{place}"), movers[place % 2]) for place in range(5)
    ]
    assert outcomes[:parts] == [""] * parts
    assert outcomes[parts] == ("RateSpent" if parts == 4 else "Share")


def test_windows_are_spelled_as_people_write_them() -> None:
    """Whole days, hours and minutes, else seconds."""
    spelled = [rate_book.spelled(seconds) for seconds in (604800, 21600, 300, 90, 0.5)]
    assert spelled == ["7d", "6h", "5m", "90s", "0.5s"]
