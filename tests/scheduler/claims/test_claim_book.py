"""The newest value of a claim counts, a promise holds devices, and no device is had twice."""

from __future__ import annotations

import dataclasses

from koordlet.scheduler.claims import claim_book
from koordlet.scheduler.objects import resource_claims
from tests.kit import device_claims as kit
from tests.kit.device_claims import held

KEY = ("d", "c")
DEVICE = (kit.DRIVER, "p", "a")


def claim(
    version: str = "", *, devices: bool = False, uid: str = "u"
) -> resource_claims.ResourceClaim:
    """A claim at a revision, with device ``a`` or without."""
    made = resource_claims.decode(kit.claim(kit.request()))
    allocation = held("a") if devices else None
    return dataclasses.replace(made, uid=uid, resource_version=version, allocation=allocation)


def book(*claims: resource_claims.ResourceClaim) -> claim_book.ClaimBook:
    """A book that the store has shown these."""
    made = claim_book.ClaimBook()
    for each in claims:
        made.put(each)
    return made


def test_what_was_written_counts_until_the_store_shows_it_or_something_later() -> None:
    """An older event that comes late takes no devices away."""
    claims = book(claim("1"))
    claims.wrote(claim("3", devices=True))
    claims.put(claim("2"))
    assert claims.allocation(KEY) == held("a")
    assert DEVICE in claims.in_use.whole
    claims.put(claim("10"))
    assert claims.allocation(KEY) is None
    assert DEVICE not in claims.in_use.whole


def test_an_answer_that_comes_after_its_event_changes_nothing() -> None:
    """The store has shown something later by then."""
    claims = book(claim("5", devices=True))
    claims.wrote(claim("4"))
    assert claims.allocation(KEY) == held("a")


def test_revisions_that_are_no_numbers_lose_no_devices() -> None:
    """As in a simulation, which has none."""
    claims = book(claim())
    claims.make_promise(claim(), held("a"), "pod")
    claims.put(claim(devices=True))
    assert DEVICE in claims.in_use.whole
    claims.withdraw("pod")
    assert DEVICE in claims.in_use.whole


def test_another_claim_of_the_name_is_another_claim() -> None:
    """Whatever was promised or written to the former is free."""
    claims = book(claim("1"))
    claims.wrote(claim("9", devices=True))
    claims.put(claim("2", uid="other"))
    assert claims.allocation(KEY) is None
    claims = book(claim("1"))
    claims.make_promise(claim("1"), held("a"), "pod")
    claims.put(claim("2", uid="other"))
    assert claims.allocation(KEY) is None
    assert DEVICE not in claims.in_use.whole


def test_a_promise_lasts_until_nobody_counts_on_it() -> None:
    """Two pods share it; a claim that is gone ends it for both."""
    claims = book(claim("1"))
    claims.make_promise(claim("1"), held("a"), "one")
    claims.count_on(KEY, "two")
    claims.withdraw("one")
    assert DEVICE in claims.in_use.whole
    claims.withdraw("two")
    assert DEVICE not in claims.in_use.whole
    claims.make_promise(claim("1"), held("a"), "one")
    claims.drop(KEY)
    assert DEVICE not in claims.in_use.whole
    claims.withdraw("one")
    assert list(claims) == []


def test_a_claim_that_is_made_has_the_promise_of_the_one_without_a_uid() -> None:
    """Its device is in use all the while; the pod that gives up frees it."""
    plain = dataclasses.replace(claim(uid=""), name="p-", owner_uid="pod", is_extended=True)
    made = dataclasses.replace(plain, name="p-x", uid="u")
    claims = book()
    claims.wrote(plain)
    claims.make_promise(plain, held("a"), "pod")
    assert claims.extended("pod") is plain
    claims.put(made)
    claims.made(plain, made)
    assert claims.extended("pod") is made
    assert [each.name for each in claims] == ["p-x"]
    assert claims.allocation(("d", "p-x")) == held("a")
    assert claims.in_use.whole[DEVICE] == 1
    claims.withdraw("pod")
    assert DEVICE not in claims.in_use.whole
    claims.drop(("d", "p-x"))
    assert claims.extended("pod") is None


def test_a_revision_that_was_seen_is_not_read_a_second_time() -> None:
    """An answer and the watch show each write; another revision or claim is another value."""
    claims = book()
    body = kit.claim(kit.request())
    body["metadata"] |= {"uid": "u", "resourceVersion": "7"}
    first = claims.read(body)
    for seen in (claims.wrote, claims.put):
        seen(first)
        assert claims.read(body) is first
        claims.drop(KEY)
    claims.put(first)
    for other in ({"uid": "v"}, {"resourceVersion": "8"}, {"resourceVersion": ""}):
        fresh = claims.read({**body, "metadata": {**body["metadata"], **other}})
        assert fresh is not first
        assert (fresh.uid, fresh.resource_version) == (
            other.get("uid", "u"),
            other.get("resourceVersion", "7"),
        )
    del body["metadata"]["resourceVersion"]
    unversioned = claims.read(body)
    claims.put(unversioned)
    assert claims.read(body) is not unversioned
