"""CPUs that the kernel does not balance are for those who name them, where the rest is enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from koordlet.history import series
from koordlet.model import action, cpuset, kubelet, pod, snapshot
from koordlet.model.qos import Qos
from koordlet.policy.cpu import exclusive_cpus, holdings, shared_pools
from koordlet.policy.framework import proposals
from tests.kit import moments
from tests.kit.moments import group, workload

SHAPE = replace(moments.machine(1, 8, threads=1), isolated=cpuset.CPUSet.parse("6-7"))


def moment(*pods: pod.Pod, told: kubelet.Kubelet | None = None) -> snapshot.Snapshot:
    """Eight CPUs of which two are isolated, with the claims of those that hold some alone."""
    groups = [group("", "0-7"), *(group(str(one.group), "0-7") for one in pods)]
    now = replace(moments.moment(SHAPE, pods, groups=groups), kubelet=told)
    held = exclusive_cpus.decide(now, series.History(), exclusive_cpus.Settings(), holdings.State())
    return replace(now, ledger=now.ledger.with_(held.claims))


def pools(now: snapshot.Snapshot) -> dict[str, str]:
    """The pools, what each group is written, and what is said of isolated CPUs."""
    made = shared_pools.decide(now, series.History(), shared_pools.Settings(), shared_pools.State())
    found = {one.kind: str(one.cpus) for one in made.pools}
    found |= {a.group: a.value for a in made.actions if isinstance(a, action.WriteFile)}
    said = (one for one in made.conditions if one.type.startswith("IsolatedCPUs"))
    return found | {one.type: one.message for one in said}


def test_out_of_the_pools() -> None:
    """Where the other CPUs are enough nobody runs there unasked, and a condition says it."""
    web = workload("web", Qos.LS, requests={"cpu": 6000})
    found = pools(moment(web, workload("job", Qos.BE)))

    assert [found[one] for one in ("LS", "BE", "web", "job")] == ["0-5"] * 4
    assert "CPUs 6-7" in found["IsolatedCPUs"]


def test_in_the_pools_where_they_are_needed() -> None:
    """Where latency-sensitive work requests more than the rest they stay, and it is said why."""
    web = workload("web", Qos.LS, requests={"cpu": 6001})
    found = pools(moment(web, workload("job", Qos.BE)))

    assert [found["LS"], found["BE"]] == ["0-7", "0-7"]
    assert "request 6.001 CPUs" in found["IsolatedCPUsShared"]


def test_who_names_them_has_them() -> None:
    """An LSE workload holds the isolated CPUs that it names; they count for no pool."""
    database = workload("db", Qos.LSE, cpus="6-7", requests={"cpu": 2000})
    found = pools(moment(database, workload("web", Qos.LS, requests={"cpu": 6000})))

    assert (found["db"], found["LS"]) == ("6-7", "0-5")
    assert "IsolatedCPUs" in found


@pytest.mark.parametrize(("count", "cpus"), [(4, "0-3"), (6, "0-5"), (7, "0-6")])
def test_who_names_none_gets_them_last(count: int, cpus: str) -> None:
    """CPUs that are chosen here are isolated ones only where there are no others."""
    database = workload("db", Qos.LSE, cpu_count=count)
    now = moment(database)

    assert [cpus] == [str(one.cpus) for one in now.ledger.claims]


def test_under_the_kubelets_static_policy() -> None:
    """The kubelet's own pool has them, so ours have them, too."""
    told = kubelet.Kubelet(configuration=kubelet.Configuration(cpu_manager_policy="static"))
    found = pools(moment(workload("web", Qos.LS), told=told))

    assert found["LS"] == "0-7"
    assert "static policy" in found["IsolatedCPUsShared"]


def test_best_effort_work_is_chosen_cpus_of_its_pool() -> None:
    """A limit of CPUs never names one that is in no pool."""
    now = moment(workload("job", Qos.BE))

    assert cpuset.CPUSet.parse("0-5") == shared_pools.divide(now).be
    assert cpuset.CPUSet.parse("6-7") == shared_pools.isolated_aside(now)


def test_machines_without() -> None:
    """Nothing is said, and nothing changes."""
    now = replace(moment(workload("web", Qos.LS)), topology=moments.machine(1, 8, threads=1))

    proposal = proposals.Proposal("x", now)
    shared_pools.tell_isolated(proposal)

    assert proposal.conditions == []
    assert cpuset.CPUSet() == shared_pools.isolated_aside(now)
