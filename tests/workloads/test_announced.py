"""Pods that a runtime announced: how long they count."""

from __future__ import annotations

from koordlet.model import pod
from koordlet.workloads import announced
from tests.kit import moments


def pod_of(uid: str) -> pod.Pod:
    """A pod."""
    return moments.workload(uid, uid=uid)


def test_until_a_source_lists_it() -> None:
    """A source that lists the pod takes over; what the source says afterwards counts."""
    pods = announced.Announced()
    pods.add(pod_of("a"), 0.0)
    pods.add(pod_of("b"), 0.0)
    assert [listed.uid for listed in pods.unlisted(1.0, ())] == ["a", "b"]
    assert [listed.uid for listed in pods.unlisted(2.0, [pod_of("a")])] == ["b"]
    assert [listed.uid for listed in pods.unlisted(3.0, ())] == ["b"]


def test_not_for_ever() -> None:
    """A pod that no source ever lists was never here, unless nobody else would know."""
    pods = announced.Announced()
    pods.add(pod_of("a"), 0.0)
    pods.add(pod_of("b"), 0.0, for_good=True)
    assert len(pods.unlisted(59.0, ())) == 2
    assert [listed.uid for listed in pods.unlisted(60.0, ())] == ["b"]


def test_until_the_runtime_says_that_it_is_gone() -> None:
    """Its share is free at the next pass; a stranger's leaving is nothing."""
    pods = announced.Announced()
    pods.add(pod_of("a"), 0.0, for_good=True)
    pods.departed("stranger")
    assert "a" in pods
    pods.departed("a")
    assert "a" not in pods
    assert pods.unlisted(1.0, ()) == ()
