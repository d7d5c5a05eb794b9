"""The fingerprint of pods is the one that schedulers compute."""

from __future__ import annotations

import random

import pytest

from koordlet.report.objects import fingerprint

#: (namespace, name), as published with the fingerprint's own tests.
PODS = (
    ("analytics", "controller-69dkj"),
    ("kube-public", "subscriber-tq6v7"),
    ("kube-public", "transformer-hfbng"),
    ("kube-public", "validator-c6pn5"),
    ("kube-system", "proxy-wszrd"),
    ("middleware", "processor-jkrl4"),
    ("network", "gateway-vsll5"),
    ("network", "importer-kzdfr"),
    ("network", "importer-q5vt9"),
    ("staging", "prometheus-bwgbn"),
)


def test_a_published_example() -> None:
    """Ten pods of three namespaces have the published fingerprint, in any order."""
    shuffled = random.Random(7).sample(PODS, len(PODS))

    assert "pfp0v001567144e4a561bb5a" == fingerprint.of(PODS) == fingerprint.of(shuffled)
    assert fingerprint.of(PODS[1:]) != fingerprint.of(PODS)


@pytest.mark.parametrize(
    ("data", "seed", "value"),
    [
        (b"", 0, 0xEF46DB3751D8E999),
        (b"a", 0, 0xD24EC4F1A98C6E5B),
        (b"abc", 0, 0x44BC2CF5AD770999),
        (b"Nobody inspects the spammish repetition", 0, 0xFBCEA83C8A378BF1),
    ],
)
def test_the_hash(data: bytes, seed: int, value: int) -> None:
    """XXH64 by its published vectors: empty, short, with the lanes of 32 bytes."""
    assert value == fingerprint.xxh64(data, seed)
