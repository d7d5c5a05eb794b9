"""Pods that a runtime announced: how long they count."""

from __future__ import annotations

from koordlet.model import pod
from koordlet.workloads import announced
from tests.kit import moments


def one(uid: str) -> pod.Pod:
    """A pod."""
    return moments.workload(uid, uid=uid)


def test_until_a_source_lists_it() -> None:
    """A source that lists the pod takes over; what the source says afterwards counts."""
    found = announced.Announced()
    found.add(one("a"), 0.0)
    found.add(one("b"), 0.0)
    assert [each.uid for each in found.unlisted(1.0, ())] == ["a", "b"]
    assert [each.uid for each in found.unlisted(2.0, [one("a")])] == ["b"]
    assert [each.uid for each in found.unlisted(3.0, ())] == ["b"]


def test_not_for_ever() -> None:
    """A pod that no source ever lists was never here, unless nobody else would know."""
    found = announced.Announced()
    found.add(one("a"), 0.0)
    found.add(one("b"), 0.0, for_good=True)
    assert len(found.unlisted(59.0, ())) == 2
    assert [each.uid for each in found.unlisted(60.0, ())] == ["b"]


def test_until_the_runtime_says_that_it_is_gone() -> None:
    """Its share is free at the next pass; a stranger's leaving is nothing."""
    found = announced.Announced()
    found.add(one("a"), 0.0, for_good=True)
    found.departed("stranger")
    assert "a" in found
    found.departed("a")
    assert "a" not in found
    assert found.unlisted(1.0, ()) == ()
