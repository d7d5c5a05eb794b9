"""Limits of block devices, decided from a moment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from koordlet.history import series
from koordlet.model import blocks, cgroup, decision, nodeslo, pod, qos, strategies, wishes
from koordlet.policy.memory_io import blkio_qos as policy
from tests.kit import moments

V1 = cgroup.Layout(
    hierarchies=(
        cgroup.Hierarchy(
            mount="/b", unified=False, controllers=frozenset({"blkio"}),
            lacks=frozenset({"blkio.cost.weight"}),
        ),
    )
)  # fmt: skip
V2 = cgroup.Layout(
    hierarchies=(
        cgroup.Hierarchy(mount="/u", unified=True, controllers=frozenset({"io", "cpuset"})),
    )
)
DEVICES = blocks.Blocks(
    devices=(
        blocks.Block(name="sda", number="8:0"),
        blocks.Block(name="sda1", number="8:1", disk="sda"),
        blocks.Block(name="sdb", number="8:16"),
        blocks.Block(
            name="dm-0", number="253:0", mapped="fast-data", volume_group="fast", below=("sda1",)
        ),
    ),
    volumes={("uid-web", "pvc-1"): "8:16"},
    cost_files=frozenset({"io.cost.qos", "io.cost.model"}),
)
MIB = 1 << 20
Io = strategies.IoLimits


def block(name: str, kind: str = "device", **values: Any) -> strategies.Block:
    """One entry of a strategy."""
    return strategies.Block(name=name, type=kind, io_cfg=Io(**values))


def decide(
    *pods: pod.Pod,
    be: tuple[strategies.Block, ...] = (),
    root: tuple[strategies.Block, ...] = (),
    layout: cgroup.Layout = V2,
    known: blocks.Blocks | None = DEVICES,
    more: tuple[str, ...] = (),
    slo: nodeslo.NodeSlo | None = None,
) -> decision.Decision[policy.State]:
    """One decision."""
    paths = {
        "",
        "kubepods",
        "kubepods/besteffort",
        *(limited.group or "" for limited in pods),
        *more,
    }
    groups = [moments.group(path, "0-11") for path in sorted(paths)]
    now = moments.moment(moments.machine(), pods, layout=layout, groups=groups)
    settings = policy.Settings(be=be, root=root)
    return policy.decide(
        replace(now, blocks=known, slo=slo), series.History(), settings, policy.State()
    )


def written(made: decision.Decision[policy.State]) -> dict[str, str]:
    """The files and their lines."""
    return moments.written(made.actions)


BATCH = moments.workload("batch", qos.Qos.BE)
TIERED = moments.workload(
    "b1",
    qos.Qos.BE,
    raw_qos=qos.Qos.BE,
    kube_qos=qos.KubeQos.BEST_EFFORT,
    group="kubepods/besteffort/podb1",
)


def test_v2_one_file_holds_every_device() -> None:
    """Two devices are two lines of one file; a partition stands for its device."""
    made = decide(BATCH, be=(block("/dev/sda1", write_bps=8 * MIB), block("sdb", read_iops=500)))

    assert {"/u/batch/io.max": f"8:0 wbps={8 * MIB}\n8:16 riops=500"} == written(made)


def test_the_tier_is_limited_as_a_whole() -> None:
    """The kubelet's best-effort tier, not each of its pods."""
    made = decide(TIERED, be=(block("sdb", read_bps=2 * MIB),))

    assert {"/u/kubepods/besteffort/io.max": f"8:16 rbps={2 * MIB}"} == written(made)


def test_v1_groups_may_lie_deeper_than_calls_do() -> None:
    """Whoever owns a group nests as many as he likes: the one at the bottom has the limit."""
    deep = ["batch" + "/g" * depth for depth in range(1, 900)]
    made = decide(BATCH, be=(block("sda", read_bps=8 * MIB),), layout=V1, more=tuple(deep))

    assert list(written(made)) == [f"/b/{deep[-1]}/blkio.throttle.read_bps_device"]


def test_v1_shares_a_limit_among_the_groups_at_the_bottom() -> None:
    """The v1 kernel throttles each group by itself: equal parts hold for all together."""
    more = ("batch/a", "batch/b", "batch/b/c")
    made = decide(BATCH, be=(block("sdb", read_bps=8 * MIB),), layout=V1, more=more)

    line = f"8:16 {4 * MIB}"
    name = "blkio.throttle.read_bps_device"
    assert {f"/b/batch/a/{name}": line, f"/b/batch/b/c/{name}": line} == written(made)


