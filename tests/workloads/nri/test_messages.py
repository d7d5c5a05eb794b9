"""What the runtime says, and what it is told."""

from __future__ import annotations

from koordlet.model import adjustment, cpuset
from koordlet.workloads.nri import fields, messages
from koordlet.workloads.nri.messages import NriEvent
from tests.kit import nri

CPUS = cpuset.CPUSet.parse


def test_pods_and_containers() -> None:
    """Everything that matters is read from where the runtime puts it."""
    pod = messages.NriPod(
        id="s1",
        uid="u1",
        namespace="ns",
        name="web",
        labels={"koordinator.sh/qosClass": "LS"},
        annotations={"a": "b", "empty": ""},
        cgroup_parent="/kubepods/podu1",
        cpu_shares=2048,
    )
    container = messages.NriContainer(
        id="c1",
        pod="s1",
        name="main",
        cgroup="/kubepods/podu1/c1",
        cpus="0-3",
        shares=2,
        quota=-1,
        memory=1 << 30,
        pid=12,
    )

    assert pod == messages.pod(fields.decode(nri.pod(pod)))
    assert container == messages.container(fields.decode(nri.container(container)))


def test_only_what_changes_is_said() -> None:
    """No field is sent that nobody wants changed: another plugin may want it."""
    assert messages.adjust(adjustment.Adjustment(reasons={"p": "nothing"})) == b""
    resources = fields.inside(
        fields.decode(messages.adjust(adjustment.Adjustment(cpus=CPUS("1-2")))), 1, 6, 2
    )
    assert list(resources) == [2]
    assert fields.inside(resources, 2) == {6: [b"1-2"]}


def test_every_field() -> None:
    """Each is where the runtime looks for it; no limit is -1."""
    wanted = adjustment.Adjustment(
        cpus=CPUS("0"),
        mems=CPUS("1"),
        cpu_milli=1500,
        cpu_shares=2,
        memory_bytes=-1,
        resctrl_class="LS",
        unified={"memory.high": "max"},
    )
    resources = fields.inside(fields.decode(messages.adjust(wanted)), 1, 6, 2)
    cpu = fields.inside(resources, 2)
    numbers = [fields.number(fields.inside(cpu, field), 1) for field in (1, 2, 3)]

    assert numbers == [2, 150_000, 100_000]
    assert (fields.text(cpu, 6), fields.text(cpu, 7)) == ("0", "1")
    assert fields.number(fields.inside(resources, 1, 1), 1) == -1
    assert fields.text(fields.inside(resources, 5), 1) == "LS"
    assert fields.texts(resources, 6) == {"memory.high": "max"}
    unlimited = fields.decode(messages.adjust(adjustment.Adjustment(cpu_milli=-1)))
    assert fields.number(fields.inside(unlimited, 1, 6, 2, 2, 2), 1) == -1


def test_an_update() -> None:
    """It names the container; whether it may fail is said."""
    wanted = adjustment.Adjustment(cpus=CPUS("3"))
    update = fields.decode(messages.update("c1", wanted, may_fail=True))

    assert (fields.text(update, 1), fields.number(update, 3)) == ("c1", 1)
    assert fields.text(fields.inside(update, 2, 1, 2), 6) == "3"
    assert fields.number(fields.decode(messages.update("c1", wanted)), 3) == 0


def test_the_mask() -> None:
    """Nothing is asked for that the oldest runtime does not know."""
    assert messages.mask(NriEvent) == 0x7FF
    assert messages.mask(messages.HEARD) & ~0x7FF == 0
    assert messages.mask([NriEvent.RUN_POD_SANDBOX, NriEvent.CREATE_CONTAINER]) == 0b1001
