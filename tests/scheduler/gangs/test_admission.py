"""The messages of pods that may not be tried yet."""

from __future__ import annotations

from koordlet.kubeapi import pod_groups
from koordlet.scheduler.gangs import admission
from koordlet.scheduler.gangs.book import GangBook
from tests.kit import gangs


def why(name: str, *bodies: gangs.Body) -> str:
    """What a pod waits for, all objects being there."""
    book = GangBook()
    for body in bodies:
        if body["kind"] == "PodGroup":
            book.put_pod_group(pod_groups.pod_group(body))
    pods = {body["metadata"]["name"]: gangs.decoded(body) for body in bodies if "status" in body}
    for pod in pods.values():
        book.put(pod)
    return admission.refusal(book, pods[name])


def test_a_missing_object() -> None:
    """Each kind of PodGroup in its own words."""
    assert why("p", gangs.labelled("p", "g")) == "can't find gang, gangName: d/g, podName: d/p"
    assert why("p", gangs.own("p", "g"), gangs.pod_group("g", 1)) == (
        'waiting for pods\'s pod group "g" to appear in scheduling queue'
    )


def test_a_gang_without_a_readable_minimum() -> None:
    """Such a pod is not scheduled alone."""
    expected = "gang has not init, gangName: d/g, podName: d/p"
    assert why("p", gangs.member("p", "g", "x")) == expected
    assert why("p", gangs.labelled("p", "g"), gangs.pod_group("g", "x")) == expected


def test_a_group_names_only_the_gangs_that_lack_something() -> None:
    """Unknown ones, those that are not initialised, those that lack pods: in this order."""
    names = '["d/a","d/b","d/c","d/d"]'
    message = why(
        "pa",
        gangs.member("pa", "a", 1, notes={pod_groups.GROUPS: names}),
        gangs.member("pb", "b", 2),
        gangs.member("pc", "c"),
    )
    assert message == (
        "gangGroup [d/a,d/b,d/c,d/d] basic check: memberGangs [d/d] doesn't exists,"
        " memberGangs [d/c] has not init, memberGangs [d/b] child pod not collect enough,"
        " current gang: d/a, podName: d/pa"
    )


def test_enough_children_pass_and_kubernetes_own_has_its_own_message() -> None:
    """A basic group, and a minimum of 0, need nobody else."""
    assert why("p", gangs.own("p", "g"), gangs.own_group("g", 2)) == (
        "waiting for minCount pods from a gang to appear in scheduling queue"
    )
    pods = [gangs.own(name, "g") for name in "pq"]
    assert why("p", *pods, gangs.own_group("g", 2)) == ""
    assert why("p", gangs.own("p", "g"), gangs.own_group("g", None)) == ""
    assert why("p", gangs.labelled("p", "g"), gangs.pod_group("g", 0)) == ""


def test_a_group_that_was_satisfied_admits_a_replacement_alone_by_its_policy() -> None:
    """With another policy the minimum must be there again."""
    running = gangs.labelled("q", "g", on="n")
    assert why("p", gangs.labelled("p", "g"), running, gangs.pod_group("g", 3)) == ""
    counting = gangs.pod_group("g", 3, policy="waiting-and-running")
    assert "not collect enough" in why("p", gangs.labelled("p", "g"), running, counting)
