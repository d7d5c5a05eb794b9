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


def moment(*pods: pod.Pod, known: kubelet.Kubelet | None = None) -> snapshot.Snapshot:
    """Eight CPUs of which two are isolated, with the claims of those that hold some alone."""
    groups = [group("", "0-7"), *(group(str(member.group), "0-7") for member in pods)]
    now = replace(moments.moment(SHAPE, pods, groups=groups), kubelet=known)
    held = exclusive_cpus.decide(now, series.History(), exclusive_cpus.Settings(), holdings.State())
    return replace(now, ledger=now.ledger.with_(held.claims))


def pools(now: snapshot.Snapshot) -> dict[str, str]:
    """The pools, what each group is written, and what is said of isolated CPUs."""
    made = shared_pools.decide(now, series.History(), shared_pools.Settings(), shared_pools.State())
    shown = {shared.kind: str(shared.cpus) for shared in made.pools}
    shown |= {a.group: a.value for a in made.actions if isinstance(a, action.WriteFile)}
    conditions = (
        condition for condition in made.conditions if condition.type.startswith("IsolatedCPUs")
    )
    return shown | {condition.type: condition.message for condition in conditions}


def test_out_of_the_pools() -> None:
    """Where the other CPUs are enough nobody runs there unasked, and a condition says it."""
    web = workload("web", Qos.LS, requests={"cpu": 6000})
    shown = pools(moment(web, workload("job", Qos.BE)))

    assert [shown[name] for name in ("LS", "BE", "web", "job")] == ["0-5"] * 4
    assert "CPUs 6-7" in shown["IsolatedCPUs"]


def test_in_the_pools_where_they_are_needed() -> None:
    """Where latency-sensitive work requests more than the rest they stay, and it is said why."""
    web = workload("web", Qos.LS, requests={"cpu": 6001})
    shown = pools(moment(web, workload("job", Qos.BE)))

    assert [shown["LS"], shown["BE"]] == ["0-7", "0-7"]
    assert "request 6.001 CPUs" in shown["IsolatedCPUsShared"]


def test_who_names_them_has_them() -> None:
    """An LSE workload holds the isolated CPUs that it names; they count for no pool."""
    database = workload("db", Qos.LSE, cpus="6-7", requests={"cpu": 2000})
    shown = pools(moment(database, workload("web", Qos.LS, requests={"cpu": 6000})))

    assert (shown["db"], shown["LS"]) == ("6-7", "0-5")
    assert "IsolatedCPUs" in shown


@pytest.mark.parametrize(("count", "cpus"), [(4, "0-3"), (6, "0-5"), (7, "0-6")])
def test_who_names_none_gets_them_last(count: int, cpus: str) -> None:
    """CPUs that are chosen here are isolated ones only where there are no others."""
    database = workload("db", Qos.LSE, cpu_count=count)
    now = moment(database)

    assert [cpus] == [str(claim.cpus) for claim in now.ledger.claims]


def test_under_the_kubelets_static_policy() -> None:
    """The kubelet's own pool has them, so ours have them, too."""
    static = kubelet.Kubelet(configuration=kubelet.Configuration(cpu_manager_policy="static"))
    shown = pools(moment(workload("web", Qos.LS), known=static))

    assert shown["LS"] == "0-7"
    assert "static policy" in shown["IsolatedCPUsShared"]


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
