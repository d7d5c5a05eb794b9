"""What the journal is told before a plan is carried out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from koordlet.apply import intents
from koordlet.model import action, eviction, plan
from koordlet.state import journal
from tests.kit import moments
from tests.kit.kernel import Machine

GROUP = "system.slice/web.service"
FILE = f"/sys/fs/cgroup/{GROUP}/cpuset.cpus"


@pytest.mark.parametrize("unit", ["web.service", ""])
def test_a_unit_is_known_by_its_name(tmp_path: Path, unit: str) -> None:
    """Started anew it has another group: its properties' originals stay, those of a group go."""
    host = Machine("0-3", cgroup="v2")
    for path in ("system.slice", GROUP):
        host.mkdir(host.at(f"/sys/fs/cgroup/{path}"))
    book = journal.Journal(tmp_path / "journal", machine_id="m", boot_id="b")
    before = journal.Entry(
        kind=action.SetUnitProperty.__name__ if unit else action.WriteFile.__name__,
        target=FILE,
        policy="shared_pools",
        original="0-3",
        values=("1",),
        group=GROUP,
        inode=1,
        unit=unit,
        properties=(("AllowedCPUs", "ay:0f"),) if unit else (),
    )
    book.intend([before])
    write = action.WriteFile(
        target=FILE, value="2", policy="shared_pools", reason="test", knob="cpuset.cpus"
    )
    step = plan.Step(order=0, action=replace(write, group=GROUP), was="1")

    (made,) = intents.Intents(host, book, moments.moment(moments.machine())).entries([step], set())

    assert made.inode == host.stat(host.at(f"/sys/fs/cgroup/{GROUP}")).inode
    if unit:
        assert made.properties == before.properties
        assert (made.original, made.values) == ("0-3", ("1", "2"))
    else:
        assert (made.original, made.values, made.properties) == ("1", ("2",), ())


def test_an_eviction_is_about_a_pod_and_no_group(tmp_path: Path) -> None:
    """Nobody looks for a directory of a pod's name: the pass would end there, and evict nobody."""
    book = journal.Journal(tmp_path / "journal", machine_id="m", boot_id="b")
    known = intents.Intents(Machine("0-3"), book, moments.moment(moments.machine()))
    victim = eviction.Eviction(
        pod="web/shop",
        uid="u",
        policy="node_pressure",
        signal="pid.available",
        reason="Evicted",
        message="",
    )
    step = action.Evict(target="pod/web/shop", victim=victim, policy="node_pressure", reason="test")

    assert known.unknown(step) == ""


@pytest.mark.parametrize(
    ("group", "who"),
    [
        ("kubepods.slice/kubepods-pod1.slice/cri-containerd-ab.scope", "container runtime"),
        ("kubepods.slice/kubepods-pod1.slice/crio-ab.scope/container", "crun update"),
        ("kubepods/besteffort/pod1", "kubelet"),
        ("docker/ab", "Docker"),
        ("system.slice/nginx.service", "systemd"),
        ("batch/jobs", "unknown"),
    ],
)
def test_the_usual_writer(group: str, who: str) -> None:
    """The innermost name tells most; a group that nobody's convention names has no usual writer."""
    assert who in intents.usual_writer(group)
