"""Pods beside others that they must not be beside."""

from __future__ import annotations

from typing import Any

from koordlet.scheduler.descheduling.round import EvictionProposal
from koordlet.scheduler.disruption.answers import Deny
from tests.kit.descheduling import Body, evicted, node, pod, policy

NAME = "RemovePodsViolatingInterPodAntiAffinity"
HOST, ZONE = "kubernetes.io/hostname", "zone"


def alone(key: str = HOST, value: str = "b") -> Body:
    """Not beside pods that are labelled ``foo=VALUE``."""
    term = {"labelSelector": {"matchLabels": {"foo": value}}, "topologyKey": key}
    kind = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"podAntiAffinity": {kind: [term]}}}


def same(name: str, on: str = "n1", **more: Any) -> Body:
    """A pod that is labelled ``foo=b`` and bears no other such pod."""
    return pod(name, on, labels={"foo": "b"}, spec=alone(str(more.pop("key", HOST))), **more)


NODES = [node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "a"}), node("n3")]


def test_all_but_one_of_three_go_the_least_important_first() -> None:
    """The last one is beside nobody any more."""
    pods = [same("p1", priority=20), same("p2", priority=10), same("p3", priority=30)]
    assert evicted([*NODES, *pods], policy({NAME: {}})) == ["p2", "p1"]


def test_a_refused_eviction_leaves_the_pod_in_the_way() -> None:
    """So the next one is asked for as well."""
    pods = [same("p1", priority=10), same("p2", priority=20)]

    def answer(proposal: EvictionProposal) -> Deny | None:
        return Deny("PDB", "it stays") if proposal.resident.pod.name == "p1" else None

    assert evicted([*NODES, *pods], policy({NAME: {}}), answer) == ["p2"]


def test_the_domain_of_a_topology_counts_over_its_nodes() -> None:
    """Zone ``a`` has two nodes; the node without a zone is in none."""
    pods = [same("p1", key=ZONE), same("p2", "n2", key=ZONE), same("p3", "n3", key=ZONE)]
    assert evicted([*NODES, *pods], policy({NAME: {}})) == ["p1"]


def test_only_the_pod_that_minds_goes() -> None:
    """The other one has no term; a protected pod that minds stays."""
    minds = pod("minds", "n1", spec=alone())
    other = pod("other", "n1", labels={"foo": "b"})
    assert evicted([*NODES, minds, other], policy({NAME: {}})) == ["minds"]
    bare = pod("minds", "n1", spec=alone(), owner="")
    assert evicted([*NODES, bare, other], policy({NAME: {}})) == []


def test_pods_of_other_namespaces_do_not_count_unless_a_term_names_them() -> None:
    """A term means its own namespace."""
    pods = [same("p1"), pod("p2", "n1", labels={"foo": "b"}, namespace="other")]
    assert evicted([*NODES, *pods], policy({NAME: {}})) == []
