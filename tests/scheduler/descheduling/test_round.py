"""A round: its order, its limits, what a refusal and a failing strategy cost."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.scheduler.descheduling import configuration, dump
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.descheduling.limits import EvictionAnswer
from koordlet.scheduler.disruption.answers import Deny
from tests.kit import descheduling
from tests.kit.descheduling import Body, evicted, node, play, pod, policy

OLD = {"PodLifeTime": {"maxPodLifeTimeSeconds": 600}}
NODES = [node("n1"), node("n2")]


def several() -> list[Body]:
    """Four old pods on n1, the oldest last, and one on n2."""
    return [
        *NODES,
        *(pod(f"p{place}", "n1", age=1000 + place) for place in range(4)),
        pod("q", "n2", age=900, namespace="other"),
    ]


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        ({}, ["p3", "p2", "p1", "p0", "q"]),
        ({"maxNoOfPodsToEvictPerNode": 2}, ["p3", "p2", "q"]),
        ({"maxNoOfPodsToEvictPerNamespace": 1}, ["p3", "q"]),
        ({"maxNoOfPodsToEvictTotal": 3}, ["p3", "p2", "p1"]),
        ({"maxNoOfPodsToEvictTotal": 0}, []),
        (
            {"maxNoOfPodsToEvictPerNode": 1, "maxNoOfPodsToEvictPerNamespace": 1,
             "maxNoOfPodsToEvictTotal": 2}, ["p3", "q"],
        ),
    ],
)  # fmt: skip
def test_limits_count_the_evictions_of_one_round(limits: dict[str, Any], names: list[str]) -> None:
    """A node's limit ends that node, the total ends the strategy; a new round begins anew."""
    body = policy(OLD, **limits)
    assert evicted(several(), body) == names
    assert evicted(several(), body) == names


def test_only_pods_that_go_are_counted() -> None:
    """A refused eviction leaves the limit to the next pod."""
    body = policy(OLD, maxNoOfPodsToEvictTotal=1)

    def answer(proposal: rounds.EvictionProposal) -> Deny | None:
        return None if proposal.resident.pod.name == "p1" else Deny("PDB", "none may go")

    assert evicted(several(), body, answer) == ["p1"]


def test_a_limit_is_told_in_the_peers_words() -> None:
    """The result label of its metric."""
    result = play(several(), policy(OLD, maxNoOfPodsToEvictTotal=1))
    answers = [decision.answer for decision in result.decisions]
    assert answers == [EvictionAnswer.EVICTED, EvictionAnswer.TOTAL_LIMIT]
    assert EvictionAnswer.TOTAL_LIMIT.value == "maximum number of pods per total reached"
    ((*_, note),) = result.notes
    assert note == (
        "maximum number of pods per total reached: what else it wants was not looked at"
    )


@pytest.mark.parametrize(
    ("limits", "searches"),
    [
        ({}, 5),
        ({"maxNoOfPodsToEvictPerNode": 1}, 2),
        ({"maxNoOfPodsToEvictPerNamespace": 1}, 2),
        ({"maxNoOfPodsToEvictTotal": 1}, 1),
    ],
)
def test_no_landing_is_searched_for_what_a_limit_keeps(
    limits: dict[str, Any], searches: int
) -> None:
    """One search for each pod that goes."""
    searched = descheduling.Searches()
    settings = configuration.read(policy(OLD, {"nodeFit": True}, **limits), "f")
    state, _ = dump.state(several(), descheduling.NOW, searched.served())
    played = rounds.DeschedulingRound(settings.profiles, settings.limits, state)
    assert len(played.play(descheduling.everybody).evicted) == searches
    assert searched.number == searches


@pytest.mark.parametrize(
    ("reason", "answers", "notes"),
    [
        ("NodeRate", [EvictionAnswer.REFUSED] * 4, []),
        (
            "GlobalRate",
            [EvictionAnswer.CLUSTER_LIMIT],
            ["limit of the whole cluster reached: what else it wants was not looked at"],
        ),
    ],
)
def test_the_limiter_is_asked_first_and_the_clusters_bound_ends_the_strategy(
    reason: str, answers: list[EvictionAnswer], notes: list[str]
) -> None:
    """What it refuses costs no search and is not proposed; the result has it with the reason."""
    searched, proposed = descheduling.Searches(), list[rounds.EvictionProposal]()
    settings = configuration.read(policy(OLD, {"nodeFit": True}), "f")
    state, _ = dump.state(several(), descheduling.NOW, searched.served())

    def asks(proposal: rounds.EvictionProposal) -> Deny | None:
        return None if proposal.resident.pod.name == "p3" else Deny(reason, "later")

    played = rounds.DeschedulingRound(settings.profiles, settings.limits, state, asks=asks)
    result = played.play(proposed.append)
    decided = [decision.answer for decision in result.decisions]
    assert decided == [EvictionAnswer.EVICTED, *answers]
    assert [proposal.resident.pod.name for proposal in proposed] == ["p3"]
    assert [each.why for each in result.unproposed] == [f"{reason}: later"] * len(answers)
    assert [text for *_, text in result.notes] == notes
    assert searched.number == 1


