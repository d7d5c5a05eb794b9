"""Where best-effort work is, and one budget for several places."""

from __future__ import annotations

import dataclasses
import itertools

import hypothesis
from hypothesis import strategies as st

from koordlet.model import cpuset, pod
from koordlet.policy.best_effort import groups
from koordlet.policy.framework import proposals
from tests.kit import colocation, moments
from tests.kit.colocation import KubeQos, Qos

EIGHT = moments.machine(1, 8, threads=1)


def test_the_tier_is_one_place_and_what_is_inside_belongs_to_it() -> None:
    """Pods of the tier, declared workloads of their own, none that ended or has no group."""
    pods = [
        colocation.kube("a", KubeQos.BEST_EFFORT),
        colocation.kube("b", KubeQos.BEST_EFFORT, Qos.BE),
        colocation.kube("c", KubeQos.BURSTABLE, Qos.BE),
        colocation.declared("job", Qos.BE),
        colocation.declared("inner", Qos.BE, group="job/inner"),
        colocation.declared("gone", Qos.BE, group=None),
        colocation.declared("web", Qos.LS),
    ]
    places = groups.places(colocation.moment(EIGHT, pods))

    assert [(place.group, place.tier) for place in places] == [
        ("job", False),
        (colocation.TIER, True),
    ]


def test_a_set_outside_of_the_one_above_is_said_not_written() -> None:
    """The kernel would refuse it on v1 and hand out the whole parent on v2."""
    now = colocation.moment(EIGHT, [colocation.declared("job", Qos.BE)])
    narrow = dataclasses.replace(now, groups={**now.groups, "": moments.group("", "0-3")})
    there = groups.places(now)
    proposal = proposals.Proposal("x", narrow)
    problems = groups.limit_sets(proposal, there, cpuset.CPUSet.parse("6-7"), "because")

    assert proposal.actions == []
    assert problems == ["t/job: CPUs 6-7 are outside its parent cgroup's CPUs 0-3"]


def test_groups_nested_deeper_than_calls() -> None:
    """On v1 each group inside is limited, however a workload nests them."""
    deep = ["job" + "/n" * depth for depth in range(1, 1200)]
    now = colocation.moment(EIGHT, [colocation.declared("job", Qos.BE)])
    inside = {path: moments.group(path, "0-7") for path in deep}
    now = dataclasses.replace(now, groups={**now.groups, **inside})
    proposal = proposals.Proposal("x", now)
    problems = groups.limit_sets(
        proposal, groups.places(now), cpuset.CPUSet.parse("6-7"), "because"
    )

    assert problems == []
    assert [action.group for action in proposal.actions] == ["job", *deep]


def test_where_limits_of_sensitive_work_are_counted() -> None:
    """In the pod's group and in each container's; never in those of best-effort work."""
    web = colocation.kube("web", KubeQos.BURSTABLE, Qos.LS)
    boxes = tuple(pod.Container(name=name, group=f"{web.group}/{name}") for name in ("a", "b"))
    web = dataclasses.replace(web, containers=(*boxes, pod.Container(name="not begun")))
    job = colocation.kube("job", KubeQos.BEST_EFFORT, Qos.BE)

    counted = groups.sensitive_groups((web, job))

    assert [web.group, f"{web.group}/a", f"{web.group}/b"] == counted


def test_declared_groups_yield_and_the_kubelet_s_are_left() -> None:
    """Weight and ``cpu.idle`` of every declared workload; the kubelet writes its own weights."""
    now = colocation.moment(
        EIGHT, [colocation.declared("job", Qos.BE), colocation.kube("a", KubeQos.BEST_EFFORT)]
    )
    writes = groups.yielding(now, groups.places(now), "x", "because")

    assert [write.target for write in writes] == ["/c/cpu/job/cpu.shares", "/c/cpu/job/cpu.idle"]


@hypothesis.given(
    total=st.integers(-5_000, 64_000),
    used=st.dictionaries(st.text("abcdef", min_size=1), st.integers(0, 64_000), min_size=1),
)
def test_parts_of_a_budget(total: int, used: dict[str, int]) -> None:
    """Never more than there is beyond the least of each; nobody who wants more has less."""
    parts = groups.split(total, used, 20)

    assert used.keys() == parts.keys()
    assert sum(parts.values()) <= max(0, total) + 20 * len(used)
    assert min(parts.values()) >= 20
    ordered = sorted(used, key=lambda name: used[name])
    for less, more in itertools.pairwise(ordered):
        assert parts[less] <= parts[more] or used[less] == used[more]
    if total > 20 * len(used):
        assert sum(parts.values()) >= total
