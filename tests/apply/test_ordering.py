"""Which step comes first: the phases of a plan, and sets that nest. Random trees: test_prefixes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.apply import ordering
from koordlet.model import action, knob
from tests.kit import search
from tests.kit.kernel import KernelHost, Machine

TOP = "/sys/fs/cgroup/cpuset"


def sets(**wanted: str) -> list[action.WriteFile]:
    """Writes of sets by group; ``a__b`` is the group ``b`` in ``a``."""
    return [
        action.WriteFile(
            target=f"{TOP}/{group}/cpuset.cpus",
            value=value,
            policy="p",
            reason="r",
            knob="cpuset.cpus",
            group=group,
        )
        for group, value in ((name.replace("__", "/"), value) for name, value in wanted.items())
    ]


def texts(**there: str) -> Mapping[str, str]:
    """What those files hold."""
    return {write.target: write.value for write in sets(**there)}


def ordered(*given: object, **there: str) -> list[tuple[str, str, bool]]:
    """Group, value, and whether it is on the way only."""
    actions = [write for write in given if isinstance(write, action.WriteFile)]
    return [
        (step.action.group, getattr(step.action, "value", ""), step.interim)
        for step in ordering.order(actions, texts(**there))
    ]


def test_parents_are_widened_before_children() -> None:
    """v1 refuses a child outside its parent."""
    order = ordered(*sets(a__b="0-3", a="0-3"), a="0", a__b="0")

    assert order == [("a", "0-3", False), ("a/b", "0-3", False)]


def test_children_are_narrowed_before_parents() -> None:
    """v1 refuses a parent that drops a CPU of its child."""
    order = ordered(*sets(a="0", a__b="0"), a="0-3", a__b="0-3")

    assert order == [("a/b", "0", False), ("a", "0", False)]


def test_a_set_that_moves_has_both_on_the_way() -> None:
    """Where old and new have nothing in common, the parent has both while its child changes."""
    order = ordered(*sets(a="2-3", a__b="2-3"), a="0-1", a__b="0-1")

    assert order == [("a", "0-3", True), ("a/b", "2-3", False), ("a", "2-3", False)]


def test_a_cpu_is_given_up_before_another_group_gets_it() -> None:
    """Siblings that swap a CPU: the giver comes first, whatever the names."""
    order = ordered(*sets(a__a="0-1", a__z="2"), a__a="0", a__z="1-2")

    assert order == [("a/z", "2", False), ("a/a", "0-1", False)]


def test_a_set_that_reaches_beyond_its_parent_waits_for_it() -> None:
    """v2 takes it, and its tasks would have what the parent is about to lose."""
    order = ordered(*sets(a="0", a__b="0-4"), a="0-1", a__b="0")
    assert order == [("a", "0", False), ("a/b", "0-4", False)]
    order = ordered(*sets(a="0-1", a__b="0-4"), a="0-2", a__b="0")
    assert order == [("a/b", "0-1", True), ("a", "0-1", False), ("a/b", "0-4", False)]


def test_memory_nodes_come_before_cpus() -> None:
    """A v1 group takes no task without memory nodes."""
    mems = action.WriteFile(
        target=f"{TOP}/a/cpuset.mems",
        value="0",
        policy="p",
        reason="r",
        knob="cpuset.mems",
        group="a",
    )
    steps = ordering.order([*sets(a="0"), mems], {})

    assert [step.action.knob for step in steps if isinstance(step.action, action.WriteFile)] == [
        "cpuset.mems",
        "cpuset.cpus",
    ]


def test_groups_are_made_from_the_top_and_removed_from_the_bottom() -> None:
    """Whatever is written comes after the groups are there and before they go."""
    made = [
        action.MakeDir(target=f"{TOP}/{group}", policy="p", reason="r", group=group)
        for group in ("n/m", "n")
    ]
    gone = [
        action.RemoveDir(target=f"{TOP}/{group}", policy="p", reason="r", group=group)
        for group in ("o", "o/p")
    ]
    steps = ordering.order([*gone, *sets(n="0"), *made], {})

    assert [step.action.group for step in steps] == ["n", "n/m", "n", "o/p", "o"]


PERIOD = 100_000
Version = Literal["v1", "v2"]
#: Row name to text.
Files = Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """What a group has and shall have."""

    path: str
    old: Files
    new: Files


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A tree of limits on one cgroup version."""

    version: Version
    groups: tuple[Group, ...]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Trees that a kernel holds before and after: no child has more quota than the one above."""
    version: Version = draw(st.sampled_from(("v1", "v2")))
    caps: dict[str, tuple[int | None, int | None]] = {"": (None, None)}
    groups = []
    for number in range(draw(st.integers(1, 5))):
        # Chains: it is the tree that makes order matter.
        parent = draw(st.sampled_from(sorted(caps)[-2:]))
        path = f"{parent}/g{number}".lstrip("/")
        sides = []
        nearest = []
        for above in caps[parent]:
            files, limit = _files(draw, version, above)
            sides.append(files)
            nearest.append(above if limit is None else limit)
        caps[path] = (nearest[0], nearest[1])
        # A group that idles before and after takes no weight at all.
        if sides[0]["cpu.idle"] == sides[1]["cpu.idle"] == "1":
            sides[1] = {k: v for k, v in sides[1].items() if k not in ("cpu.shares", "cpu.weight")}
        groups.append(Group(path=path, old=sides[0], new=sides[1]))
    return World(version=version, groups=tuple(groups))


def _files(draw: st.DrawFn, version: Version, above: int | None) -> tuple[Files, int | None]:
    # Few values, so that a child often stands just at what the group above gives.
    quota = draw(st.sampled_from((None, 10_000, 20_000, 40_000, 80_000)))
    if quota is not None and above is not None:
        quota = min(quota, above)
    burst = draw(st.integers(0, 4)) * (quota or 40_000) // 4
    shares = draw(st.integers(2, 1000))
    idle = str(draw(st.integers(0, 1)))
    limit = draw(st.none() | st.integers(8, 64).map(lambda n: n << 20))
    more = None if limit is None else limit + (draw(st.integers(0, 8)) << 20)
    if version == "v1":
        return {
            "cpu.cfs_quota_us": "-1" if quota is None else str(quota),
            "cpu.cfs_burst_us": str(burst),
            "cpu.shares": str(shares),
            "cpu.idle": idle,
            "memory.limit_in_bytes": "-1" if limit is None else str(limit),
            "memory.memsw.limit_in_bytes": "-1" if more is None else str(more),
        }, quota
    return {
        "cpu.max": f"{'max' if quota is None else quota} {PERIOD}",
        "cpu.max.burst": str(burst),
        "cpu.weight": str(shares),
        "cpu.idle": idle,
        "memory.min": str(draw(st.integers(0, 4)) << 20),
        "memory.high": "max" if limit is None else str(limit),
        "memory.max": "max" if more is None else str(more),
    }, quota


def path_of(world: World, group: Group, name: str) -> str:
    """The file of a group."""
    if world.version == "v2":
        return f"/sys/fs/cgroup/{group.path}/{name}"
    return f"/sys/fs/cgroup/{name.partition('.')[0]}/{group.path}/{name}"


def build(world: World) -> KernelHost:
    """The machine with the old limits."""
    host = Machine(cpus="0-1", cgroup=world.version)
    for group in world.groups:
        for top in ("cpu", "memory") if world.version == "v1" else ("",):
            where = "/".join(part for part in ("/sys/fs/cgroup", top, group.path) if part)
            host.mkdir(host.at(where))
        if world.version == "v2":
            above = f"/sys/fs/cgroup/{group.path}".rpartition("/")[0]
            host.write(host.at(f"{above}/cgroup.subtree_control"), b"+cpu +memory")
    # A fresh group becomes what it was before in the same way.
    born = replace(world, groups=tuple(replace(g, new=g.old) for g in world.groups))
    for write in plan(born, host):
        host.write(host.at(write.target), write.value.encode())
    return host


def plan(world: World, host: KernelHost) -> list[action.WriteFile]:
    """The ordered writes from what is there."""
    texts: dict[str, str] = {}
    actions = []
    idle = {g.path for g in world.groups if read(host, path_of(world, g, "cpu.idle")) == "1"}
    for group in world.groups:
        for name, text in group.new.items():
            target = path_of(world, group, name)
            texts[target] = read(host, target)
            weight = name in ("cpu.shares", "cpu.weight")
            stays = weight and group.path in idle and group.new["cpu.idle"] == "1"
            # What clears idle sets the usual weight: the right one must follow.
            woken = weight and group.path in idle and group.new["cpu.idle"] == "0"
            if not stays and (woken or not knob.TABLE[name].same(text, texts[target])):
                actions.append(
                    action.WriteFile(
                        target=target,
                        value=text,
                        policy="test",
                        reason="test",
                        knob=name,
                        group=group.path,
                    )
                )
    ordered = [step.action for step in ordering.order(actions, texts)]
    return [wanted for wanted in ordered if isinstance(wanted, action.WriteFile)]


def read(host: KernelHost, path: str) -> str:
    """A file's text."""
    return host.text(host.at(path)).strip()