def test_a_pod_goes_once_whatever_strategies_want_it() -> None:
    """Two strategies choose the same pod; the second finds it gone."""
    restarts = {"containerStatuses": descheduling.containers(restarts=9)}
    bodies = [*NODES, pod("p", "n1", status=restarts)]
    both = {**OLD, "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 5}}
    assert evicted(bodies, policy(both)) == ["p"]


def test_with_node_fit_a_pod_stays_where_nothing_else_takes_it() -> None:
    """What was decided earlier in the round takes room: the second pod finds none."""
    bodies = [
        *(node("n1"), node("n2", cpu="150m"), node("n3", unschedulable=True)),
        *(pod("a", "n1", age=1001), pod("b", "n1", age=1000)),
    ]
    result = play(bodies, policy(OLD, {"nodeFit": True}))
    chosen = [(each.resident.pod.name, each.target) for each in result.evicted]
    assert chosen == [("a", "n2")]
    assert evicted(bodies, policy(OLD)) == ["a", "b"]


def test_the_evictors_selectors_are_asked_last() -> None:
    """Labels of the namespace, and nodes for the replacement."""
    labels = {"matchLabels": {"move": "yes"}}
    bodies = [
        *(node("n1"), node("n2"), node("n3", labels={"pool": "b"})),
        {"kind": "Namespace", "metadata": {"name": "default", "labels": {"move": "no"}}},
        {"kind": "Namespace", "metadata": {"name": "moving", "labels": {"move": "yes"}}},
        *(pod("a", "n1"), pod("b", "n1", namespace="moving")),
    ]
    evictor = {"namespaceLabelSelector": labels, "nodeFit": True, "nodeSelector": "pool=b"}
    result = play(bodies, policy(OLD, evictor))
    assert [(each.resident.pod.name, each.target) for each in result.evicted] == [("b", "n3")]


def test_upstream_does_nothing_in_a_cluster_of_one_ready_node() -> None:
    """Its own words; Koordinator's dialect runs."""
    bodies = [node("n1"), node("n2", ready=False), pod("p", "n1")]
    result = play(bodies, policy(OLD))
    assert (result.decisions, result.notes) == ([], [("p", "", "the cluster size is 0 or 1")])
    peer: dict[str, Any] = policy(OLD)
    direct = {
        "name": "MigrationController",
        "args": {"defaultJobMode": "EvictDirectly", "skipCheckExpectedReplicas": True},
    }
    peer["kind"] = "DeschedulerConfiguration"
    peer["profiles"][0]["pluginConfig"].append(direct)
    assert evicted(bodies, peer) == ["p"]


def test_a_strategy_that_fails_ends_itself_alone() -> None:
    """The failure is in the result, and the next strategy has its turn."""

    class Broken:
        """Fails after its first pod."""

        name = "Broken"

        def intents(self, scene: rounds.Scene) -> rounds.Intents:
            """One pod, and an error."""
            yield rounds.Intent(scene.state.residents(0)[0], "first")
            raise RuntimeError("no more")

    settings = configuration.read(policy(OLD), "f")
    (profile,) = settings.profiles
    made = rounds.RoundProfile(
        name=profile.name, strategies=[Broken(), *profile.strategies], evictor=profile.evictor,
        rows=profile.rows, several=True,
    )  # fmt: skip
    state, _ = dump.state(several(), descheduling.NOW)
    result = rounds.DeschedulingRound([made], settings.limits, state).play(descheduling.everybody)
    assert result.failures == [("p", "Broken", "RuntimeError: no more")]
    assert [each.strategy for each in result.evicted] == ["Broken", *["PodLifeTime"] * 4]


def test_the_columns_are_as_they_were_when_a_round_is_over() -> None:
    """Departures and expected replacements are decisions, not the cluster's state."""
    state, _ = dump.state(several(), descheduling.NOW)
    before = state.columns.requested.copy(), [set(pods) for pods in state.columns.pods]
    settings = configuration.read(policy(OLD, {"nodeFit": True}), "f")
    seen: list[list[int]] = []

    def answer(_proposal: rounds.EvictionProposal) -> None:
        seen.append([len(pods) for pods in state.columns.pods])

    for waits in (False, True):
        rounds.DeschedulingRound(settings.profiles, settings.limits, state, waits=waits).play(
            answer
        )
        assert (state.columns.requested == before[0]).all()
        assert [set(pods) for pods in state.columns.pods] == before[1]
    # Who waits for answers sees the cluster as it is; who does not sees what was decided.
    assert seen[5:] == [[4, 1]] * 5
    assert seen[1] != [4, 1]
