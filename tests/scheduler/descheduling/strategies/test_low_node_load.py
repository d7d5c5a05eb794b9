"""LowNodeLoad by Koordinator's rules: what is really used, twice, with anomaly detection."""

from __future__ import annotations

from typing import Any

from koordlet.scheduler.descheduling import configuration, dump
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling.limits import RoundLimits
from koordlet.scheduler.disruption.answers import Clock
from koordlet.scheduler.objects.usage import NodeUsage
from tests.kit import descheduling
from tests.kit.descheduling import Body, ago, node, pod, policy

NAME = "LowNodeLoad"
BOUNDS = {"lowThresholds": {"cpu": 40}, "highThresholds": {"cpu": 65}}
AT_ONCE = {**BOUNDS, "anomalyCondition": {"consecutiveAbnormalities": 1}}
LS = {"koordinator.sh/qosClass": "LS"}


def metric(name: str, system: str = "0", age: float = 10, **pods: str) -> Body:
    """The NodeMetric of a node: the system's CPU, and the pods'."""
    return {
        "kind": "NodeMetric",
        "metadata": {"name": name},
        "status": {
            "updateTime": ago(age),
            "nodeMetric": {
                "nodeUsage": {"resources": {"cpu": "1", "memory": "1Mi"}},
                "systemUsage": {"resources": {"cpu": system, "memory": "1Mi"}},
            },
            "podsMetric": [
                {"namespace": "default", "name": pod, "podUsage": {"resources": {"cpu": amount}}}
                for pod, amount in pods.items()
            ],
        },
    }


def batch(name: str, on: str, **more: Any) -> Body:
    """A pod that is no production."""
    return pod(name, on, labels={"koordinator.sh/priority-class": "koord-batch"}, **more)


def three() -> list[Body]:
    """Node n1 uses 80 % of 10 CPUs in four pods; n2 and n3 use 30 %."""
    return [
        *(node(name, cpu="10", memory="10Gi") for name in ("n1", "n2", "n3")),
        *(pod(f"p{place}", "n1", cpu="1", age=100 + place) for place in range(4)),
        metric("n1", "1", p0="1", p1="2", p2="2", p3="2"),
        metric("n2", "3"),
        metric("n3", "3"),
    ]


class Rounds:
    """Several rounds of one descheduler, which remembers."""

    def __init__(self, bodies: list[Body], **args: Any) -> None:
        self.settings = configuration.read(policy({NAME: args}), "test")
        self.state, _ = dump.state(bodies, descheduling.NOW)

    def play(self, seconds: float = 10.0, limits: RoundLimits | None = None) -> rounds.RoundResult:
        """One round so much later."""
        now = self.state.now
        self.state.now = Clock(wall=now.wall, steady=now.steady + seconds)
        made = rounds.DeschedulingRound(
            self.settings.profiles, limits or self.settings.limits, self.state
        )
        result = made.play(descheduling.everybody)
        assert result.failures == []
        return result

    def names(self, seconds: float = 10.0) -> list[str]:
        """The pods of one round."""
        return [each.resident.pod.name for each in self.play(seconds).evicted]


def note(bodies: list[Body], **args: Any) -> str:
    """Why nothing goes."""
    result = Rounds(bodies, **args).play()
    assert result.decisions == []
    return result.notes[0][2]


def test_a_source_has_its_normal_mark_also_where_a_limit_ends_the_round() -> None:
    """Where one closes its detector, it has to be too full twice in a row again."""
    marks = {"consecutiveAbnormalities": 2, "consecutiveNormalities": 1}
    ends = RoundLimits(total=0)
    played = Rounds(three(), **BOUNDS, anomalyCondition=marks)
    decided = [len(played.play(limits=ends).decisions) for _ in range(4)]
    assert decided == [0, 1, 0, 1]


def test_a_node_that_was_low_begins_anew_also_where_too_few_nodes_are_low() -> None:
    """It was too full in the first round and in the third, and not twice in a row."""
    marks = {"consecutiveAbnormalities": 2}
    played = Rounds(three(), **BOUNDS, numberOfNodes=2, anomalyCondition=marks)
    notes = []
    for full in ({"n1", "n2"}, {"n1"}, {"n2"}):
        usages = [metric(f"n{each}", "8" if f"n{each}" in full else "3") for each in (1, 2, 3)]
        played.state.usages = dump.state([*three()[:7], *usages], descheduling.NOW)[0].usages
        notes += [
            text.removeprefix("pool __default_node_pool__: ") for *_, text in played.play().notes
        ]
    assert notes == [
        "no node was overutilized often enough in a row",
        "2 nodes are underutilized, no more than numberOfNodes",
        "no node was overutilized often enough in a row",
    ]


