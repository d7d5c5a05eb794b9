"""Who runs here, in a message that is built once."""

from __future__ import annotations

import dataclasses

from koordlet.model import cgroup
from koordlet.rpc import encode
from tests.kit import views

BASE = views.view(views.pods(3))
KEYS = [workload.key for workload in BASE.snapshot.pods]


def test_use_is_that_of_the_view() -> None:
    """What is used comes, changes and goes, and nothing of an earlier view stays."""
    maker = encode.Workloads()
    uses = [{KEYS[0]: 0.5, KEYS[1]: -1.0}, {KEYS[0]: 0.75}, {}]
    made = [maker.made(dataclasses.replace(BASE, usage=use)) for use in uses]

    used = [
        [w.usage_milli if w.HasField("usage_milli") else None for w in m.workloads] for m in made
    ]
    assert used == [[500, 0, None], [750, None, None], [None, None, None]]


def test_other_pods_and_other_groups() -> None:
    """A pod that comes, and a group on other CPUs, are in the next message."""
    maker = encode.Workloads()
    maker.made(BASE)
    path = BASE.snapshot.pods[0].group or ""
    moved = cgroup.Group(path=path, inode=1, values={"cpuset.cpus": "3"})
    other = {**BASE.snapshot.groups, path: moved}
    on_three = dataclasses.replace(BASE.snapshot, groups=other)
    more = dataclasses.replace(on_three, pods=(*BASE.snapshot.pods, views.workload("late")))

    assert maker.made(dataclasses.replace(BASE, snapshot=on_three)).workloads[0].cpus == "3"
    assert maker.made(dataclasses.replace(BASE, snapshot=more)).workloads[3].name == "late"
