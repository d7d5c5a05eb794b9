"""The policy that makes the demo's groups and moves its processes there."""

from __future__ import annotations

import dataclasses

from koordlet.demo import groups as demo
from koordlet.history import series
from koordlet.model import action, cgroup, decision, snapshot
from tests.kit import moments


def moment(*hierarchies: cgroup.Hierarchy) -> snapshot.Snapshot:
    """A machine with these hierarchies and nothing else."""
    return moments.bare(cgroup.Layout(hierarchies=hierarchies))


def test_one_tree_is_made_in_every_hierarchy_that_counts() -> None:
    """cpuset, cpu and cpuacct, each mount once; other controllers are left alone."""
    joined = cgroup.Hierarchy(mount="/c", unified=False, controllers=frozenset({"cpu", "cpuacct"}))
    sets = cgroup.Hierarchy(mount="/s", unified=False, controllers=frozenset({"cpuset"}))
    other = cgroup.Hierarchy(mount="/p", unified=False, controllers=frozenset({"pids"}))

    made = demo.decide(
        moment(joined, sets, other), series.History(), demo.DemoSettings(), decision.Stateless()
    )

    parts = ("koordlet-demo", "koordlet-demo/ls", "koordlet-demo/be")
    assert {f"{top}/{part}" for top in ("/c", "/s") for part in parts} == {
        made_dir.target for made_dir in made.actions if isinstance(made_dir, action.MakeDir)
    }


def test_processes_are_moved_where_they_were_started() -> None:
    """Where nothing was started, nothing is moved."""
    tree = cgroup.Hierarchy(mount="/u", unified=True, controllers=frozenset({"cpu", "cpuset"}))
    settings = demo.DemoSettings(pids=(("ls", 7),))

    moved, none = (
        [
            (move.target, move.pids)
            for move in demo.decide(
                moment(tree), series.History(), wanted, decision.Stateless()
            ).actions
            if isinstance(move, action.MoveTasks)
        ]
        for wanted in (settings, demo.DemoSettings())
    )

    assert moved == [("/u/koordlet-demo/ls/cgroup.procs", (7,))]
    assert none == []


def test_the_demo_takes_back_what_came_back() -> None:
    """On v1 the demo's own top regains a CPU that was offline; on v2 the kernel sees to it."""
    effective = {"cpuset.cpus.effective": "0-3", "cpuset.mems.effective": "0"}
    groups = {
        "": cgroup.Group(path="", inode=1, values=effective),
        "koordlet-demo": cgroup.Group(path="koordlet-demo", inode=2),
    }
    written = []
    for unified in (False, True):
        tree = cgroup.Hierarchy(mount="/c", unified=unified, controllers=frozenset({"cpuset"}))
        now = dataclasses.replace(moment(tree), groups=groups)
        made = demo.decide(now, series.History(), demo.DemoSettings(), decision.Stateless())
        written.append([o.value for o in made.actions if isinstance(o, action.WriteFile)])

    assert written == [["0-3"], []]
