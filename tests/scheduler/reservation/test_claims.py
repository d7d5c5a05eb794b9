"""Which reservations a class of pods is tried with, kept up to date."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from koordlet.scheduler.cluster import inventory
from koordlet.scheduler.objects.pods import Pod
from koordlet.scheduler.reservation.cache import ReservationCache
from koordlet.scheduler.reservation.claims import claim_of
from tests.kit import clusters
from tests.kit.reservations import reservation

WEB = {"app": "web"}


def scene(*owners: Any) -> tuple[ReservationCache, Pod]:
    """Reservations of these owners, bound to one node; a pod ``d/p`` of a ReplicaSet ``rs``."""
    meta = {"uid": "u", "ownerReferences": [{"kind": "ReplicaSet", "name": "rs", "uid": "rs-uid"}]}
    pod = clusters.pod("p", cpu="1", labels=WEB, meta=meta)
    loaded = inventory.load([clusters.node("n", cpu="64"), pod])
    cache = ReservationCache(loaded.columns, loaded.decoder)
    for number, owner in enumerate(owners):
        cache.put(reservation(f"r{number}", owners=[owner], cpu="1", on="n"))
    return cache, loaded.pending[0]


def claimed(cache: ReservationCache, pod: Pod) -> list[str]:
    """Names of the reservations that the pod may use on the node."""
    claim = claim_of(cache.claims.refine(pod, pod.pod_class))
    return [] if claim is None else [info.spec.name for info in claim.usable(0)]


@pytest.mark.parametrize(
    ("owner", "owns"),
    [
        ({"object": {"namespace": "d", "name": "p"}}, True),
        ({"object": {"name": "p"}}, True),
        ({"object": {"uid": "u"}}, True),
        ({"object": {"namespace": "other", "name": "p"}}, False),
        ({"controller": {"name": "rs"}}, True),
        ({"controller": {"uid": "rs-uid"}}, True),
        ({"controller": {"uid": "another"}}, False),
        ({"labelSelector": {"matchLabels": WEB}}, True),
        ({"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}, True),
        ({"labelSelector": {"matchLabels": {"app": "db"}}}, False),
        ({}, True),
    ],
)
def test_a_reservation_is_found_by_each_kind_of_owner_entry(owner: Any, owns: bool) -> None:
    """By name, by controller, by label; an empty entry selects every pod."""
    cache, pod = scene(owner)
    assert claimed(cache, pod) == (["r0"] if owns else [])


def test_a_claim_follows_reservations_that_come_and_go_in_the_order_of_their_arrival() -> None:
    """The variant of the class stays the same, so that nothing is computed anew for it."""
    selector = {"labelSelector": {"matchLabels": WEB}}
    cache, pod = scene(selector, {"object": {"name": "another"}}, selector)
    variant = cache.claims.refine(pod, pod.pod_class)
    before = claimed(cache, pod)
    cache.drop("r0")
    cache.put(reservation("r9", owners=[selector], cpu="1", on="n"))

    assert before == ["r0", "r2"]
    assert claimed(cache, pod) == ["r2", "r9"]
    assert cache.claims.refine(pod, pod.pod_class) is variant


def test_a_class_that_no_reservation_selects_stays_as_it_is() -> None:
    """No variant, so no filter and no score for it."""
    cache, pod = scene({"labelSelector": {"matchLabels": {"app": "db"}}})
    assert cache.claims.refine(pod, pod.pod_class) is pod.pod_class


def test_a_pod_of_the_same_name_has_a_claim_of_its_own() -> None:
    """As a StatefulSet makes them: the reservation of each is found by its UID."""
    cache, first = scene({"object": {"namespace": "d", "name": "p", "uid": "u"}})
    second = dataclasses.replace(first, uid="v")
    assert claimed(cache, first) == ["r0"]
    cache.drop("r0")
    owner = {"object": {"namespace": "d", "name": "p", "uid": "v"}}
    cache.put(reservation("r1", owners=[owner], cpu="1", on="n"))

    assert (claimed(cache, first), claimed(cache, second)) == ([], ["r1"])
