"""CPUs go and come while pods live: sequences that broke an invariant, on the kernel in memory.

Does not cover: random sequences (``test_cpu_lifecycles``), real kernels (``tests/vm``).
"""

from __future__ import annotations

from collections.abc import Callable

from koordlet.model import cpuset, qos
from tests.agent.test_cpu_lifecycles import KINDS, KUBE, Lifecycles, OnV1, OnV2
from tests.kit import trees


def _life(*steps: Callable[[Lifecycles], None], machine: type[Lifecycles] = OnV1) -> None:
    life = machine()
    life.begin(threads=1)
    for step in steps:
        step(life)
        life.a_quiet_pass_writes_nothing()
        life.cpus_are_where_they_belong()
    life.teardown()


def _arrives(kind: qos.Qos, cpus: str | None = None) -> Callable[[Lifecycles], None]:
    named = None if cpus is None else cpuset.CPUSet.parse(cpus)
    return lambda life: life.arrive(kind=kind, cpus=named, count=None, priority=None)


def _plugs(cpu: int, *, online: bool) -> Callable[[Lifecycles], None]:
    return lambda life: life.plug(cpu=cpu, online=online)


def test_a_cpu_was_away() -> None:
    """v1: a set that is widened when it is back had been cut by the kernel; it stays wide."""
    machine = OnV1()
    machine.begin(threads=1)
    machine.arrive(qos.Qos.LSE, cpus=None, count=None, priority=None)
    machine.plug(cpu=1, online=False)
    machine.plug(cpu=1, online=True)
    assert cpuset.CPUSet.parse("0-7") == machine.host.affinity(machine.lodgers["p1"].pid)

    machine.teardown()


def test_a_cpu_that_comes_back_to_a_tier_that_is_not_narrowed() -> None:
    """v1 took it out of every set: who holds it gets it, also below a tier that is not ours."""
    _life(
        _arrives(qos.Qos.SYSTEM),
        _plugs(1, online=False),
        _arrives(qos.Qos.LSR, "0-1,3"),
        lambda life: life.restart(),
        _plugs(1, online=True),
    )


def test_a_cpu_that_was_away_while_no_agent_ran() -> None:
    """v1 took it out of every set; what comes back in the end is what was there before koordlet."""
    life = OnV1()
    life.begin(threads=1)
    life.arrive(kind=qos.Qos.LSR, cpus=cpuset.CPUSet.parse("1,4"), count=None, priority=None)
    life.arrive(kind=qos.Qos.BE, cpus=None, count=None, priority=None)
    life.restart(away=4)
    assert life.who is not None
    assert life.who.restore().failed == ()
    sets = {name: str(life.host.affinity(lodger.pid)) for name, lodger in life.lodgers.items()}
    assert sets == {"p1": "0-7", "p2": "0-7"}

    life.teardown()


def test_what_another_program_took_out_of_one_set_stays_out() -> None:
    """The groups around it have the CPU: the kernel would have taken it out of these as well."""
    life = OnV1()
    life.begin(threads=1)
    life.arrive(kind=qos.Qos.LSR, cpus=cpuset.CPUSet.parse("1,4"), count=None, priority=None)
    group = f"{trees.top('v1')}/{KUBE.pod(KINDS[qos.Qos.LSR], 'p1')}"
    life.host.write(life.host.at(f"{group}/cpuset.cpus"), b"1")
    assert life.who is not None
    restored = life.who.restore()
    assert [left.target for left in restored.left] == [f"{group}/cpuset.cpus"]
    assert str(life.host.affinity(life.lodgers["p1"].pid)) == "1"

    life.teardown()


def test_what_another_program_took_out_of_all_sets_stays_out() -> None:
    """No CPU went while the agent ran: what it finds in every set now is somebody's wish."""
    life = OnV1()
    life.begin(threads=1)
    life.arrive(kind=qos.Qos.LSR, cpus=cpuset.CPUSet.parse("1,4"), count=None, priority=None)
    pod, tier = KUBE.pod(KINDS[qos.Qos.LSR], "p1"), KUBE.tier(KINDS[qos.Qos.LSR])
    for path, cpus in ((pod, b"1"), (tier, b"0-3"), (KUBE.tier(qos.KubeQos.BEST_EFFORT), b"0-3")):
        life.host.write(life.host.at(f"{trees.top('v1')}/{path}/cpuset.cpus"), cpus)
    life.host.write(life.host.at(f"{trees.top('v1')}/{KUBE.root}/cpuset.cpus"), b"0-3")
    assert life.who is not None
    life.who.restore()
    assert str(life.host.affinity(life.lodgers["p1"].pid)) == "1"

    life.teardown()


def test_a_group_that_was_born_in_a_wider_set() -> None:
    """The tier around it is not taken back below what the kernel lets it have."""
    _life(
        _arrives(qos.Qos.BE),
        _plugs(1, online=False),
        _arrives(qos.Qos.LSR, "0-1"),
        _plugs(1, online=True),
        _arrives(qos.Qos.SYSTEM),
    )


def test_a_tier_whose_last_cpu_went_offline() -> None:
    """v1 left it empty, which was nobody's wish: given back it takes containers, as before."""

    def departs(life: Lifecycles) -> None:
        lodger = life.lodgers.pop("p1")
        life.host.exit(lodger.pid)
        life._remove(KUBE.pod(KINDS[lodger.pod.qos], "p1"))
        life._settle()

    _life(
        lambda life: life.reserve(cpus=cpuset.CPUSet.parse("0,2-6"), key="cpuset"),
        _arrives(qos.Qos.SYSTEM, "0,3-4,7"),
        _plugs(1, online=False),
        departs,
        _arrives(qos.Qos.LS),
    )


def test_a_cpu_that_comes_back_to_a_tier_that_was_given_back() -> None:
    """v2 takes no empty set while processes live on it: what stands there has the CPU in it."""
    _life(
        _plugs(3, online=False),
        _arrives(qos.Qos.LS),
        _arrives(qos.Qos.SYSTEM),
        _plugs(3, online=True),
        _arrives(qos.Qos.SYSTEM, "0-2,4-5"),
        lambda life: life.arrive(kind=qos.Qos.LSR, cpus=None, count=2, priority=None),
        machine=OnV2,
    )
