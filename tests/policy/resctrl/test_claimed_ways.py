"""Ways, groups, bandwidth of claims: what is offered can always be given, and lies in one run."""

from __future__ import annotations

from dataclasses import replace

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import action, pod, prepared_claim, qos, resctrl, schemata, snapshot
from koordlet.policy.resctrl import annotation, claimed_ways
from koordlet.policy.resctrl import resctrl as policy
from tests.kit import moments, prepared_claims
from tests.policy.resctrl.test_resctrl import L3, MB, annotated, group, there

CLASSES = policy.Settings(
    classes={name: annotation.Wish(ways=(0, 100), percent=100) for name in ("BE", "LSR", "LS")}
)
Share = prepared_claim.CacheShare


def share(cache: int, ways: int = 0, percent: int = 0) -> Share:
    """A part of one domain."""
    device = f"cache-{cache}"
    return Share(request="cache", device=device, cache=cache, ways=ways, percent=percent)


def moment(
    control: resctrl.Resctrl | None,
    *claims: prepared_claim.PreparedClaim,
    pods: tuple[pod.Pod, ...],
) -> snapshot.Snapshot:
    """A moment with prepared claims."""
    seen = moments.moment(moments.machine(), pods)
    return replace(seen, resctrl=control, claims=claims)


def amounts(
    control: resctrl.Resctrl | None, ways: int | None = None, groups: int | None = None
) -> dict[int, dict[str, int]]:
    """What is offered of each domain."""
    offered = claimed_ways.offered(moment(control, pods=()), ways, groups)
    return {
        domain: {name: part.value for name, part in capacity.items()}
        for domain, capacity in offered
    }


def values(
    *claims: prepared_claim.PreparedClaim, control: resctrl.Resctrl | None = None
) -> dict[str, schemata.Values]:
    """The schemata that each group shall have, beside a latency-sensitive pod."""
    pods = (moments.workload("ls"),)
    now = moment(control or there(), *claims, pods=pods)
    made = policy.decide(now, series.History(), CLASSES, policy.State())
    texts = moments.written(made.actions)
    return {
        path.split("/")[2]: schemata.parse(text).values
        for path, text in texts.items()
        if path.endswith("/schemata")
    }


def test_groups_are_split_between_the_domains() -> None:
    """Eight groups, of which the root and three classes are four: two for each of two domains."""
    assert amounts(there()) == {
        0: {"groups": 2, "ways": 6, "mbaPercent": 100},
        8: {"groups": 2, "ways": 6, "mbaPercent": 100},
    }


def test_others_groups_and_the_operators_numbers_leave_less() -> None:
    """Three groups for two domains are two and one; a domain without a group is not offered."""
    foreign = there(group("theirs"), group("BE"), group("koordlet-u1"))
    assert {d: part["groups"] for d, part in amounts(foreign).items()} == {0: 2, 8: 1}
    locked = there(group("theirs", mode="pseudo-locked"))
    assert amounts(locked) == amounts(there()), "it has given its class of service back"
    assert amounts(there(), ways=3, groups=1) == {0: {"groups": 1, "ways": 3, "mbaPercent": 100}}
    assert amounts(there(), groups=0) == {}


@pytest.mark.parametrize(
    ("hardware", "expected"),
    [
        (resctrl.Hardware(caches=(L3,)), {"groups": 6, "ways": 6}),
        (resctrl.Hardware(caches=(replace(L3, min_bits=4),)), {"groups": 6, "ways": 4}),
        (resctrl.Hardware(bandwidths=(MB,)), {"groups": 2, "mbaPercent": 100}),
    ],
)
def test_what_a_machine_lacks_is_not_offered(
    hardware: resctrl.Hardware, expected: dict[str, int]
) -> None:
    """Ways in steps of what a mask needs."""
    assert amounts(there(hardware=hardware))[0] == expected


def test_a_machine_without_control_offers_nothing() -> None:
    """Nor one whose files cannot be written."""
    assert amounts(None) == {}
    assert amounts(replace(there(), writable=False)) == {}


def test_a_claims_ways_are_nobody_elses() -> None:
    """Four of domain 0 from the top; the next claim below; everybody else without them."""
    first = prepared_claims.claim("a", share(0, ways=4, percent=30))
    second = prepared_claims.claim("b", share(0, ways=2), share(8, ways=3), since=2.0)
    made = values(first, second)

    assert made["koordlet-claim-claim-a"] == {
        "L3": {0: 0xF00, 8: 0x1FF},
        "MB": {0: 30},
    }
    assert made["koordlet-claim-claim-b"] == {"L3": {0: 0x0C0, 8: 0xE00}}
    assert made["LS"]["L3"] == {0: 0x03F, 8: 0x1FF}
    assert values(second)["koordlet-claim-claim-b"] == {"L3": {0: 0xC00, 8: 0xE00}}