def converged(world: World, host: KernelHost) -> dict[str, str]:
    """What does not hold its new value, but for weights of groups that idle."""
    return {
        path_of(world, group, name): read(host, path_of(world, group, name))
        for group in world.groups
        for name, text in group.new.items()
        if not (name in ("cpu.shares", "cpu.weight") and group.new["cpu.idle"] == "1")
        and not knob.TABLE[name].same(text, read(host, path_of(world, group, name)))
    }


@search.examples(150)
@hypothesis.given(world=worlds())
def test_the_kernel_takes_every_write_once(world: World) -> None:
    """No write is refused, every file is written at most once, and the new limits hold."""
    host = build(world)
    writes = plan(world, host)
    for write in writes:
        host.write(host.at(write.target), write.value.encode())

    assert len({write.target for write in writes}) == len(writes)
    assert converged(world, host) == {}
    assert plan(world, host) == []


@search.examples(40)
@hypothesis.given(world=worlds(), stop=st.integers(0, 40))
def test_any_interruption_is_repaired(world: World, stop: int) -> None:
    """From every prefix a new plan goes on, accepted write by write, to the same end."""
    host = build(world)
    for write in plan(world, host)[:stop]:
        host.write(host.at(write.target), write.value.encode())
    for write in plan(world, host):
        host.write(host.at(write.target), write.value.encode())

    assert converged(world, host) == {}


