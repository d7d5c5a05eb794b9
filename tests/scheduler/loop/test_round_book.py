"""A descheduler remembers its last round, since when rounds want something in vain, and why."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from koordlet.scheduler.descheduling import configuration, dump
from koordlet.scheduler.descheduling import round as rounds
from koordlet.scheduler.disruption.answers import Clock, Deny
from koordlet.scheduler.loop import round_book
from koordlet.scheduler.loop.metrics import SchedulerMetrics
from tests.kit.descheduling import NOW, containers, node, pod, policy

#: Two pods of two workloads that restarted too often, and one that did not.
CLUSTER = [
    node("a"), node("b"),
    *(
        pod(name, "a", owner=f"ReplicaSet/{name}", status={"containerStatuses": containers(count)})
        for name, count in (("x", 9), ("y", 7), ("calm", 0))
    ),
]  # fmt: skip
FULL = [node("a"), node("b", cpu="1m"), *CLUSTER[2:]]
RESTARTS = {"RemovePodsHavingTooManyRestarts": {"podRestartThreshold": 5}}


class Played:
    """A book, and rounds of one strategy over clusters."""

    def __init__(self) -> None:
        self.measures = SchedulerMetrics()
        self.book = round_book.RoundBook(self.measures)
        self.ticks = 0.0

    def _clock(self) -> float:
        self.ticks += 0.5
        return self.ticks

    def round(
        self,
        at: float,
        *,
        refused: Mapping[str, str] = MappingProxyType({}),
        limiter: Mapping[str, str] = MappingProxyType({}),
        cluster: list[Any] = CLUSTER,
        **evictor: Any,
    ) -> None:
        """A round at a moment; ``refused``, ``limiter``: the reasons for which pods stay."""
        limits = {"maxNoOfPodsToEvictTotal": 0} if evictor.pop("none", False) else {}
        settings = configuration.read(policy(RESTARTS, evictor, **limits), "test")
        state, _ = dump.state(cluster, NOW)

        def asks(proposal: rounds.EvictionProposal) -> Deny | None:
            reason = limiter.get(proposal.resident.pod.name)
            return None if reason is None else Deny(reason, "why")

        def answer(proposal: rounds.EvictionProposal) -> Deny | None:
            reason = refused.get(proposal.resident.pod.name)
            return None if reason is None else Deny(reason, "why")

        played = rounds.DeschedulingRound(
            settings.profiles, settings.limits, state, clock=self._clock, asks=asks
        )
        self.book.end(played.play(answer), 0.25, Clock(wall=NOW + at, steady=at))

    def idle(self, at: float) -> tuple[float, str]:
        """How long nothing has moved, and the reason."""
        ((_, labels), seconds), *_ = self.book.gauges(Clock(wall=NOW + at, steady=at)).items()
        return seconds, dict(labels)["reason"]


def test_idle_is_who_wants_and_moves_nothing_with_the_reason_of_most_pods() -> None:
    """From the first such round on; a round that moves one pod ends it."""
    played = Played()
    both = {"x": "PDB", "y": "PDB"}
    played.round(10.0, refused=both)
    played.round(70.0, refused=both)
    assert played.idle(100.0) == (90.0, "PDB")
    played.round(130.0, refused={"x": "PDB"})
    assert played.idle(200.0) == (0.0, "")


def test_what_ended_a_strategy_comes_before_what_refused_most_pods() -> None:
    """The pods that it kept were not counted."""
    played = Played()
    third = pod("z", "a", owner="ReplicaSet/z", status={"containerStatuses": containers(8)})
    reasons = {"x": "CoolDown", "z": "CoolDown", "y": "Unhealthy"}
    played.round(10.0, limiter=reasons, cluster=[*CLUSTER, third])
    assert played.idle(20.0) == (10.0, "Unhealthy")


def test_who_wants_nothing_is_not_idle() -> None:
    """However long: there is nothing to be done."""
    played = Played()
    played.round(10.0, cluster=[*CLUSTER[:2], CLUSTER[-1]])
    assert played.idle(9000.0) == (0.0, "")


def test_a_pod_without_another_node_and_a_limit_of_the_round_are_reasons_too() -> None:
    """One is no proposal; the other is nobody's refusal."""
    played = Played()
    played.round(10.0, cluster=FULL, nodeFit=True)
    assert played.idle(20.0) == (10.0, round_book.NO_NODE_FITS)
    played.round(70.0, none=True)
    assert played.idle(80.0) == (70.0, "RoundLimit")


def test_what_is_only_shown_moves_nobody_and_is_not_in_vain() -> None:
    """A strategy that shows hides none that acts and is stuck."""
    notes = {"node.koordinator.sh/reservation": '{"resources": {"cpu": "1900m"}}'}
    shows = [node("a", annotations=notes), node("b"), pod("takes", "a", cpu="1")]
    played = Played()
    played.round(10.0, cluster=shows)
    assert played.idle(20.0) == (0.0, "")
    # The pod that takes what is reserved is shown, and the one that restarted is refused.
    stays = pod("x", "b", status={"containerStatuses": containers(9)})
    played.round(70.0, cluster=[*shows, stays], refused={"x": "PDB"})
    assert played.idle(80.0) == (10.0, "PDB")
    assert [each.shadow for each in played.book.last.evicted] == [True]  # type: ignore[union-attr]


def test_the_document_and_the_metrics_have_each_strategy() -> None:
    """What it wanted, what came of it, how long it took."""
    played = Played()
    played.round(10.0, refused={"x": "PDB"})
    document = played.book.document(Clock(wall=NOW + 10.0, steady=10.0))
    ran, ours = document["strategies"]
    assert ran == {
        "profile": "p", "strategy": "RemovePodsHavingTooManyRestarts", "seconds": 0.5,
        "sources": 0, "wanted": 2, "moved": 1, "refused": {"PDB": 1},
    }  # fmt: skip
    assert (ours["strategy"], ours["wanted"]) == ("ReservedResources", 0)
    assert [move["pod"] for move in document["moves"]] == ["default/y"]
    assert [(each["pod"], each["why"]) for each in document["refused"]] == [
        ("default/x", "PDB: why")
    ]
    assert (document["ended"], document["seconds"]) == ("2027-01-15T08:00:10Z", 0.25)
    text = played.measures.text({})
    labels = 'strategy="RemovePodsHavingTooManyRestarts",profile="p"'
    assert f"descheduler_strategy_duration_seconds_sum{{{labels}}} 0.5" in text
    assert "descheduler_loop_duration_seconds_count 1" in text


def test_before_the_first_round_the_document_is_empty() -> None:
    """Nothing is made up."""
    document = Played().book.document(Clock(wall=NOW, steady=0.0))
    assert (document["ended"], document["strategies"], document["moves"]) == (None, [], [])
