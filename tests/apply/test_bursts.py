"""Bursts and quotas of one plan: the kernel takes both, whichever came first."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from koordlet.apply import bursts, ordering
from koordlet.model import action, cgroup, grouppath, knob, pod, qos
from koordlet.state import journal
from tests.kit import agents, moments
from tests.kit.kernel import Machine
from tests.kit.kernel.machine import Cgroup

LAYOUTS = {"v1": moments.FULL_V1, "v2": moments.FULL_V2}
RATIO = "node.koordinator.sh/cpu-normalization-ratio"
POD = grouppath.Tree(root="kubepods").pod(qos.KubeQos.BURSTABLE, "p1")
BOX = f"{POD}/main"


def pair(version: str, group: str = "g") -> tuple[action.WriteFile, action.WriteFile]:
    """A quota of 50 ms and a burst of 100 ms in one group."""
    rows = {"v1": (knob.CPU_CFS_QUOTA, knob.CPU_CFS_BURST), "v2": (knob.CPU_MAX, knob.CPU_BURST)}
    texts = ("50000" if version == "v1" else "50000 100000", "100000")
    quota, burst = (
        action.WriteFile(
            target=str(LAYOUTS[version].file(row, group)),
            value=text,
            policy="p",
            reason="because",
            knob=row.name,
            group=group,
        )
        for row, text in zip(rows[version], texts, strict=True)
    )
    return quota, burst


def entry(write: action.WriteFile, original: str) -> journal.Entry:
    """What the journal has of a file that nobody wants any more."""
    return journal.Entry(
        kind="WriteFile", target=write.target, policy="p", original=original, values=(write.value,)
    )


def fitted(
    version: str, *wanted: action.WriteFile, back: dict[str, str] | None = None, **there: str
) -> dict[str, str]:
    """What is written in the end, by row; ``there`` and ``back`` are of quota and burst."""
    quota, burst = pair(version)
    names = {"quota": quota, "burst": burst}
    made = bursts.fit(
        LAYOUTS[version],
        {write.target: write for write in wanted},
        {names[name].target: text for name, text in there.items()},
        {names[name].target: entry(names[name], text) for name, text in (back or {}).items()},
    )
    rows = {quota.target: "quota", burst.target: "burst"}
    return {rows[target]: value for target, value in moments.written(made.values()).items()}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_burst_is_cut_to_the_quota_of_the_same_plan(version: str) -> None:
    """Not to what its policy thinks the limit is."""
    assert fitted(version, *pair(version))["burst"] == "50000"


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_burst_is_cut_to_the_quota_that_is_there(version: str) -> None:
    """Where nobody wants another one; no quota is no bound."""
    burst = pair(version)[1]

    assert fitted(version, burst, quota="70000") == {"burst": "70000"}
    assert fitted(version, burst, quota="-1") == {"burst": "100000"}
    assert fitted(version, burst) == {"burst": "100000"}


def test_a_quota_that_goes_back() -> None:
    """What it is and what it will be: the less of both counts."""
    burst = pair("v2")[1]

    for there, back in (("70000", "90000"), ("90000", "70000")):
        written = fitted("v2", burst, quota=f"{there} 100000", back={"quota": f"{back} 100000"})
        assert written == {"burst": "70000"}


def test_the_burst_of_somebody_else_makes_way() -> None:
    """It is lowered with the quota; one that goes back below it anyway just goes back."""
    quota = pair("v2")[0]

    assert fitted("v2", quota, burst="80000")["burst"] == "50000"
    assert fitted("v2", quota, burst="20000", back={"burst": "80000"})["burst"] == "50000"
    assert "burst" not in fitted("v2", quota, burst="80000", back={"burst": "0"})
    assert "burst" not in fitted("v2", quota, burst="40000")


def test_a_burst_is_out_of_the_way_of_a_unit() -> None:
    """Units are written before all files: a burst is lowered before that, and raised after it."""
    quota, burst = pair("v2", "u.service")
    unit = action.SetUnitProperty(
        target=quota.target,
        value=quota.value,
        unit="u.service",
        properties=(("CPUQuotaPerSecUSec", "500ms"),),
        policy="p",
        reason="because",
        knob=quota.knob,
        group=quota.group,
    )

    def turn(current: str) -> list[str]:
        texts = {quota.target: "200000 100000", burst.target: current}
        return [step.action.target for step in ordering.order([unit, burst], texts)]

    assert [burst.target, quota.target] == turn("150000")
    assert [quota.target, burst.target] == turn("0")


# Both policies on one kernel ----------------------------------------------------------------------


def limited() -> pod.Pod:
    """A latency-sensitive pod that may use one CPU."""
    box = pod.Container(name="main", group=BOX, limits={"cpu": 1000})
    return moments.workload(
        "p1",
        qos.Qos.LS,
        uid="p1",
        group=POD,
        match="pod=p1",
        kube_qos=qos.KubeQos.BURSTABLE,
        raw_qos=qos.Qos.LS,
        limits={"cpu": 1000},
        containers=(box,),
    )


def config(*, burst: bool, ratio: bool) -> str:
    """Both are off, or either, or both are on."""
    return (
        f"node: {{annotations: {{{RATIO}: '{'1.25' if ratio else '1.00'}'}}}}\n"
        "policies:\n"
        f"  cpu_burst: {{mode: {'enforce' if burst else 'off'}, policy: cpuBurstOnly}}\n"
        "  cpu_normalization: {mode: enforce}\n"
        "  shared_pools: {mode: 'off'}\n"
    )


class Node:
    """A node with that pod, whose runtime has given it its limit."""

    def __init__(self, version: Cgroup, state: Path) -> None:
        self.host = Machine("0-3", cgroup=version)
        self.site = agents.Site(self.host, state, pods=(limited(),))
        self.layout: cgroup.Layout = self.site.line().observer.layout
        rows = (knob.CPU_CFS_QUOTA, knob.CPU_CFS_BURST)
        self.rows = rows if version == "v1" else (knob.CPU_MAX, knob.CPU_BURST)
        made = ""
        for step in BOX.split("/"):
            above, made = made, f"{made}/{step}".lstrip("/")
            if version == "v2":
                switch = f"/sys/fs/cgroup/{above}".rstrip("/") + "/cgroup.subtree_control"
                self.host.write(self.host.at(switch), b"+cpuset +cpu\n")
            tops = ["/sys/fs/cgroup"] if version == "v2" else list(self.host.mounts)
            for top in tops:
                self.host.mkdir(self.host.at(f"{top}/{made}"))
        for group in (POD, BOX):
            self.write(group, 0, "100000")

    def write(self, group: str, row: int, text: str) -> None:
        """As a runtime does."""
        target = self.layout.file(self.rows[row], group)
        self.host.write(self.host.at(str(target)), text.encode())

    def settled(self, *, burst: bool, ratio: bool) -> list[tuple[str, str]]:
        """Quota and burst of pod and container once an agent has nothing to do any more."""
        self.site.config = config(burst=burst, ratio=ratio)
        self.site.settle()
        assert not [call for call in self.host.calls if call.errno], "the kernel refused"
        return [(self.read(group, 0).split()[0], self.read(group, 1)) for group in (POD, BOX)]

    def read(self, group: str, row: int) -> str:
        """What a file says."""
        return self.host.text(self.host.at(str(self.layout.file(self.rows[row], group)))).strip()


#: Every way through the four combinations.
WAYS = list(itertools.permutations([(False, True), (True, False), (True, True), (False, False)]))


@pytest.mark.parametrize("version", ["v1", "v2"])
@pytest.mark.parametrize("way", WAYS)
def test_burst_and_normalisation_beside_each_other(
    version: Cgroup, way: list[tuple[bool, bool]], tmp_path: Path
) -> None:
    """In whichever order they come and go: both act, the kernel refuses nothing, all goes back."""
    node = Node(version, tmp_path)

    for burst, ratio in way:
        limit = "80000" if ratio else "100000"
        expected = (limit, limit if burst else "0")
        assert [expected, expected] == node.settled(burst=burst, ratio=ratio), (burst, ratio)


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_burst_of_before(version: Cgroup, tmp_path: Path) -> None:
    """One that another agent left does not keep a limit from being scaled, and comes back."""
    node = Node(version, tmp_path)
    node.write(BOX, 1, "100000")

    assert node.settled(burst=False, ratio=True)[1] == ("80000", "80000")
    assert node.settled(burst=False, ratio=False)[1] == ("100000", "100000")