@search.examples(150)
@hypothesis.given(world=worlds())
def test_nothing_leaves_what_it_had_and_shall_have(world: World) -> None:
    """After every write, each limit is the old or the new one; memory protections come first."""
    host = build(world)
    before = {
        path_of(world, g, n): read(host, path_of(world, g, n))
        for g in world.groups
        for n in g.new
        if not n.startswith(("cpu.shares", "cpu.weight"))
    }
    after = {path_of(world, g, n): t for g in world.groups for n, t in g.new.items()}
    for write in plan(world, host):
        host.write(host.at(write.target), write.value.encode())
        for path, old in before.items():
            row = knob.TABLE[path.rpartition("/")[2]]
            now = read(host, path)
            assert row.same(old, now) or row.same(after[path], now), (path, old, now)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # Raised: memory and swap first; lowered: memory first.
        (
            {"memory.limit_in_bytes": 8, "memory.memsw.limit_in_bytes": 8},
            {"memory.limit_in_bytes": 16, "memory.memsw.limit_in_bytes": 16},
            ["memory.memsw.limit_in_bytes", "memory.limit_in_bytes"],
        ),
        (
            {"memory.limit_in_bytes": 16, "memory.memsw.limit_in_bytes": 16},
            {"memory.limit_in_bytes": 8, "memory.memsw.limit_in_bytes": 8},
            ["memory.limit_in_bytes", "memory.memsw.limit_in_bytes"],
        ),
        # A group is slowed down before it may be killed.
        (
            {"memory.max": 64, "memory.high": 32, "memory.min": 0},
            {"memory.max": 16, "memory.high": 8, "memory.min": 4},
            ["memory.min", "memory.high", "memory.max"],
        ),
        (
            {"memory.max": 16, "memory.high": 8},
            {"memory.max": 64, "memory.high": 32},
            ["memory.max", "memory.high"],
        ),
        ({"cpu.max.burst": 50, "cpu.max": 100}, {"cpu.max.burst": 10, "cpu.max": 20},
         ["cpu.max.burst", "cpu.max"]),
        ({"cpu.max.burst": 10, "cpu.max": 20}, {"cpu.max.burst": 50, "cpu.max": 100},
         ["cpu.max", "cpu.max.burst"]),
        ({"cpu.idle": 1, "cpu.weight": 0}, {"cpu.idle": 0, "cpu.weight": 50},
         ["cpu.idle", "cpu.weight"]),
        ({"cpu.idle": 0, "cpu.weight": 9}, {"cpu.idle": 1, "cpu.weight": 50},
         ["cpu.weight", "cpu.idle"]),
    ],
)  # fmt: skip
def test_turns_in_one_group(old: dict[str, int], new: dict[str, int], expected: list[str]) -> None:
    """The table of turns, by example."""
    actions = [
        action.WriteFile(
            target=f"/g/{name}", value=str(value), policy="p", reason="r", knob=name, group="g"
        )
        for name, value in reversed(new.items())
    ]
    texts = {f"/g/{name}": str(value) for name, value in old.items()}

    assert [
        step.action.target.rpartition("/")[2] for step in ordering.order(actions, texts)
    ] == expected


def test_a_device_has_its_cost_before_a_weight_on_it() -> None:
    """io.cost.* come before io.weight by rank, wherever the groups are, there and back.

    A weight on a device that io.cost does not know is refused (``v2-io-cost`` of the answers).
    """
    files = {
        knob.IO_WEIGHT: ("8:0 50", "8:0 default"),
        knob.IO_COST_QOS: ("8:0 enable=1", "8:0 enable=0 ctrl=auto"),
        knob.IO_COST_MODEL: ("8:0 ctrl=user", "8:0 ctrl=auto"),
    }
    for direction in (0, 1):
        writes = [
            action.WriteFile(
                target=f"/sys/fs/cgroup/{row.name}",
                value=values[direction],
                policy="test",
                reason="test",
                knob=row.name,
                group="a" if row is not knob.IO_WEIGHT else "",
            )
            for row, values in files.items()
        ]
        done = [step.action.target for step in ordering.order(writes, {})]
        assert [target.rpartition("/")[2] for target in done] == [
            "io.cost.model",
            "io.cost.qos",
            "io.weight",
        ]
