"""Answers by node: searched anew where something changed, and nowhere else."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Mapping
from typing import Any

import pytest

from koordlet.scheduler.claims import (
    allocator,
    demand,
    devices_in_use,
    node_answers,
    pools,
    search_time,
)
from koordlet.scheduler.objects import device_classes, resource_claims, resource_slices
from tests.kit import claim_search
from tests.kit import device_claims as kit
from tests.kit.device_claims import held

Body = dict[str, Any]
NO = allocator.NO_SOLUTION


class Cluster:
    """Slices and uses; selectors count how often a device is asked, and take their time."""

    def __init__(self, *slices: Body) -> None:
        self.book, self.in_use = pools.PoolBook(), devices_in_use.DevicesInUse()
        #: By what a claim says.
        self.answers: dict[str, node_answers.NodeAnswers] = {}
        self.now = self.seconds_of_selector = 0.0
        self.clock_reads = 0
        self.asked: list[str] = []
        for piece in slices:
            self.put(piece)

    def put(self, piece: Body) -> None:
        """A slice comes or changes."""
        self.book.put(resource_slices.decode(piece))

    def compiled(self, _expression: str) -> demand.DeviceSelector:
        return self

    def matches(self, device: resource_slices.SliceDevice, _driver: str) -> bool:
        """Everything matches."""
        self.asked.append(device.name)
        self.now += self.seconds_of_selector
        return True

    def clock(self) -> float:
        """The seconds that selectors took."""
        self.clock_reads += 1
        return self.now

    def why_not(
        self, nodes: Mapping[str, Mapping[str, str]], claim: Body | None = None
    ) -> dict[str, str]:
        """The answers for a claim of one device."""
        classes = {"gpu": device_classes.decode(kit.device_class("gpu", "true"))}
        wanted = resource_claims.decode(claim or kit.claim(kit.request()))
        answers = self.answers.get(repr(claim))
        if answers is None:
            ready = demand.prepare([wanted], classes, self.compiled)
            time = search_time.SearchTime(self.clock, 1.0)
            answers = node_answers.NodeAnswers(ready, self.book, self.in_use, time)
            self.answers[repr(claim)] = answers
        several = answers.of(nodes.items())
        return {node: answer.why_not for node, answer in zip(nodes, several, strict=True)}

    def fresh(self, nodes: Mapping[str, Mapping[str, str]], claim: Body) -> dict[str, str]:
        """The same without any memory."""
        other = Cluster()
        other.book, other.in_use = self.book, self.in_use
        return other.why_not(nodes, claim)


NODES: dict[str, dict[str, str]] = {"n1": {}, "n2": {}}


def local() -> Cluster:
    """A node with a device and one with none."""
    return Cluster(kit.resource_slice(["a"], node="n1", pool="p"))


def test_a_node_is_searched_again_when_a_device_of_it_is_taken_or_given_back() -> None:
    """For each kind of demand by itself."""
    cluster = local()
    two = kit.claim(kit.request(count=2))
    assert cluster.why_not(NODES) == {"n1": "", "n2": NO}
    assert cluster.why_not(NODES, two) == {"n1": NO, "n2": NO}
    cluster.in_use.add(held("a"))
    assert cluster.why_not(NODES) == {"n1": NO, "n2": NO}
    cluster.in_use.remove(held("a"))
    assert cluster.why_not(NODES) == {"n1": "", "n2": NO}


def test_slices_and_labels_that_change_are_seen() -> None:
    """A slice for a node, one by a selector, a node that gets the label, one that is gone."""
    cluster = local()
    nodes = {"n1": {}, "n2": {"zone": "a"}, "n3": {}}
    cluster.in_use.add(held("a"))
    assert set(cluster.why_not(nodes).values()) == {NO}
    want = {"key": "zone", "operator": "Exists"}
    selector = {"nodeSelectorTerms": [{"matchExpressions": [want]}]}
    cluster.put(kit.resource_slice(["b"], name="wide", pool="q", nodeSelector=selector))
    assert cluster.why_not(nodes) == {"n1": NO, "n2": "", "n3": NO}
    nodes["n3"] = {"zone": "b"}
    cluster.book.forget("n3")
    assert cluster.why_not(nodes) == {"n1": NO, "n2": "", "n3": ""}
    cluster.book.drop("wide")
    assert set(cluster.why_not(nodes).values()) == {NO}


def test_a_device_of_the_network_that_is_taken_is_taken_for_all_nodes() -> None:
    """Whoever could see the pool is asked again."""
    cluster = Cluster(kit.resource_slice(["a"], pool="p", allNodes=True))
    assert cluster.why_not(NODES) == {"n1": "", "n2": ""}
    cluster.in_use.add(held("a"))
    assert cluster.why_not(NODES) == {"n1": NO, "n2": NO}


def test_an_invalid_pool_is_the_answer_of_its_node_alone() -> None:
    """The others lack devices."""
    cluster = Cluster(kit.resource_slice(["a", "a"], node="n1"))
    assert cluster.why_not(NODES) == {"n1": allocator.INVALID_POOLS, "n2": NO}


def test_answers_are_those_of_a_search_without_memory() -> None:
    """Over random changes, for many kinds of demand."""
    chance = random.Random(29)
    cluster = Cluster()
    taken: list[resource_claims.ClaimAllocation] = []
    nodes: dict[str, dict[str, str]] = {f"n{n}": {} for n in range(4)}
    for _ in range(400):
        place = chance.choice(({"node": chance.choice(list(nodes))}, {"allNodes": True}))
        devices = [f"d{n}" for n in range(chance.randint(1, 3))]
        match chance.randrange(4):
            case 0:
                cluster.put(
                    kit.resource_slice(
                        devices, name=f"s{chance.randrange(3)}", pool=chance.choice("pq"), **place
                    )
                )
            case 1:
                cluster.book.drop(f"s{chance.randrange(3)}")
            case 2:
                taken.append(held(chance.choice(devices)))
                cluster.in_use.add(taken[-1])
            case _ if taken:
                cluster.in_use.remove(taken.pop(chance.randrange(len(taken))))
        claim = kit.claim(kit.request(name=f"r{chance.randrange(40)}", count=chance.randint(1, 3)))
        assert cluster.why_not(nodes, claim) == cluster.fresh(nodes, claim)


def test_a_look_that_takes_too_long_ends_and_the_next_goes_on_from_there() -> None:
    """Each device costs 0.6 s of the second that there is; what was found stays."""
    devices = ["a", "b", "c"]
    cluster = Cluster(*(kit.resource_slice(devices, node=node) for node in NODES))
    cluster.seconds_of_selector = 0.6
    three = kit.claim(kit.request(count=3))
    words = "^the search for devices was given up after 1 s: "
    with pytest.raises(demand.AllocationError, match=words):
        cluster.why_not(NODES, three)
    assert cluster.asked == ["a", "b"]
    with pytest.raises(demand.AllocationError, match=words):
        cluster.why_not(NODES, three)
    assert cluster.asked == ["a", "b"], "nothing is searched for right after a search given up"
    while len(cluster.asked) < 2 * len(devices):
        cluster.now += 1.0
        with contextlib.suppress(demand.AllocationError):
            cluster.why_not(NODES, three)
    cluster.now += 1.0
    assert cluster.why_not(NODES, three) == dict.fromkeys(NODES, "")


def test_nodes_that_see_the_same_devices_share_one_search() -> None:
    """A thousand nodes, one device of the network."""
    cluster = Cluster(kit.resource_slice(["a"], pool="p", allNodes=True))
    nodes: dict[str, dict[str, str]] = {f"n{n}": {} for n in range(1000)}
    assert set(cluster.why_not(nodes).values()) == {""}
    # At the beginnings of demand and look, before the search, and before the selector.
    assert cluster.clock_reads == 4


def test_a_node_is_rated_by_how_early_its_wishes_come() -> None:
    """Eight for the first, one less for each after it; nothing without a list."""
    cluster = Cluster(
        kit.resource_slice(["a"], node="n1"), kit.resource_slice(["a", "b"], node="n2")
    )
    wishes = [kit.wish("two", count=2), kit.wish("one")]
    classes = {"gpu": device_classes.decode(kit.device_class("gpu", "true"))}
    claim = resource_claims.decode(kit.claim(kit.first_available("r", *wishes)))
    ready = demand.prepare([claim], classes, cluster.compiled)
    answers = node_answers.NodeAnswers(ready, cluster.book, cluster.in_use, claim_search.ENDLESS)
    assert answers.has_wishes
    assert [answer.rating for answer in answers.of(NODES.items())] == [7, 8]
