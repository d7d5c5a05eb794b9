"""Groups, values and threads of resource control, decided from a moment."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from koordlet.history import series
from koordlet.model import (
    absence,
    action,
    decision,
    nodeslo,
    pod,
    qos,
    resctrl,
    schemata,
    strategies,
)
from koordlet.policy.resctrl import annotation
from koordlet.policy.resctrl import resctrl as policy
from tests.kit import moments

L3 = resctrl.Cache(name="L3", mask=0xFFF, num_closids=16, domains=(0, 8))
MB = resctrl.Bandwidth(
    name="MB",
    unit=resctrl.Unit.PERCENT,
    gran=10,
    minimum=10,
    num_closids=8,
    domains=(0, 8),
    unlimited={0: 100, 8: 100},
)
FULL = "MB:0=100;8=100\nL3:0=fff;8=fff\n"
Wish = annotation.Wish
Decided = decision.Decision[policy.State]
BE_ONLY = policy.Settings(classes={"BE": Wish(ways=(0, 30), percent=45)})


def group(name: str, text: str = FULL, mode: str = "shareable") -> resctrl.Group:
    """One group of the file system."""
    return resctrl.Group(name=name, inode=len(name) + 2, schemata=text, mode=mode)


def there(*groups: resctrl.Group, hardware: resctrl.Hardware | None = None) -> resctrl.Resctrl:
    """A mounted file system with the root and some groups."""
    return resctrl.Resctrl(
        mount="/r",
        hardware=hardware or resctrl.Hardware(caches=(L3,), bandwidths=(MB,)),
        groups={made.name: made for made in (group(""), *groups)},
    )


def decide(
    now: resctrl.Resctrl | None,
    *pods: pod.Pod,
    settings: policy.Settings = BE_ONLY,
    state: policy.State | None = None,
    why: str = "",
) -> Decided:
    """One decision."""
    gaps = (absence.Unsupported("resctrl", why),) if why else ()
    seen = replace(moments.moment(moments.machine(), pods), resctrl=now, unsupported=gaps)
    return policy.decide(seen, series.History(), settings, state or policy.State())


def texts(decided: Decided) -> dict[str, str]:
    """What each file shall say."""
    return moments.written(decided.actions)


def annotated(name: str, wish: object, kind: qos.Qos = qos.Qos.LS) -> pod.Pod:
    """A pod that asks for a group of its own."""
    text = wish if isinstance(wish, str) else json.dumps(wish)
    return moments.workload(name, kind, annotations={annotation.KEY: text})


BATCH = moments.workload("batch", qos.Qos.BE)


def test_a_class_gets_its_ways_and_bandwidth() -> None:
    """30 % of 12 ways are four; 45 % of the bandwidth is the next step, 50."""
    made = decide(there(), BATCH)

    assert texts(made) == {"/r/BE/schemata": "L3:0=f;8=f\nMB:0=50;8=50"}
    assert made.conditions == ()


def test_without_workloads_nothing_is_made() -> None:
    """A bare host has an empty plan."""
    assert decide(there()).actions == ()


def test_a_new_group_is_not_told_that_it_has_no_limit() -> None:
    """It is born without one; once it is there, its own file says what that is."""
    free = policy.Settings(classes={"LS": Wish(percent=100)})

    assert texts(decide(there(), BATCH, settings=free)) == {}
    born = decide(there(group("LS", "MB:0=50;8=100\nL3:0=fff;8=fff")), BATCH, settings=free)
    assert texts(born) == {"/r/LS/schemata": "MB:0=100;8=100"}


@pytest.mark.parametrize(("start", "end"), [(50, 30), (0, 130), (-1, 50), (40, 40), (9, 12)])
def test_a_bad_range_costs_itself(start: int, end: int) -> None:
    """Reversed, beyond 100, empty, not one way: said once for each cache, bandwidth is written."""
    classes = {"BE": Wish(ways=(start, end), percent=50), "LS": Wish(ways=(0, 50))}
    decided = decide(there(), BATCH, settings=policy.Settings(classes=classes))
    bad = {c.subject for c in decided.conditions if c.type == "ResctrlRefused"}

    assert texts(decided)["/r/LS/schemata"] == "L3:0=3f;8=3f"
    assert (bad, texts(decided)["/r/BE/schemata"]) == ({"class BE"}, "MB:0=50;8=50")


def test_too_few_classes_are_given_in_order() -> None:
    """BE first, then LSR, LS, pods; who loses stays where it was, and that is said."""
    few = resctrl.Hardware(caches=(replace(L3, num_closids=4),))
    settings = policy.Settings()
    lonely = annotated("p", {"llc": {"schemata": {"range": [0, 50]}}})
    decided = decide(there(group("alien"), hardware=few), BATCH, lonely, settings=settings)
    made = [a.target for a in decided.actions if isinstance(a, action.MakeDir)]

    assert made == ["/r/BE", "/r/LSR"]
    lost = [c.message for c in decided.conditions if c.type == "ResctrlNoRoom"]
    assert [message.partition(":")[0] for message in lost] == [
        "no resctrl group LS",
        "no resctrl group koordlet-uid-p",
    ]


def test_a_pod_has_a_group_of_its_own() -> None:
    """From its annotation, with another value in one cache; a cache that is not there is said."""
    wish = {
        "LLC": {
            "schemata": {"range": [0, 50]},
            "schemataPerCache": [
                {"cacheID": 8, "range": [50, 100]},
                {"cacheID": 3, "range": [0, 1]},
            ],
        },
        "mb": {"schemata": {"percent": 20}},
    }
    decided = decide(there(), annotated("p", wish), settings=policy.Settings(classes={}))

    assert texts(decided) == {"/r/koordlet-uid-p/schemata": "L3:0=3f;8=fc0\nMB:0=20;8=20"}
    assert [c.message for c in decided.conditions] == ["L3: there is no cache 3"]


@pytest.mark.parametrize("text", ["{", "[]", '"x"', "{}", '{"llc": 5}', '{"mb": {"schemata": {}}}'])
def test_a_bad_annotation_costs_its_pod(text: str) -> None:
    """One explained condition, no group, and the class is served."""
    decided = decide(there(), annotated("p", text), BATCH)

    assert {c.subject for c in decided.conditions if c.type == "MalformedPod"} == {"t/p"}
    assert texts(decided).keys() == {"/r/BE/schemata"}


def test_threads_go_to_their_class() -> None:
    """Those in the root and in other groups of ours move; those in a foreign group stay."""
    homes = {"batch": {"": (5, 6), "LS": (7,), "alien": (8,), "BE": (9,)}}
    now = replace(
        there(group("BE"), group("LS"), group("alien")),
        homes=homes,
        threads={"batch": ("/c/batch/tasks",)},
    )
    settings = policy.Settings(classes={"BE": Wish(ways=(0, 50)), "LS": Wish(ways=(0, 100))})
    decided = decide(now, BATCH, settings=settings)
    moves = [a for a in decided.actions if isinstance(a, action.MoveTasks)]

    assert [(move.target, move.pids) for move in moves] == [("/r/BE/tasks", (5, 6, 7))]
    assert moves[0].taken_from == ("/r/tasks", "/r/LS/tasks")
    assert [c.type for c in decided.conditions] == ["ResctrlForeignGroup"]


def test_an_exclusive_groups_ways_are_left_to_it() -> None:
    """The kernel would refuse them, so the rest is asked for."""
    alien = group("alien", "L3:0=003;8=00c\nMB:0=100;8=100", "exclusive")
    decided = decide(there(alien, group("BE")), BATCH)

    assert schemata.parse(texts(decided)["/r/BE/schemata"]).values == {
        "L3": {0: 0xC, 8: 0x3},
        "MB": {0: 50, 8: 50},
    }


def test_unmounted_under_us_is_said() -> None:
    """One condition, no action; with mounting allowed it is mounted again."""
    was = policy.State(mounted=True)
    decided = decide(None, BATCH, state=was)
    again = decide(None, BATCH, state=was, settings=policy.Settings(mount=True))

    assert ([c.type for c in decided.conditions], decided.actions) == (["ResctrlUnmounted"], ())
    assert [act.target for act in again.actions] == ["/sys/fs/resctrl"]


def test_mounting_needs_to_be_asked_for() -> None:
    """With the options that were asked for, and only where there is something to mount."""
    asked = policy.Settings(mount=True, mount_options=("cdp",))
    why = "not mounted; policies.resctrl.mount lets koordlet mount it"
    actions = decide(None, BATCH, settings=asked, why=why).actions

    assert [(act.target, act.options) for act in actions if isinstance(act, action.Mount)] == [
        ("/sys/fs/resctrl", "cdp")
    ]
    assert decide(None, BATCH, why=why).actions == ()
    assert decide(None, BATCH, settings=asked, why="no such processor").actions == ()


def test_somebody_elses_mount_options_stand() -> None:
    """They are respected and said."""
    asked = policy.Settings(classes={}, mount=True, mount_options=("cdp",))

    decided = decide(there(), BATCH, settings=asked)
    assert [c.type for c in decided.conditions] == ["ResctrlMountOptions"]


def test_a_state_survives_its_checkpoint() -> None:
    """What no limit is was learned from fresh groups; nonsense is refused."""
    state = policy.State(mounted=True, unlimited={"MB:0": 4096})
    assert state == policy.POLICY.revive({"mounted": True, "unlimited": {"MB:0": 4096}})
    with pytest.raises(ValueError, match="unlimited"):
        policy.POLICY.revive({"unlimited": {"MB:0": "x"}})


def test_equal_moments_give_equal_decisions() -> None:
    """Byte for byte."""
    now = there(group("BE"), group("LS"))

    assert repr(decide(now, BATCH)) == repr(decide(now, BATCH))


def test_ways_for_nobody_else() -> None:
    """The highest ones, of every cache; classes go without them, a second pod gets the next."""
    alone = annotated("db", {"llc": {"ways": 4}})
    other = annotated("web", {"llc": {"ways": 2}})
    classes = policy.Settings(classes={"LS": Wish(ways=(0, 100)), "BE": Wish(ways=(0, 100))})
    written = texts(decide(there(), alone, other, BATCH, settings=classes))

    assert written["/r/koordlet-uid-db/schemata"] == "L3:0=f00;8=f00"
    assert written["/r/koordlet-uid-web/schemata"] == "L3:0=c0;8=c0"
    assert written["/r/LS/schemata"] == written["/r/BE/schemata"] == "L3:0=3f;8=3f"


@pytest.mark.parametrize("ways", [12, 99])
def test_all_ways_are_for_nobody(ways: int) -> None:
    """Somebody else has to have one."""
    made = decide(there(), annotated("db", {"llc": {"ways": ways}}))

    assert ("ResctrlRefused", "t/db") in [(c.type, c.subject) for c in made.conditions]


@pytest.mark.parametrize("ways", [0, -1, "4", 1.5])
def test_a_number_of_ways_that_is_none(ways: object) -> None:
    """Said as any other mistake in the annotation."""
    assert annotation.parse(json.dumps({"llc": {"ways": ways}}))[1]


def slo(name: str, **fields: Any) -> nodeslo.NodeSlo:
    """What the control plane wants of one class."""
    asked = strategies.ClassQos(resctrl=strategies.ResctrlQos(**fields))
    return replace(
        nodeslo.DEFAULTS,
        source="NodeSLO",
        classes={**nodeslo.DEFAULTS.classes, name: nodeslo.in_force(name, asked)},
    )


def test_the_control_plane_counts() -> None:
    """Only classes that it enables have a group, with its values over the peer's defaults."""
    seen = replace(moments.moment(moments.machine(), [BATCH]), resctrl=there())
    enabled = replace(seen, slo=slo("BE", enable=True, mba_percent=20))
    made = policy.decide(enabled, series.History(), policy.Settings(), policy.State())
    assert texts(made) == {"/r/BE/schemata": "L3:0=f;8=f\nMB:0=20;8=20"}

    off = replace(seen, slo=slo("BE", enable=False, mba_percent=20))
    assert policy.decide(off, series.History(), policy.Settings(), policy.State()).actions == ()
    nobody = replace(seen, slo=nodeslo.DEFAULTS)
    assert texts(policy.decide(nobody, series.History(), BE_ONLY, policy.State()))


