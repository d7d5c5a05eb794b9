"""What of a claim's allocation is this node's, and what makes a claim impossible to prepare."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import cpuset, prepared_claim
from koordlet.workloads import claim_status
from tests.kit import prepared_claims
from tests.kit.prepared_claims import result, status

CPUS = cpuset.CPUSet.parse("0-3")
OFFER = prepared_claim.DeviceOffer(
    driver=prepared_claims.DRIVER,
    devices=(
        prepared_claim.OfferedDevice(
            name="numa-0",
            capacity={"cpu": prepared_claim.OfferedCapacity(value=3)},
            cpus=CPUS,
        ),
        prepared_claim.OfferedDevice(
            name="cache-7",
            capacity={
                "ways": prepared_claim.OfferedCapacity(value=8, least=0),
                "groups": prepared_claim.OfferedCapacity(value=2, ranges=False),
            },
            cache=7,
        ),
    ),
)


def decode(body: Any, uid: str = "claim-a") -> prepared_claim.PreparedClaim:
    """The claim as this node has it."""
    node = prepared_claims.NODE
    return claim_status.decode(body, uid=uid, node=node, offer=OFFER, wall=5.0)


def refuse(body: Any, uid: str = "claim-a") -> str:
    """Why it cannot be prepared."""
    with pytest.raises(claim_status.ClaimError) as caught:
        decode(body, uid)
    assert "claim t/a" in str(caught.value)
    return str(caught.value)


def test_amounts_of_each_device() -> None:
    """CPUs of one device and ways of another; results of others, or for a look, are not ours."""
    body = status(
        "a",
        result("numa-0", cpu="2"),
        {**result("cache-7", "cache/wide", ways="4", groups="1"), "shareID": "s2"},
        {**result("numa-0", cpu="1"), "driver": "gpu.example"},
        {**result("numa-0", cpu="1"), "pool": "n2"},
        {**result("numa-0", "look", cpu="1"), "adminAccess": True},
    )
    claim = decode(body)

    assert claim.cpus == (
        prepared_claim.CpuShare(request="cpus", device="numa-0", within=CPUS, count=2),
    )
    assert claim.caches == (
        prepared_claim.CacheShare(
            request="cache/wide", device="cache-7", cache=7, ways=4, share_id="s2"
        ),
    )
    assert (claim.uid, claim.holder, claim.since) == ("claim-a", "claim/t/a", 5.0)
    assert claim_status.users(body) == ("uid-p",)
    assert claim.of("t", ("a/cache",), claim.caches)
    assert not claim.of("t", ("a/cache",), claim.cpus)


def test_a_scheduler_that_counts_nothing_gives_a_whole_device() -> None:
    """Before Kubernetes counts shares a claim has the device alone."""
    assert decode(status("a", result("numa-0"))).count == 3


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (status("a", result("numa-9", cpu="1")), "device numa-9 is not offered"),
        (status("a", result("numa-0", cpu="much")), "consumedCapacity cpu of device numa-0"),
        (status("a", result("numa-0", cpu="0")), "cpu of device numa-0: 0 is less than 1"),
        (status("a", result("numa-0", cpu="-2")), "cpu of device numa-0: -2 is less than 1"),
        ({"metadata": {"name": "a", "namespace": "t", "uid": "claim-a"}}, "it is not allocated"),
        (
            status(
                "a",
                result("numa-0", cpu="1"),
                config=[{"opaque": {"driver": prepared_claims.DRIVER, "parameters": {"x": 1}}}],
            ),
            "parameters for this driver",
        ),
    ],
)
def test_what_cannot_be_prepared_is_named(body: Any, why: str) -> None:
    """With the claim, and what to do about it."""
    assert why in refuse(body)


def test_a_claim_of_the_same_name_is_another_one() -> None:
    """The kubelet asked for one that is gone."""
    assert "it was made anew" in refuse(status("a", result("numa-0", cpu="1")), "claim-old")
