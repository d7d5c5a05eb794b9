"""What a group's values come from: partitions, and a noisy neighbour that is slowed down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from koordlet.history import series
from koordlet.model import qos, resctrl, strain
from koordlet.policy.resctrl import annotation, pressure, values
from koordlet.policy.resctrl import resctrl as policy
from tests.kit import moments
from tests.policy.resctrl import test_resctrl as made

Wish = annotation.Wish
WEB = moments.workload("web", qos.Qos.LS)
NOISY = (
    resctrl.Usage(group="BE", domain="0", total_rate=9e9),
    resctrl.Usage(group="LS", domain="0", total_rate=1e9),
)
BORN = made.group("BE")


def test_classes_live_in_their_partition() -> None:
    """Percentages are of the partition, an annotated pod's too; who is in none has the machine."""
    parts = values.stacked([("latency", 50, 100, ["LS"]), ("batch", 25, 40, ["BE"])])
    settings = policy.Settings(
        classes={
            "BE": Wish(ways=(0, 100), percent=50),
            "LS": Wish(ways=(0, 50), percent=100),
            "LSR": Wish(ways=(0, 100), percent=100),
        },
        partitions=parts,
    )
    own = made.annotated("own", {"llc": {"schemata": {"range": [50, 100]}}})
    decided = made.decide(made.there(), own, made.BATCH, settings=settings)

    assert {
        "/r/BE/schemata": "L3:0=1c0;8=1c0\nMB:0=20;8=20",
        "/r/LS/schemata": "L3:0=7;8=7",
        "/r/LSR/schemata": "L3:0=fff;8=fff",
        f"/r/koordlet-{own.uid}/schemata": "L3:0=38;8=38",
    } == made.texts(decided)


def test_a_partition_that_cannot_be_costs_its_ways() -> None:
    """One way where two are the least: said for each domain, bandwidth is written all the same."""
    hardware = resctrl.Hardware(caches=(replace(made.L3, min_bits=2),), bandwidths=(made.MB,))
    settings = replace(made.BE_ONLY, partitions=values.stacked([("tiny", 5, 100, ["BE"])]))
    decided = made.decide(made.there(hardware=hardware), made.BATCH, settings=settings)

    assert [condition.type for condition in decided.conditions] == ["ResctrlRefused"] * 2
    assert made.texts(decided) == {"/r/BE/schemata": "MB:0=50;8=50"}


EVERYTHING = policy.Settings(classes={"BE": Wish(ways=(0, 100))})


def test_code_and_data_are_in_one_cache() -> None:
    """What a group has exclusively of one the kernel refuses of the other, too."""
    hardware = resctrl.Hardware(
        caches=tuple(replace(made.L3, name=name) for name in ("L3DATA", "L3CODE"))
    )
    alien = made.group("alien", "L3DATA:0=00f;8=001\nL3CODE:0=f00;8=002", "exclusive")
    decided = made.decide(made.there(alien, hardware=hardware), made.BATCH, settings=EVERYTHING)

    assert made.texts(decided) == {"/r/BE/schemata": "L3DATA:0=f0;8=ffc\nL3CODE:0=f0;8=ffc"}


def test_a_pseudo_locked_region_has_its_ways_and_no_class() -> None:
    """The kernel refuses its ways to all others, and took its class of service back."""
    locked = made.group("locked", "L3:0=c00", "pseudo-locked")
    few = resctrl.Hardware(caches=(replace(made.L3, num_closids=2),))
    decided = made.decide(made.there(locked, hardware=few), made.BATCH, settings=EVERYTHING)

    assert made.texts(decided) == {"/r/BE/schemata": "L3:0=3ff;8=fff"}
    assert decided.conditions == ()
    alone = made.decide(
        made.there(replace(locked, mode="pseudo-locksetup"), hardware=few), made.BATCH
    )
    assert [condition.type for condition in alone.conditions] == ["ResctrlNoRoom"]


def test_nobody_is_left_without_a_way() -> None:
    """AMD would take the empty mask, and the group would run without a cache."""
    amd = replace(made.L3, min_bits=0, sparse=True)
    alien = made.group("alien", "L3:0=00f;8=00c", "exclusive")
    hardware = resctrl.Hardware(caches=(amd,))
    decided = made.decide(made.there(alien, hardware=hardware), made.BATCH)

    assert made.texts(decided) == {"/r/BE/schemata": "L3:8=3"}
    assert [condition.message for condition in decided.conditions] == [
        "L3 of domain 0: 0-30 % of 12 ways: exclusive groups have all"
    ]


def moment(
    at: float, waiting: float | None, state: policy.State, *, tighten: bool = True
) -> tuple[policy.State, str]:
    """The state after a decision in which latency-sensitive work waits, and what BE shall have."""
    felt = None if waiting is None else strain.Strain(at=at, waiting=waiting)
    now = replace(
        moments.moment(moments.machine(), (made.BATCH, WEB)),
        at=at,
        strain=felt,
        resctrl=replace(made.there(BORN), usage=NOISY),
    )
    settings = policy.Settings(classes={"BE": Wish(percent=80)}, tighten=tighten)
    decided = policy.decide(now, series.History(), settings, state)
    assert decided.lasting is not tighten
    return decided.next_state, made.texts(decided)["/r/BE/schemata"]


def test_a_noisy_neighbour_is_slowed_down_and_let_go() -> None:
    """One step for each look of the counters; without a signal it stays; at the end it is free."""
    seen, state = [], policy.State()
    for at, waiting in [(10, 1.0), (12, 1.0), (20, 1.0), (30, None), *((t, 0) for t in (40, 50))]:
        state, text = moment(at, waiting, state)
        seen.append(text.partition("=")[2].partition(";")[0])
    assert seen == ["40", "40", "20", "20", "30", "40"]

    text = ""
    for at in (60, 70, 80, 90, 100):
        state, text = moment(at, 0, state)
    assert (text, state.tightened) == ("MB:0=80;8=80", None)


def test_what_is_tightened_outlives_a_restart() -> None:
    """And goes when the option does."""
    state, _ = moment(10, 1.0, policy.State())
    kept = {"unlimited": dict(state.unlimited), "mounted": True, "tightened": 40}
    assert kept == policy.POLICY.saved(state)
    with pytest.raises(ValueError, match="tightened"):
        policy.POLICY.revive({"tightened": 0})

    state, text = moment(20, 1.0, state, tighten=False)
    assert (text, state.tightened) == ("MB:0=80;8=80", None)
    assert pressure.PERIOD == 10