def test_a_reversed_range_of_the_control_plane() -> None:
    """It is refused as any other, and the bandwidth is written all the same."""
    seen = replace(
        moments.moment(moments.machine(), [BATCH]),
        resctrl=there(),
        slo=slo("BE", enable=True, cat_range_start_percent=50, cat_range_end_percent=10),
    )
    made = policy.decide(seen, series.History(), policy.Settings(), policy.State())

    assert {c.type for c in made.conditions} == {"ResctrlRefused"}


def test_slow_memory() -> None:
    """It is limited where somebody said how fast it is, with its own reference."""
    slow = resctrl.Bandwidth(
        name="SMBA",
        unit=resctrl.Unit.EIGHTHS,
        gran=1,
        minimum=1,
        num_closids=8,
        domains=(0,),
        unlimited={0: 2048},
    )
    hardware = resctrl.Hardware(bandwidths=(slow,))
    quiet = decide(there(hardware=hardware), BATCH)
    assert texts(quiet) == {}
    made = decide(there(hardware=hardware), BATCH, settings=replace(BE_ONLY, slow_bandwidth=10.0))
    assert texts(made) == {"/r/BE/schemata": "SMBA:0=36"}


@pytest.mark.parametrize(
    ("kind", "groups", "expected"),
    [
        (qos.Qos.BE, ("BE",), "BE"),
        (qos.Qos.LSE, ("LSR",), "LSR"),
        (qos.Qos.LS, ("BE",), None),
        (qos.Qos.SYSTEM, ("BE",), None),
        (qos.Qos.LS, ("LS", "koordlet-uid-new"), "koordlet-uid-new"),
    ],
)
def test_a_container_s_class(kind: qos.Qos, groups: tuple[str, ...], expected: str | None) -> None:
    """The group of its pod, else of its class, and only one that is there."""
    newcomer = moments.workload("new", kind)
    now = moments.moment(moments.machine(), [newcomer])
    seen = replace(now, resctrl=there(*map(group, groups)))
    asked = replace(BE_ONLY, runtime_classes=True)

    assert policy.admit(seen, asked, policy.State(), newcomer, "main").resctrl_class == expected
    assert policy.admit(seen, BE_ONLY, policy.State(), newcomer, "main").empty
    bare = replace(seen, resctrl=None)
    assert policy.admit(bare, asked, policy.State(), newcomer, "main").empty


