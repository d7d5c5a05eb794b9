"""CPUs that are online and in no group of the tree: another program's partition, a container."""

from __future__ import annotations

from dataclasses import replace

import pytest

from koordlet.history import series
from koordlet.model import cgroup, cpuset, ledger, pod, prepared_claim, snapshot
from koordlet.model.qos import Qos
from koordlet.policy.cpu import (
    dra_driver,
    exclusive_cpus,
    holdings,
    reserved_cpus,
    shared_pools,
)
from tests.kit import moments
from tests.kit.moments import V1, V2, group, workload

SHAPE = moments.machine(1, 8, threads=1)
LAYOUTS = pytest.mark.parametrize("layout", [V1, V2], ids=["v1", "v2"])


def moment(*pods: pod.Pod, layout: cgroup.Layout = V2, root: str = "0-3") -> snapshot.Snapshot:
    """Eight CPUs are online, and the root of the tree has some of them."""
    unified = layout is V2
    paths = ["", *(str(member.group) for member in pods)]
    groups = [group(path, root, unified=unified) for path in paths]
    return moments.moment(SHAPE, pods, groups=groups, layout=layout)


def held(now: snapshot.Snapshot) -> tuple[dict[str, str], dict[str, str]]:
    """Who holds which CPUs, and what was refused."""
    made = exclusive_cpus.decide(now, series.History(), exclusive_cpus.Settings(), holdings.State())
    return (
        {claim.holder: str(claim.cpus) for claim in made.claims},
        {condition.subject: condition.message for condition in made.conditions},
    )


@LAYOUTS
def test_pools_have_none_of_them(layout: cgroup.Layout) -> None:
    """A pool of CPUs that nobody can be given would be no pool; a condition says why."""
    now = moment(workload("web", Qos.LS), workload("job", Qos.BE), layout=layout)
    made = shared_pools.decide(now, series.History(), shared_pools.Settings(), shared_pools.State())

    assert {pool.kind: str(pool.cpus) for pool in made.pools} == {"LS": "0-3", "BE": "0-3"}
    (condition,) = made.conditions
    assert condition.type == "CPUsOutsideTree"
    assert "CPUs 4-7 are online" in condition.message


@LAYOUTS
def test_whoever_holds_some_alone_can_have_them(layout: cgroup.Layout) -> None:
    """What is chosen is inside; a set that names others is refused, as the kernel would."""
    chosen = workload("chosen", Qos.LSE, cpu_count=2)
    named = workload("named", Qos.LSE, cpus="4-5", requests={"cpu": 2000})
    claims, refused = held(moment(chosen, named, layout=layout, root="2-5,7"))
    assert claims == {chosen.key: "2-3", named.key: "4-5"}

    claims, refused = held(moment(chosen, named, layout=layout, root="1-4"))
    assert claims == {chosen.key: "1-2"}
    assert "5 are outside of the CPUs of the cgroup tree" in refused[named.key]


def test_a_number_of_cpus_is_reserved_inside() -> None:
    """Outside they would be kept from nobody, and all inside would be too many."""

    def reserve(milli: int) -> tuple[list[str], list[str]]:
        settings = reserved_cpus.Settings(quantity_milli=milli)
        made = reserved_cpus.decide(
            moment(root="4-7"), series.History(), settings, reserved_cpus.State()
        )
        return (
            [str(claim.cpus) for claim in made.claims],
            [condition.type for condition in made.conditions],
        )

    assert reserve(2000) == (["4-5"], [])
    assert reserve(4000) == ([], ["ReservedCPUsInvalid"])


def test_a_number_that_was_reserved_outside_is_reserved_anew() -> None:
    """The partition of another program has taken them since."""
    settings, past = reserved_cpus.Settings(quantity_milli=2000), series.History()
    before = reserved_cpus.decide(moment(root="4-7"), past, settings, reserved_cpus.State())
    made = reserved_cpus.decide(moment(root="0-3"), past, settings, before.next_state)

    assert [str(row.cpus) for row in (*before.claims, *made.claims)] == ["4-5", "0-1"]


def test_none_of_them_is_offered_as_a_device() -> None:
    """A claim of such a CPU could not be prepared."""
    devices = list(dra_driver.cpu_devices(moment(root="0-3"), dra_driver.Settings(group_by="core")))

    assert sum(device.capacity[prepared_claim.CPU].value for device in devices) == 3


def test_a_cpu_that_was_offline_is_not_outside() -> None:
    """The kernel puts it back into the root a moment after it says that it is online."""
    now = replace(moment(root="0-6"), went_offline=cpuset.CPUSet.parse("7"))
    assert str(now.allowed) == "0-7"
    assert str(replace(now, groups={}).allowed) == "0-7"

    owners = shared_pools.divide(replace(now, ledger=ledger.Ledger()))
    assert str(owners.ls) == "0-7"
