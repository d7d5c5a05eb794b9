"""Who is nominated where: those that nothing but class and priority tells apart."""

from __future__ import annotations

import dataclasses

from koordlet.scheduler.loop import outcomes
from koordlet.scheduler.objects.decoder import Decoder
from tests.kit import clusters
from tests.kit.clusters import Body


def test_pods_that_more_tells_apart_are_not_alike() -> None:
    """Members of gangs, and pods with claims or devices, are asked each for itself."""
    claims = {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]}
    gang = {"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}}
    device = {"requests": {"example.com/gpu": "1"}}
    several: dict[str, Body] = {"plain": {}, "claims": claims, "member": gang, "device": device}
    decoder, nominated = Decoder({}), outcomes.Nominations()
    pods = {name: decoder.decode(clusters.pod(name, **more), 0) for name, more in several.items()}
    for name, pod in pods.items():
        nominated.put(pod, f"on-{name}")
    assert nominated.waiting == set()
    for name in pods:
        nominated.leave(f"on-{name}")
    assert nominated.waiting == {"d/plain"}

    nominated.put(dataclasses.replace(pods["member"], gang=None), "on-member")
    assert nominated.waiting == {"d/plain", "d/member"}
    nominated.drop("d/plain")
    assert nominated.waiting == {"d/member"}
    nominated.left("on-member")
    assert nominated.waiting == set()
    nominated.put(pods["plain"], "on-member")
    assert nominated.waiting == set()


def test_a_place_that_is_given_up_and_had_again_is_nobodys_room() -> None:
    """Else a group that waits for its victims wakes itself, again and again."""
    decoder, nominated = Decoder({}), outcomes.Nominations()
    first, other = (decoder.decode(clusters.pod(name), 0) for name in ("first", "other"))
    for pod in (first, other):
        nominated.put(pod, "n")
    for pod in (first, other):
        nominated.drop(pod.key)
    nominated.put(first, "n")
    assert [*nominated.withdrawn["n"]] == [other.key]
    nominated.put(other, "m")
    assert [*nominated.withdrawn["n"]] == [other.key]
    nominated.put(first, "m")
    assert [*nominated.withdrawn["n"]] == [other.key, first.key]
