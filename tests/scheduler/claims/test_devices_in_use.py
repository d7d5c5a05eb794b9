"""What claims have: whole devices, shares and counters, and all of it given back."""

from __future__ import annotations

from fractions import Fraction

from koordlet.scheduler.claims import devices_in_use, pools
from koordlet.scheduler.objects import resource_slices
from tests.kit import device_claims as kit
from tests.kit.device_claims import held


def test_a_device_is_in_use_until_its_last_claim_has_gone() -> None:
    """Two that have one by mistake are two; each change is noted."""
    in_use, device = devices_in_use.DevicesInUse(), (kit.DRIVER, "p", "a")
    in_use.add(held("a"))
    in_use.add(held("a"))
    in_use.remove(held("a"))
    assert device in in_use.whole
    in_use.remove(held("a"))
    assert device not in in_use.whole
    assert (in_use.changes.end, in_use.changes.since(1)) == (4, [(kit.DRIVER, "p")] * 3)


def test_shares_are_summed_by_name_and_given_back() -> None:
    """A name with a domain is another one."""
    in_use, device = devices_in_use.DevicesInUse(), (kit.DRIVER, "p", "a")
    small = held("a", shareID="1", consumedCapacity={"memory": "500m"})
    large = held("a", shareID="2", consumedCapacity={"memory": "2", "x/memory": "1"})
    in_use.add(small)
    in_use.add(large)
    assert in_use.consumed(device) == {"memory": Fraction(5, 2), "x/memory": 1}
    assert (in_use.shares[device], device in in_use.whole) == (2, False)
    in_use.remove(small)
    assert in_use.consumed(device) == {"memory": 2, "x/memory": 1}
    in_use.remove(large)
    assert (in_use.consumed(device), device in in_use.shares) == ({}, False)


def test_admin_access_marks_nothing() -> None:
    """Whoever watches a device does not have it."""
    in_use = devices_in_use.DevicesInUse()
    in_use.add(held("a", adminAccess=True))
    assert (dict(in_use.whole), in_use.changes.end) == ({}, 0)


def test_counters_are_less_what_devices_of_the_pool_consume_wherever_they_are() -> None:
    """Shares of one device consume once; a device that is gone consumes nothing."""
    book = pools.PoolBook()
    shared = [{"name": "set", "counters": kit.capacity(slots="8", engines="2")}]
    for piece in (
        kit.resource_slice(name="c", pool="p", count=3, node="n1", sharedCounters=shared),
        *(
            kit.resource_slice(
                [kit.device(name, consumesCounters=kit.consumes(slots="3"))],
                name=name,
                pool="p",
                count=3,
                node=node,
            )
            for name, node in (("a", "n1"), ("b", "n2"))
        ),
    ):
        book.put(resource_slices.decode(piece))
    (pool,) = book.view("n1", {}).pools
    in_use = devices_in_use.DevicesInUse()
    for name in ("b", "b", "gone"):
        in_use.add(held(name, shareID="s"))
    free = in_use.free_counters(pool)
    assert free == {("set", "slots"): 5, ("set", "engines"): 2}
    in_use.add(held("a"))
    assert in_use.free_counters(pool)["set", "slots"] == 2