def test_nobody_is_limited_to_nothing() -> None:
    """However small the wish and many the groups: the least of the configuration stays."""
    made = decide(BATCH, be=(block("sdb", read_bps=1, write_iops=1),))

    assert {"/u/batch/io.max": f"8:16 rbps={MIB} wiops=10"} == written(made)


def test_a_volume_group_is_the_disks_below_it() -> None:
    """Limits are of whole devices: a group of volumes is those that it lies on."""
    made = decide(BATCH, be=(block("fast", "volumegroup", io_weight_percent=50),))

    assert written(made) == {"/u/batch/io.weight": "8:0 50"}


def test_a_pods_own_volume() -> None:
    """An annotation limits its pod, on the device that is mounted as its volume."""
    wish = strategies.BlkioQos(blocks=(block("pvc-1", "podvolume", write_iops=50),))
    web = moments.workload("web", wishes=wishes.Wishes(blkio_qos=wish))
    made = decide(web)

    assert written(made) == {"/u/web/io.max": "8:16 wiops=50"}


@pytest.mark.parametrize("kind", ["device", "volumegroup", "podvolume"])
def test_a_device_that_is_not_there_costs_itself(kind: str) -> None:
    """Its neighbours are limited, and a condition names it."""
    made = decide(BATCH, be=(block("nvme9", kind, read_bps=MIB), block("sdb", read_bps=MIB)))

    assert {"/u/batch/io.max": f"8:16 rbps={MIB}"} == written(made)
    [condition] = made.conditions
    assert (condition.type, condition.status) == ("BlockDeviceMissing", True)
    assert f"no {kind} 'nvme9'" in condition.message


def test_neutral_values_are_not_written() -> None:
    """Zero is no limit and 100 no weight: such files stay nobody's."""
    assert written(decide(BATCH, be=(block("sdb", read_bps=0, io_weight_percent=100),))) == {}


def test_the_cost_model_of_a_device() -> None:
    """Targets and the six figures go to the root group, in the kernel's words."""
    targets = block("sda", read_latency=3000, write_latency=4000, read_latency_percent=90)
    model = block(
        "sdb",
        enable_user_model=True,
        model_read_bps=1, model_read_seq_iops=2, model_read_rand_iops=3,
        model_write_bps=4, model_write_seq_iops=5, model_write_rand_iops=6,
    )  # fmt: skip
    assert written(decide(root=(targets, model))) == {
        "/u/io.cost.qos": "8:0 enable=1 ctrl=user rpct=90.00 rlat=3000 wpct=95.00 wlat=4000",
        "/u/io.cost.model": "8:16 ctrl=user model=linear"
        " rbps=1 rseqiops=2 rrandiops=3 wbps=4 wseqiops=5 wrandiops=6",
    }


def test_half_a_model_is_none() -> None:
    """A model that lacks a figure is not written, and the figure is named."""
    made = decide(root=(block("sdb", enable_user_model=True, model_read_bps=1),))

    assert not made.actions
    assert "lacks model_read_seq_iops" in made.conditions[0].message


def test_a_kernel_without_the_files_is_said_once() -> None:
    """No cost model, and on v1 no weight: a condition names what is missing."""
    bare = replace(DEVICES, cost_files=frozenset())
    no_model = decide(root=(block("sda", read_latency=1),), known=bare)
    no_weight = decide(BATCH, be=(block("sdb", io_weight_percent=10),), layout=V1)

    for made in (no_model, no_weight):
        assert not made.actions
        assert [condition.type for condition in made.conditions] == ["BlkioQosUnsupported"]


def test_an_object_replaces_the_file() -> None:
    """With a NodeSLO its BE class decides; one that is switched off limits nobody."""
    on = strategies.BlkioQos(enable=True, blocks=(block("sdb", read_bps=3 * MIB),))
    for blkio, lines in ((on, {"/u/batch/io.max": f"8:16 rbps={3 * MIB}"}), (None, {})):
        of_class = strategies.ClassQos() if blkio is None else strategies.ClassQos(blkio=blkio)
        classes = {**nodeslo.DEFAULTS.classes, "BE": nodeslo.in_force("BE", of_class)}
        slo = replace(nodeslo.DEFAULTS, source="NodeSLO", classes=classes)
        assert lines == written(decide(BATCH, be=(block("sda", read_bps=MIB),), slo=slo))


def test_devices_are_looked_for_only_where_one_is_limited() -> None:
    """Most machines never pay for the reading."""
    now = moments.moment(moments.machine(), [BATCH], layout=V2)

    assert not policy.asked(now, policy.Settings())
    assert policy.asked(now, policy.Settings(be=(block("sda"),)))
