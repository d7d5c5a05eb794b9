"""Kubernetes' descheduler's cases of LowNodeUtilization by a query of Prometheus."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import errors
from koordlet.scheduler.descheduling import configuration, dump
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling.prometheus_source import QueryAnswer
from tests.kit.descheduling import NOW, Body, everybody, node, pod, policy

LOW, QUERY = "LowNodeUtilization", "instance:node_cpu:rate:sum"
PROVIDERS = [{"source": "Prometheus", "prometheus": {"url": "http://prometheus:9090"}}]
MIRROR = {"kubernetes.io/config.mirror": "x"}
BODIES = [
    *(node("n1", "4", pods=9), node("n2", "4"), node("n3", "4")),
    *(pod(f"p{place}", "n1", "400m") for place in range(1, 6)),
    *(pod("p6", "n1", "400m", owner="DaemonSet/d"), pod("p7", "n1", "400m", annotations=MIRROR)),
    *(pod("p8", "n1", "400m", priority=2_000_000_000), pod("p9", "n2", "400m")),
]
USES = {"n1": 0.5695757575757561, "n2": 0.4245454545454522, "n3": 0.20381818181818104}


def args(low: float, high: float, **more: Any) -> Body:
    """The arguments."""
    return {
        "thresholds": {"MetricResource": low}, "targetThresholds": {"MetricResource": high},
        "metricsUtilization": {"source": "Prometheus", "prometheus": {"query": QUERY}}, **more,
    }  # fmt: skip


def played(arguments: Body, answer: QueryAnswer | None) -> rounds.RoundResult:
    """One round over the cluster, with what a Prometheus answered."""
    body = policy({LOW: arguments}, {"nodeFit": True}, metricsProviders=PROVIDERS)
    settings = configuration.read(body, "f")
    assert settings.queries == (QUERY,)
    state, _ = dump.state(BODIES, NOW)
    state.answers = {} if answer is None else {QUERY: answer}
    return rounds.DeschedulingRound(settings.profiles, settings.limits, state).play(everybody)


DEVIATES = {"useDeviationThresholds": True}


@pytest.mark.parametrize(
    ("arguments", "uses", "names"),
    [
        (args(30, 50), USES, ["p1"]),
        (args(30, 50, evictionLimits={"node": 3}), USES, ["p1", "p2", "p3"]),
        (args(5, 5, evictionLimits={"node": 2}, **DEVIATES), USES, ["p1", "p2"]),
        (args(10, 10, **DEVIATES), {"n1": 1, "n2": 0.5, "n3": 0}, ["p1"]),
        # Nobody is below, nobody is above.
        (args(10, 50), USES, []),
        (args(30, 60), USES, []),
    ],
)  # fmt: skip
def test_one_pod_leaves_a_node_in_a_round_or_as_many_as_is_said(
    arguments: Body, uses: dict[str, float], names: list[str]
) -> None:
    """Nobody knows what a pod takes along."""
    result = played(arguments, QueryAnswer(uses))
    assert [proposal.resident.pod.name for proposal in result.evicted] == names


@pytest.mark.parametrize(
    ("answer", "note"),
    [
        (QueryAnswer(error="it is down"), "3 nodes are left alone: of Prometheus: it is down"),
        (None, "3 nodes are left alone: of Prometheus: it was not asked"),
        (QueryAnswer({"n1": 0.57, "n2": 0.42}),
         "1 nodes are left alone: of Prometheus: the query has no sample of them"),
    ],
)  # fmt: skip
def test_a_node_that_the_query_does_not_know_is_left_alone(
    answer: QueryAnswer | None, note: str
) -> None:
    """A note says why."""
    result = played(args(30, 50), answer)
    assert result.evicted == []
    assert ("p", LOW, note) in result.notes


@pytest.mark.parametrize(
    ("arguments", "providers", "message"),
    [
        ({**args(30, 50), "metricsUtilization": {"source": "Prometheus"}}, PROVIDERS,
         "metricsUtilization.prometheus.query: is needed"),
        ({**args(30, 50), "thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 50}}, PROVIDERS,
         "args.thresholds: MetricResource alone has a threshold"),
        (args(30, 50), [], "metricsProviders: has no Prometheus, which LowNodeUtilization asks"),
    ],
)  # fmt: skip
def test_arguments_that_are_refused(arguments: Body, providers: list[Body], message: str) -> None:
    """One resource, a query, and somebody to ask."""
    with pytest.raises(errors.ConfigError) as caught:
        configuration.read(policy({LOW: arguments}, metricsProviders=providers), "f")
    assert message in str(caught.value)
