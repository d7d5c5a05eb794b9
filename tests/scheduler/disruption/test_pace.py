"""The pace of evictions changes what the limiter answers within one moment, too."""

from __future__ import annotations

from tests.kit.disruptions import ACTS, UNBOUNDED, Picture, reason


def test_an_answer_of_one_moment_does_not_outlive_what_it_counted() -> None:
    """An eviction that is withdrawn, whose pod goes, or that is replaced lets the next one go."""
    cluster = Picture({"limiter": {**UNBOUNDED["limiter"], "inFlight": 1}})
    pods = []
    for name in ("a", "b"):
        cluster.controller(name, 1)
        pods.append(cluster.pod(name, of=name, on=f"node-{name}"))
    first, second = pods
    cluster.limiter.begin(first, "Eviction", ACTS, cluster.now())
    assert reason(cluster.ask(second)) == "InFlight"
    cluster.limiter.refused(first)
    assert reason(cluster.ask(second)) == ""
    assert cluster.evict(first) == ""
    assert reason(cluster.ask(second)) == "InFlight"
    cluster.gone("a")
    assert reason(cluster.ask(second)) == "InFlight", "nothing replaces it yet"
    cluster.pod("new", of="a")
    assert reason(cluster.ask(second)) == ""
