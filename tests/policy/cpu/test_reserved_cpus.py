"""Reserved CPUs: granted whole or refused whole; the last valid reservation stays."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import cpuset, decision, kubelet, ledger, pod, qos, topology
from koordlet.policy.cpu import reservation_requests, reserved_cpus
from koordlet.policy.cpu.reservation_requests import Use
from koordlet.policy.cpu.reserved_cpus import ANNOTATION, Reserve, Settings, State
from tests.kit import moments

SERVER = moments.machine()
SYSTEM = reservation_requests.SYSTEM_ANNOTATION


def decided(
    annotation: str | None = None,
    settings: Settings | None = None,
    state: State | None = None,
    machine: topology.Topology = SERVER,
) -> decision.Decision[State]:
    """The decision for a node annotation and a configuration."""
    annotations = {} if annotation is None else {ANNOTATION: annotation}
    now = moments.moment(machine, annotations=annotations)
    return reserved_cpus.decide(now, series.History(), settings or Settings(), state or State())


def valid(cpus: str, source: str = "node", **more: object) -> State:
    """A reservation that was valid once."""
    values: dict[str, Any] = {"origin": "a test", "use": Use.MACHINE, **more}
    return State(reserves=(Reserve(source=source, cpus=cpuset.CPUSet.parse(cpus), **values),))


def granted(made: decision.Decision[State]) -> str:
    """The CPUs reserved."""
    return str(cpuset.union(claim.cpus for claim in made.claims))


def wants(**body: object) -> str:
    """An annotation."""
    return json.dumps(body)


@pytest.mark.parametrize(
    ("annotation", "settings", "cpus"),
    [
        (None, Settings(), ""),
        (None, Settings(cpus=cpuset.CPUSet.parse("1,3")), "1,3"),
        (None, Settings(quantity_milli=1500), "0,6"),
        (wants(reservedCPUs="2-3"), Settings(cpus=cpuset.CPUSet.parse("1")), "2-3"),
        (wants(reservedCPUs="2", resources={"cpu": "5"}), Settings(), "2"),
        (wants(resources={"cpu": "2"}), Settings(), "0,6"),
        (wants(resources={"cpu": 1.5}), Settings(), "0,6"),
        (wants(resources={"cpu": "100m"}), Settings(), "0"),
        (wants(resources={"cpu": "0"}), Settings(cpus=cpuset.CPUSet.parse("1")), ""),
        (wants(resources={"cpu": "-3"}), Settings(), ""),
        (wants(resources={"memory": "1Gi"}), Settings(cpus=cpuset.CPUSet.parse("1")), "1"),
        (wants(reservedCPUs="", resources={"cpu": "1"}), Settings(), "0"),
        (wants(applyPolicy="ReservedCPUsOnly", reservedCPUs="4"), Settings(), "4"),
    ],
)
def test_who_decides(annotation: str | None, settings: Settings, cpus: str) -> None:
    """A list wins over a number, the annotation over the configuration; no wish, no CPU."""
    made = decided(annotation, settings)

    assert cpus == granted(made)
    assert made.conditions == ()


MALFORMED = [
    "",
    "no json",
    "[]",
    "null",
    "7",
    '"0-3"',
    "{" * 50_000,
    wants(reservedCPUs="9-1"),
    wants(reservedCPUs="a"),
    wants(reservedCPUs=["0"]),
    wants(reservedCPUs={"a": 1}),
    wants(reservedCPUs=True),
    wants(reservedCPUs="0-99999999"),
    wants(reservedCPUs="50-60"),
    wants(reservedCPUs="0-11"),
    wants(reservedCPUs="\ud800"),
    wants(resources="2"),
    wants(resources=["cpu"]),
    wants(resources={"cpu": "many"}),
    wants(resources={"cpu": [1]}),
    wants(resources={"cpu": False}),
    wants(resources={"cpu": "12"}),
    wants(resources={"cpu": "1e300"}),
    '{"resources": {"cpu": NaN}}',
    '{"resources": {"cpu": 1e999}}',
]


@pytest.mark.parametrize("annotation", MALFORMED, ids=lambda text: text[:30] or "empty")
def test_a_bad_wish_keeps_the_last_valid_one(annotation: str) -> None:
    """Whatever is wrong with the annotation, the last valid reservation stays and one says why."""
    made = decided(annotation, Settings(cpus=cpuset.CPUSet.parse("5")), valid("1-2"))

    assert granted(made) == "1-2"
    assert [condition.type for condition in made.conditions] == ["ReservedCPUsInvalid"]
    assert "CPUs 1-2 stay reserved" in made.conditions[0].message
    assert len(made.conditions[0].message) < 400
    assert [str(reserve.cpus) for reserve in made.next_state.reserves] == ["1-2"]


def test_nothing_was_ever_valid() -> None:
    """Without a last valid reservation a refused one reserves nothing, and says so."""
    made = decided(wants(reservedCPUs="0-11"))

    assert granted(made) == ""
    assert "leave none for workloads" in made.conditions[0].message
    assert "nothing is reserved" in made.conditions[0].message


def test_cpus_that_the_machine_has_not_are_left_out() -> None:
    """Unknown CPUs in a list cost themselves only, with a condition."""
    made = decided(wants(reservedCPUs="1,40"))

    assert granted(made) == "1"
    assert [condition.type for condition in made.conditions] == ["ReservedCPUsPartial"]
    assert "40" in made.conditions[0].message


def test_offline_cpus_stay_reserved() -> None:
    """A reserved CPU that went offline is reserved again when it comes back."""
    made = decided(wants(reservedCPUs="0,5"), machine=moments.machine(offline=[5]))

    assert granted(made) == "0,5"


def test_the_limit_is_applied_last() -> None:
    """No source may reserve more than ``limits.maxCpus``."""
    settings = Settings(cpus=cpuset.CPUSet.parse("0-3"), max_cpus=2)
    made = decided(None, settings, valid("7"))

    assert granted(made) == "7"
    assert "limits.maxCpus is 2" in made.conditions[0].message


def test_a_machine_that_shrank_and_grew_again() -> None:
    """The last valid reservation outlives a time in which it would have taken every CPU."""
    bad, state = wants(reservedCPUs="x"), valid("0-1")
    small = decided(bad, state=state, machine=moments.machine(offline=range(2, 12)))
    later = decided(bad, state=small.next_state)

    assert (granted(small), granted(later)) == ("", "0-1")


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["reservedCPUs", "resources", "cpu", "applyPolicy"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@hypothesis.given(
    annotation=st.one_of(
        st.text(max_size=40),
        JSON.map(json.dumps),
        moments.sets(14).map(lambda cpus: wants(reservedCPUs=str(cpus))),
    ),
    last=moments.sets(12),
    offline=st.sets(st.integers(1, 11)),
)
def test_there_is_always_a_cpu_left(
    annotation: str, last: cpuset.CPUSet, offline: set[int]
) -> None:
    """Whatever is asked for on whatever machine, some online CPU is not reserved."""
    machine = moments.machine(offline=offline)
    made = decided(annotation, state=valid(str(last)), machine=machine)
    again = decided(annotation, state=valid(str(last)), machine=machine)

    assert machine.online - cpuset.CPUSet.parse(granted(made))
    assert repr(made) == repr(again)


ROW = reserved_cpus.POLICY.saved(valid("0-1"))["reserves"][0]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"reserves": {}},
        {"reserves": [7]},
        {"reserves": [{**ROW, "cpus": "x"}]},
        {"reserves": [{**ROW, "use": "fun"}]},
        {"reserves": [{**ROW, "count": "2"}]},
        {"reserves": [{**ROW, "count": True}]},
        {"reserves": [{**ROW, "source": None}]},
    ],
)
def test_a_checkpoint_that_is_none(body: dict[str, object]) -> None:
    """A checkpoint that does not hold reservations is refused."""
    with pytest.raises(ValueError, match=r"."):
        reserved_cpus.POLICY.revive(body)


def test_a_checkpoint_comes_back() -> None:
    """The state survives its checkpoint, and stands for the same claims."""
    made = decided(wants(reservedCPUs="0-1"))
    state = reserved_cpus.POLICY.revive(reserved_cpus.POLICY.saved(made.next_state))

    assert made.next_state == state
    assert made.claims == reserved_cpus.recall(state)


def on_node(
    annotations: dict[str, str] | None = None,
    asked: kubelet.Configuration | None = None,
    pods: tuple[pod.Pod, ...] = (),
    *,
    state: State | None = None,
    known: bool = True,
    machine: topology.Topology = SERVER,
    settings: Settings | None = None,
) -> decision.Decision[State]:
    """The decision where a kubelet and declared workloads have wishes, too."""
    now = moments.moment(machine, pods, annotations=annotations)
    now = dataclasses.replace(
        now,
        kubelet=kubelet.Kubelet(configuration=asked),
        node=dataclasses.replace(now.node, known=known),
    )
    return reserved_cpus.decide(now, series.History(), settings or Settings(), state or State())


def owners(made: decision.Decision[State]) -> dict[str, str]:
    """Owner and holder to CPUs."""
    return {f"{claim.owner.value} {claim.holder}": str(claim.cpus) for claim in made.claims}


def pool(made: decision.Decision[State]) -> str:
    """The CPUs of system QoS."""
    return str(ledger.Ledger(pools=made.pools).pool("SYSTEM"))


@pytest.mark.parametrize(
    ("asked", "cpus"),
    [
        (kubelet.Configuration(reserved_cpus=cpuset.CPUSet.of([3])), "3"),
        (kubelet.Configuration(cpu_manager_policy="static", kube_reserved={"cpu": 500}), "0"),
        (
            kubelet.Configuration(
                cpu_manager_policy="static",
                system_reserved={"cpu": 1000},
                kube_reserved={"cpu": 500, "memory": 1},
            ),
            "0,6",
        ),
        (kubelet.Configuration(kube_reserved={"cpu": 500}), ""),
        (kubelet.Configuration(cpu_manager_policy="static"), ""),
    ],
)
def test_what_the_kubelet_reserves(asked: kubelet.Configuration, cpus: str) -> None:
    """Its list always; of quantities what its static policy packs; the peer forgets both."""
    assert cpus == granted(on_node(asked=asked))


def test_all_sources_add_up() -> None:
    """Node, kubelet, system QoS, declared system workloads: each has a claim and an origin."""
    made = on_node(
        {ANNOTATION: wants(reservedCPUs="0"), SYSTEM: wants(cpuset="7")},
        kubelet.Configuration(reserved_cpus=cpuset.CPUSet.of([1])),
        (moments.workload("ssh", qos.Qos.SYSTEM, "2"), moments.workload("ls", cpus="3")),
    )

    assert {"system node": "7", "system t/ssh": "2"}.items() <= owners(made).items()
    assert (granted(made), pool(made), made.conditions) == ("0-2,7", "7", ())
    assert made.explanation["workload/uid-ssh"] == "2 (test for t/ssh)"


def test_system_work_may_share_its_cpus() -> None:
    """``cpusetExclusive: false`` names the CPUs of system work and takes them from nobody."""
    made = on_node({SYSTEM: wants(cpuset="0-11", cpusetExclusive=False)})

    assert (granted(made), pool(made), made.conditions) == ("", "0-11", ())


@pytest.mark.parametrize(
    "text",
    ["", "[]", wants(cpuset="x"), wants(cpuset="0-11"), wants(cpuset="7", cpusetExclusive=1.5)],
)
def test_a_bad_system_set_costs_itself(text: str) -> None:
    """The node's reservation counts, the last valid system set stays, and a condition says why."""
    state = valid("9", "system", use="system")
    made = on_node({ANNOTATION: wants(reservedCPUs="0"), SYSTEM: text}, state=state)

    assert owners(made) == {"reserved node": "0", "system node": "9"}
    assert [condition.type for condition in made.conditions] == ["ReservedCPUsInvalid"]


