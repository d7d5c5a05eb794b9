"""Reserved CPUs: granted whole or refused whole; the last valid reservation stays."""

from __future__ import annotations

import json

import hypothesis
import pytest
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import cpuset, decision, topology
from koordlet.policy import reserved_cpus
from koordlet.policy.reserved_cpus import ANNOTATION, Settings, State
from tests.kit import moments

SERVER = moments.machine()


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
    assert () == made.conditions


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
    made = decided(annotation, Settings(cpus=cpuset.CPUSet.parse("5")), State(valid="1-2"))

    assert "1-2" == granted(made)
    assert ["ReservedCPUsInvalid"] == [one.type for one in made.conditions]
    assert "CPUs 1-2 stay reserved" in made.conditions[0].message
    assert 400 > len(made.conditions[0].message)
    assert "1-2" == made.next_state.valid


def test_nothing_was_ever_valid() -> None:
    """Without a last valid reservation a refused one reserves nothing, and says so."""
    made = decided(wants(reservedCPUs="0-11"))

    assert "" == granted(made)
    assert "leave none for workloads" in made.conditions[0].message
    assert "nothing is reserved" in made.conditions[0].message


def test_cpus_that_the_machine_has_not_are_left_out() -> None:
    """Unknown CPUs in a list cost themselves only, with a condition."""
    made = decided(wants(reservedCPUs="1,40"))

    assert "1" == granted(made)
    assert ["ReservedCPUsPartial"] == [one.type for one in made.conditions]
    assert "40" in made.conditions[0].message


def test_offline_cpus_stay_reserved() -> None:
    """A reserved CPU that went offline is reserved again when it comes back."""
    made = decided(wants(reservedCPUs="0,5"), machine=moments.machine(offline=[5]))

    assert "0,5" == granted(made)


def test_the_limit_is_applied_last() -> None:
    """No source may reserve more than ``limits.maxCpus``."""
    settings = Settings(cpus=cpuset.CPUSet.parse("0-3"), max_cpus=2)
    made = decided(None, settings, State(valid="7"))

    assert "7" == granted(made)
    assert "limits.maxCpus is 2" in made.conditions[0].message


def test_a_machine_that_shrank_and_grew_again() -> None:
    """The last valid reservation outlives a time in which it would have taken every CPU."""
    bad, state = wants(reservedCPUs="x"), State(valid="0-1", origin="annotation")
    small = decided(bad, state=state, machine=moments.machine(offline=range(2, 12)))
    later = decided(bad, state=small.next_state)

    assert ("", "0-1") == (granted(small), granted(later))


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
        moments.sets(14).map(lambda one: wants(reservedCPUs=str(one))),
    ),
    valid=moments.sets(12),
    offline=st.sets(st.integers(1, 11)),
)
def test_there_is_always_a_cpu_left(
    annotation: str, valid: cpuset.CPUSet, offline: set[int]
) -> None:
    """Whatever is asked for on whatever machine, some online CPU is not reserved."""
    machine = moments.machine(offline=offline)
    made = decided(annotation, state=State(valid=str(valid)), machine=machine)
    again = decided(annotation, state=State(valid=str(valid)), machine=machine)

    assert machine.online - cpuset.CPUSet.parse(granted(made))
    assert repr(made) == repr(again)


@pytest.mark.parametrize(
    "body", [{}, {"valid": 1, "origin": ""}, {"valid": "x", "origin": ""}, {"valid": "0"}]
)
def test_a_checkpoint_that_is_none(body: dict[str, object]) -> None:
    """A checkpoint that does not hold a reservation is refused."""
    with pytest.raises(ValueError, match=r"."):
        reserved_cpus.revive(body)


def test_a_checkpoint_comes_back() -> None:
    """The state survives its checkpoint."""
    state = State(valid="0-1", origin="annotation")

    assert state == reserved_cpus.revive({"valid": "0-1", "origin": "annotation"})