def test_the_smallest_pod_that_is_enough_goes_and_the_reason_has_the_numbers() -> None:
    """80 % are 1.5 CPUs above 65 %: a pod of 2 is enough, one of 1 is not; the younger first."""
    (proposal,) = Rounds(three(), **AT_ONCE).play().evicted
    assert proposal.resident.pod.name == "p1"
    assert proposal.target in {"n2", "n3"}
    assert proposal.reason == ("node is overutilized, node cpu usage(80.00%)>threshold(65.00%)")


def test_a_node_is_a_source_only_after_several_rounds_in_a_row() -> None:
    """The number is the number: the fifth observation of five."""
    descheduler = Rounds(three(), **BOUNDS)
    assert [len(descheduler.names()) for _ in range(5)] == [0, 0, 0, 0, 1]
    late = Rounds(three(), **BOUNDS)
    assert [len(late.names(400.0)) for _ in range(6)] == [0] * 6


def test_a_report_that_is_too_old_or_missing_leaves_its_node_out() -> None:
    """Nothing is decided on numbers of three minutes ago, and the note says it."""
    bodies = three()
    bodies[7] = metric("n1", "1", age=180, p0="1", p1="6")
    assert [text for *_, text in Rounds(bodies, **AT_ONCE).play().notes] == [
        "pool __default_node_pool__: node n1: left alone without a report that is new enough",
        "pool __default_node_pool__: all nodes are under target utilization",
    ]
    without = [body for body in three() if body["kind"] != "NodeMetric"]
    assert "no node has a report" in note(without, **AT_ONCE)
    forever = {**AT_ONCE, "nodeMetricExpirationSeconds": None}
    assert Rounds(bodies, **forever).names() == ["p0"]


def test_pods_that_left_do_not_count_in_the_use_of_their_node() -> None:
    """The report still has them."""
    bodies = [body for body in three() if body["metadata"]["name"] not in {"p2", "p3"}]
    assert "under target utilization" in note(bodies, **AT_ONCE)


def test_a_cordoned_node_is_no_target_and_may_be_a_source() -> None:
    """As with the peer."""
    bodies = three()
    for body in bodies[1:3]:
        body["spec"]["unschedulable"] = True
    assert "no node is underutilized" in note(bodies, **AT_ONCE)
    full = three()
    full[0]["spec"]["unschedulable"] = True
    assert Rounds(full, **AT_ONCE).names() == ["p1"]


def test_a_pod_goes_only_where_a_target_stays_below_its_threshold() -> None:
    """Both targets have 1.5 CPUs left: pods of 2 stay, the one of 1 goes, and is not enough."""
    bodies = [*three()[:8], metric("n2", "5"), metric("n3", "5")]
    args = {**AT_ONCE, "lowThresholds": {"cpu": 50}}
    assert Rounds(bodies, **args).names() == ["p0"]
    assert Rounds(bodies, **args, nodeFit=False).names() == ["p1"]


def test_a_node_that_no_pod_leaves_is_a_note_though_the_targets_room_ends_the_pool() -> None:
    """The bare pod of the fullest node stays; another pod takes all that the target has."""
    bodies = [
        *(node(name, cpu="10", memory="10Gi") for name in ("n1", "n2", "n3")),
        pod("bare", "n1", cpu="1", owner=""),
        *(pod(name, "n2", cpu="1") for name in ("p1", "p2")),
        *(metric("n1", "6", bare="4"), metric("n2", "3.6", p1="3", p2="3"), metric("n3", "4")),
    ]
    result = Rounds(bodies, **AT_ONCE, nodeFit=False).play()
    assert len(result.evicted) == 1
    assert [text for *_, text in result.notes] == [
        "pool __default_node_pool__: no pod leaves node n1: none may be evicted"
    ]


def test_nodes_that_no_pod_leaves_are_a_note_with_the_reasons() -> None:
    """One for all of them, however many there are."""
    bodies = [
        *(node(name, cpu="10", memory="10Gi") for name in ("n1", "n2", "n3")),
        *(pod("p1", "n1", cpu="1"), pod("p2", "n1", cpu="1"), pod("p3", "n1", cpu="1")),
        *(metric("n1", "2", p1="4", p2="4"), metric("n2", "9"), metric("n3", "3")),
    ]
    text = "pool __default_node_pool__: no pod leaves node "
    both = "n1 and 1 more: 2 without room elsewhere, 1 not measured"
    assert note(bodies, **AT_ONCE) == text + both
    del bodies[3:6]
    assert note(bodies, **AT_ONCE) == f"{text}n2: none may be evicted"


def test_the_least_important_bands_go_before_what_would_be_enough() -> None:
    """Koordinator's order comes first, then the measured use."""
    bodies = [*three(), batch("b", "n1")]
    bodies[7] = metric("n1", "1", p0="1", p1="2", p2="2", p3="2", b="0.1")
    assert Rounds(bodies, **AT_ONCE).names()[0] == "b"


