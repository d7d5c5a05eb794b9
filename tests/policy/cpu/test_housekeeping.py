"""The kernel's own work keeps off CPUs that workloads hold alone."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.history import series
from koordlet.model import action, cpuset, ledger, topology
from koordlet.policy.cpu import housekeeping as policy
from tests.kit import moments

SERVER = moments.machine()
FILES = {
    "/proc/irq/9/smp_affinity_list": "0-11",
    "/proc/irq/24/smp_affinity_list": "2-3",
    "/proc/irq/25/smp_affinity_list": "4",
    "/proc/irq/26/smp_affinity_list": "no list",
    "/proc/irq/default_smp_affinity": "fff",
    "/sys/devices/virtual/workqueue/cpumask": "fff",
}


def claim(owner: ledger.Owner, cpus: str) -> ledger.Claim:
    """CPUs of somebody."""
    return ledger.Claim(
        owner=owner, cpus=cpuset.CPUSet.parse(cpus), holder="t/a", policy="test", reason="test"
    )


def texts(
    *claims: ledger.Claim,
    settings: policy.Settings | None = None,
    shape: topology.Topology = SERVER,
) -> dict[str, str]:
    """What each file shall say, by its number or name."""
    now = moments.moment(shape, held=ledger.Ledger(claims=claims))
    now = replace(now, kernel_work=FILES)
    decided = policy.decide(now, series.History(), settings or policy.Settings(), policy.State())
    writes = [write for write in decided.actions if isinstance(write, action.WriteFile)]
    assert len(writes) == len(decided.actions)
    return {"/".join(write.target.split("/")[-2:]): write.value for write in writes}


def test_it_keeps_off_what_workloads_hold() -> None:
    """What is on good CPUs stays, what is on some keeps those, the rest gets all good ones."""
    masks = texts(claim(ledger.Owner.LSE, "0-1"), claim(ledger.Owner.LSR, "4"))

    assert masks == {
        "9/smp_affinity_list": "2-3,5-11",
        "24/smp_affinity_list": "2-3",
        "25/smp_affinity_list": "2-3,5-11",
        "irq/default_smp_affinity": "fec",
        "workqueue/cpumask": "fec",
    }


def test_what_has_to_go_elsewhere_does_not_go_to_isolated_cpus() -> None:
    """They were set aside at boot; what runs there already stays, and all of it has to run."""
    isolated, still = cpuset.CPUSet.parse("2-5"), cpuset.CPUSet.parse("4-9")
    held = claim(ledger.Owner.LSE, "4")

    masks = texts(held, shape=replace(SERVER, isolated=isolated, nohz_full=still))
    assert masks["25/smp_affinity_list"] == "0-1,10-11"
    assert masks["24/smp_affinity_list"] == "2-3"
    full = replace(SERVER, isolated=SERVER.online)
    assert texts(held, shape=full)["25/smp_affinity_list"] == "0-3,5-11"


def test_where_nobody_holds_cpus_everything_is_put_back() -> None:
    """Nothing is named; the same where everything is held, since it must run somewhere."""
    assert texts() == {}
    assert texts(claim(ledger.Owner.LSE, "0-11")) == {}
    assert texts(claim(ledger.Owner.RESERVED, "0")) == {}


def test_onto_the_reserved_cpus() -> None:
    """Where that is asked for, and only one kind of work where the other is left alone."""
    some = policy.Settings(onto_reserved=True, kernel_threads=False)
    masks = texts(claim(ledger.Owner.RESERVED, "0-1"), settings=some)

    assert set(masks.values()) == {"0-1", "003"}
    assert len(masks) == 4
    only = policy.Settings(interrupts=False)
    assert list(texts(claim(ledger.Owner.LSE, "0"), settings=only)) == ["workqueue/cpumask"]


@pytest.mark.parametrize("total", [1, 8, 12, 32, 40, 72, 130])
@given(data=st.data())
def test_masks_are_in_the_kernel_s_form(total: int, data: st.DataObject) -> None:
    """Words of eight digits, the first as wide as the machine: what is read back is the same."""
    bits = data.draw(st.integers(1, (1 << total) - 1))
    like = f"{(1 << total) - 1:x}"
    like = ",".join(
        filter(
            None,
            [like[: len(like) % 8], *(like[i : i + 8] for i in range(len(like) % 8, len(like), 8))],
        )
    )
    text = policy._mask(cpuset.CPUSet(bits), like)

    assert len(text) == len(like)
    assert bits == cpuset.CPUSet.parse_mask(text).bits
    assert [i for i, c in enumerate(text) if c == ","] == [
        i for i, c in enumerate(like) if c == ","
    ]