def test_sources_that_leave_nothing_together() -> None:
    """The one that would take the rest is refused, the earlier one stands."""
    made = on_node(
        {ANNOTATION: wants(reservedCPUs="0-5")},
        kubelet.Configuration(reserved_cpus=cpuset.CPUSet.parse("6-11")),
    )

    assert granted(made) == "0-5"
    assert "the kubelet's reservedSystemCPUs would reserve every CPU" in made.conditions[0].message


def test_a_source_that_has_not_answered_keeps_what_it_had() -> None:
    """After a restart, while API server and kubelet are silent, nothing reserved is lost."""
    before = on_node(
        {ANNOTATION: wants(reservedCPUs="0"), SYSTEM: wants(cpuset="7")},
        kubelet.Configuration(reserved_cpus=cpuset.CPUSet.of([1])),
    )
    silent = on_node(state=before.next_state, known=False)
    gone = on_node(asked=kubelet.Configuration(), state=before.next_state)

    assert (granted(before), ()) == (granted(silent), silent.conditions)
    assert granted(gone) == ""


def test_chosen_cpus_stay_while_they_are_there() -> None:
    """A number keeps its CPUs when others come and go, and gets new ones when it lost some."""
    small = moments.machine(offline=[0, 6])
    first = decided(wants(resources={"cpu": "2"}), machine=small)
    back = decided(wants(resources={"cpu": "2"}), state=first.next_state)
    lost = moments.machine(offline=[int(granted(first).split(",")[0])])
    moved = decided(wants(resources={"cpu": "2"}), state=first.next_state, machine=lost)

    assert granted(first) == granted(back)
    assert len(cpuset.CPUSet.parse(granted(moved)) & lost.online) == 2


def test_an_unknown_policy_of_application_is_said() -> None:
    """The reservation counts as it does by default."""
    made = decided(wants(reservedCPUs="0", applyPolicy="Sometimes"))

    assert granted(made) == "0"
    assert [condition.reason for condition in made.conditions] == ["UnknownApplyPolicy"]


def test_a_system_pod_s_annotation_reserves_nothing() -> None:
    """The operator of the machine declares CPUs of system work; whoever writes pods does not."""
    system = moments.workload(
        "sys", qos.Qos.SYSTEM, "1-7", kube_qos=qos.KubeQos.BURSTABLE, match="pod=sys"
    )
    shape = moments.machine(1, 8, threads=1)
    by_match = {}
    for match in ("pod=sys", "unit=sys.service"):
        now = moments.moment(shape, [dataclasses.replace(system, match=match)])
        by_match[match] = granted(reserved_cpus.decide(now, series.History(), Settings(), State()))

    assert by_match == {"pod=sys": "", "unit=sys.service": "1-7"}