def test_a_claim_of_bandwidth_alone_takes_no_ways() -> None:
    """A cap in its own group, on the ways of everybody."""
    made = values(prepared_claims.claim("a", share(8, percent=20)))

    assert made["koordlet-claim-claim-a"] == {"L3": {0: 0xFFF, 8: 0xFFF}, "MB": {8: 20}}
    assert made["LS"]["L3"] == {0: 0xFFF, 8: 0xFFF}


def test_a_pod_that_asks_for_bandwidth_leaves_the_ways_of_others_alone() -> None:
    """Its own group is born with all ways: those of a claim are none of them."""
    claim = prepared_claims.claim("a", share(0, ways=4))
    pods = (annotated("p", {"mb": {"schemata": {"percent": 20}}}),)
    now = moment(there(), claim, pods=pods)
    made = policy.decide(now, series.History(), CLASSES, policy.State())
    written = moments.written(made.actions)["/r/koordlet-uid-p/schemata"]

    assert written == "L3:0=ff;8=fff\nMB:0=20;8=20"


def test_threads_of_a_container_go_to_the_group_of_its_claim() -> None:
    """Those of the sidecar to the class of the pod."""
    user = prepared_claims.using("p", {"main": ("a/cache",), "side": ("b",)}, kind=qos.Qos.LS)
    homes: dict[str, dict[str, tuple[int, ...]]] = {
        "p": {"": (1,)},
        "p/main": {"": (2, 3)},
        "p/side": {"": (4,)},
    }
    claims = (prepared_claims.claim("a", share(0, ways=2)),)
    names = ("LS", "LSR", "BE", "koordlet-claim-claim-a")
    now = moment(replace(there(*map(group, names)), homes=homes), *claims, pods=(user,))
    made = policy.decide(now, series.History(), CLASSES, policy.State())
    moved = {
        did.target.split("/")[2]: did.pids
        for did in made.actions
        if isinstance(did, action.MoveTasks)
    }

    assert moved == {"LS": (1, 4), "koordlet-claim-claim-a": (2, 3)}
    settings = replace(CLASSES, runtime_classes=True)
    answers = [
        policy.admit(now, settings, policy.State(), user, box).resctrl_class
        for box in ("main", "side")
    ]
    assert answers == ["koordlet-claim-claim-a", "LS"]


def test_a_claim_on_a_domain_that_is_gone_is_told() -> None:
    """All CPUs of a cache are offline: the claim hears it, its other domain is as ever."""
    claim = prepared_claims.claim("a", share(0, ways=2), share(5, ways=2))
    now = moment(there(), claim, pods=(moments.workload("ls"),))
    made = policy.decide(now, series.History(), CLASSES, policy.State())

    assert [(c.type, c.subject) for c in made.conditions] == [("ResctrlRefused", "claim/t/a")]


ASKED = st.lists(st.tuples(st.sampled_from([0, 8]), st.integers(0, 6)), max_size=12)


@hypothesis.given(asked=ASKED, ways=st.none() | st.integers(0, 12), closids=st.integers(1, 16))
def test_whatever_a_scheduler_allocates_can_be_made(
    asked: list[tuple[int, int]], ways: int | None, closids: int
) -> None:
    """Claims within the capacities: each has a group, one run of ways, and shares none of them."""
    cache = replace(L3, num_closids=closids)
    hardware = resctrl.Hardware(caches=(cache,), bandwidths=())
    left = amounts(there(hardware=hardware), ways=ways)
    claims = []
    for number, (domain, wish) in enumerate(asked):
        room = left.get(domain, {"groups": 0})
        if room["groups"] and room.get("ways", 0) >= wish:
            room["groups"] -= 1
            room["ways"] = room.get("ways", 0) - wish
            claims.append(
                prepared_claims.claim(f"c{number}", share(domain, ways=wish), since=number)
            )
    made = values(*claims, control=there(hardware=hardware))

    for domain in (0, 8):
        taken = 0
        for claim in claims:
            [part] = claim.caches
            mask = made[claim.control_group]["L3"][domain]
            if part.cache == domain and part.ways:
                assert mask.bit_count() == part.ways
                assert mask & taken == 0
                low = mask & -mask
                assert (mask + low) & mask == 0
                taken |= mask
        for name, texts in made.items():
            alone = [c for c in claims if c.control_group == name and c.caches[0].ways]
            if not (alone and alone[0].caches[0].cache == domain):
                assert texts["L3"][domain] & taken == 0