def test_production_is_balanced_for_itself() -> None:
    """n1 is within its bounds as a whole; its production pods are not, and batch pods stay."""
    bodies = [
        *(node(name, cpu="10", memory="10Gi") for name in ("n1", "n2")),
        *(pod("prod", "n1", cpu="1"), pod("small", "n1", cpu="1"), batch("b", "n1")),
        *(metric("n1", prod="4", small="1", b="0.5"), metric("n2", "1")),
    ]
    args = {
        **AT_ONCE,
        "prodLowThresholds": {"cpu": 20},
        "prodHighThresholds": {"cpu": 45},
    }
    (proposal,) = Rounds(bodies, **args).play().evicted
    assert proposal.resident.pod.name == "small"
    assert proposal.reason == "node is overutilized, prod cpu usage(50.00%)>threshold(45.00%)"


def test_a_node_belongs_to_the_first_pool_that_means_it() -> None:
    """n1 is over-used by the bounds of the second pool only, and is in the first."""
    bodies = three()
    bodies[0]["metadata"]["labels"]["pool"] = "a"
    bodies[1]["metadata"]["labels"]["pool"] = "a"
    pool = {
        "name": "a",
        "nodeSelector": {"matchLabels": {"pool": "a"}},
        "lowThresholds": {"cpu": 85},
        "highThresholds": {"cpu": 90},
    }
    rest = {"name": "rest", **BOUNDS}
    at_once = {"anomalyCondition": {"consecutiveAbnormalities": 1}}
    assert Rounds(bodies, nodePools=[pool, rest], **at_once).names() == []
    assert Rounds(bodies, nodePools=[rest, pool], **at_once).names() == ["p1"]


def test_deviations_are_around_the_mean_of_the_pool() -> None:
    """80, 30 and 30 % are 46.7 on average: 10 above are 56.7 %."""
    args = {
        "useDeviationThresholds": True,
        "lowThresholds": {"cpu": 10},
        "highThresholds": {"cpu": 10},
        "anomalyCondition": {"consecutiveAbnormalities": 1},
    }
    proposals = Rounds(three(), **args).play().evicted
    assert proposals[0].reason == "node is overutilized, node cpu usage(80.00%)>threshold(56.67%)"
    assert len(proposals) == 2


def test_selectors_namespaces_and_modes_bound_what_goes() -> None:
    """Paused, few nodes, other namespaces, other labels; a dry run only shows."""
    assert note(three(), **AT_ONCE, paused=True) == "it is paused"
    assert "no more than numberOfNodes" in note(three(), **AT_ONCE, numberOfNodes=2)
    others = {"evictableNamespaces": {"include": ["other"]}}
    assert Rounds(three(), **AT_ONCE, **others).names() == []
    labels = {"podSelectors": [{"name": "s", "selector": {"matchLabels": {"a": "b"}}}]}
    assert Rounds(three(), **AT_ONCE, **labels).names() == []
    (shown,) = Rounds(three(), **AT_ONCE, dryRun=True).play().evicted
    assert shown.shadow


def test_a_live_report_counts_for_a_node_and_a_pod_that_nobody_measures_is_estimated() -> None:
    """What an agent told a moment ago; older than 3 s the NodeMetric's sum counts again."""
    bodies = [body for body in three() if body["kind"] != "NodeMetric"]
    for age, expected in ((1.0, ["p0", "p1"]), (5.0, [])):
        played = Rounds(bodies, **AT_ONCE)
        played.state.usages = {
            name: NodeUsage(
                updated=descheduling.NOW - age, fed=True, reported=True, whole=True,
                node={"cpu": cpu, "memory": 1 << 20}, system={"cpu": 100},
            )
            for name, cpu in (("n1", 8000), ("n2", 3000), ("n3", 3000))
        }  # fmt: skip
        # Each asks for 1 CPU, and is taken to use 0.85: two of them bring 8 below 6.5.
        assert played.names() == expected


def test_one_pod_a_round_leaves_a_node_that_suffers_though_it_is_not_full() -> None:
    """Only where the configuration names it; the reason says from what."""
    bodies = [
        *(body for body in three() if body["metadata"]["name"] != "n1"),
        node("n1", cpu="20", memory="10Gi"),
        metric("n1", "1", p0="1", p1="2", p2="2", p3="2"),
    ]
    suffers = {
        "n1": frozenset({"LatencySensitiveSlowed", "resctrl.noisy_neighbour.1", "something else"})
    }
    for pressures, expected in (
        (["LatencySensitiveSlowed"], ["node is under pressure: LatencySensitiveSlowed"]),
        (["resctrl.noisy_neighbour"], ["node is under pressure: resctrl.noisy_neighbour"]),
        (["MemoryPressure"], []),
    ):
        played = Rounds(bodies, **AT_ONCE, pressures=pressures)
        played.state.pressures = suffers
        assert [move.reason for move in played.play().evicted] == expected