@pytest.mark.parametrize(
    ("hardware", "group"),
    [
        (resctrl.Hardware(caches=(replace(L3, name="L2"),)), group("BE")),
        (resctrl.Hardware(caches=(replace(L3, name="L3CODE"),)), group("BE")),
        (resctrl.Hardware(caches=(L3,)), replace(group("BE"), mode="pseudo-locked")),
    ],
    ids=["L2 alone", "CDP without bandwidth", "takes no tasks"],
)
def test_a_class_with_which_a_container_would_not_start(
    hardware: resctrl.Hardware, group: resctrl.Group
) -> None:
    """It starts without, and its tasks are moved as far as that is possible."""
    newcomer = moments.workload("new", qos.Qos.BE)
    seen = replace(
        moments.moment(moments.machine(), [newcomer]), resctrl=there(group, hardware=hardware)
    )
    asked = replace(BE_ONLY, runtime_classes=True)

    assert policy.admit(seen, asked, policy.State(), newcomer, "main").empty


MONITORED = resctrl.Hardware(
    caches=(L3,),
    bandwidths=(MB,),
    monitoring=resctrl.Monitoring(features=("llc_occupancy",), num_rmids=12),
)


def test_pods_are_counted_while_there_are_rmids() -> None:
    """Best-effort pods first; every control group that may come keeps its own RMID."""
    pods = [moments.workload(f"b{n}", qos.Qos.BE) for n in range(4)]
    pods.append(moments.workload("a", qos.Qos.LS))
    both = replace(BE_ONLY, classes={**BE_ONLY.classes, "LS": Wish()}, pod_monitoring=True)
    now = there(group("BE"), group("LS"), hardware=MONITORED)
    decided = decide(now, *pods, settings=both)
    folders = [a.target for a in decided.actions if isinstance(a, action.MakeDir)]
    made = [folder for folder in folders if "mon" in folder]

    assert 12 - MONITORED.most_groups - 3 == len(made)
    assert all(target.startswith("/r/BE/mon_groups/koordlet-") for target in made)
    few = decide(now, *pods, settings=replace(both, most_monitors=0))
    assert not [a for a in few.actions if "mon_groups" in a.target]
    plain = decide(there(group("BE")), *pods, settings=both)
    assert not [a for a in plain.actions if "mon_groups" in a.target]


def test_a_counted_pod_s_threads() -> None:
    """Once its group is there its threads move in, from its own control group only."""
    counted_pod = moments.workload("b", qos.Qos.BE)
    here = replace(group("BE"), monitors=(f"koordlet-{counted_pod.uid}",))
    now = replace(
        there(here, hardware=MONITORED),
        homes={"b": {"BE": (5,), "": (6,)}},
        threads={"b": ("/c/b/tasks",)},
    )
    decided = decide(now, counted_pod, settings=replace(BE_ONLY, pod_monitoring=True))
    moves = {a.target: a for a in decided.actions if isinstance(a, action.MoveTasks)}
    counted = moves[f"/r/BE/mon_groups/koordlet-{counted_pod.uid}/tasks"]

    assert (counted.pids, counted.taken_from) == ((5,), ("/r/BE/tasks",))
