"""cgroup v2 of a real kernel: memory, block devices and knobs are set, kept and put back."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

from tests.vm import machine
from tests.vm.probes import qualities

#: What a pod has of page cache is a mean of 15 seconds, which emulated are a minute.
pytestmark = [pytest.mark.vm, pytest.mark.soak]

MIB = 1 << 20


def test_memory_devices_and_knobs_on_v2() -> None:
    """Promises from the top down, throttling on the way to the limit, devices, the kernel's own."""
    with machine.boot("2s8t", cgroup="v2") as guest:
        words = ["python3", "-m", "tests.vm.probes.qualities"]
        told = cast("dict[str, Any]", guest.run(words, timeout=machine.COMMAND_TIMEOUT).json())
    before, meanwhile = told["before"], told["meanwhile"]
    about = json.dumps([told["cache"], told["why"], told["log"], meanwhile])

    assert None not in (told["settled"], told["again"]), about

    def of(name: str, file: str, *, inner: bool = False) -> str:
        return str(meanwhile[str(qualities.group(name, inner=inner) / file)])

    for inner in (False, True):
        assert str(32 * MIB) == of("web", "memory.min", inner=inner), about
        assert str(48 * MIB) == of("web", "memory.low", inner=inner), about
    assert str(96 * MIB) == of("web", "memory.high", inner=True), about
    tiers = "/sys/fs/cgroup/kubepods"
    for above in (tiers, f"{tiers}/burstable"):
        assert str(32 * MIB) == meanwhile[f"{above}/memory.min"], about
    # One device, of which the kernel says every limit.
    limited = meanwhile[f"{tiers}/besteffort/io.max"].split()
    assert {"rbps=8388608", "wiops=100"} <= set(limited), about
    assert limited[0] + " 20" in meanwhile[f"{tiers}/besteffort/io.weight"], about
    qos = meanwhile["/sys/fs/cgroup/io.cost.qos"]
    assert "enable=1" in qos, about
    assert "rlat=4000 wpct=95.00 wlat=8000" in qos, about
    # Taken back through memory.reclaim: cache beyond 4 MiB.
    assert told["cache"][0] > 16 * MIB, about
    assert told["cache"][1] <= 5 * MIB, about
    assert meanwhile[qualities.SYSCTLS[1]] == "30", about
    assert before[qualities.SYSCTLS[0]] != meanwhile[qualities.SYSCTLS[0]], about
    changed = {name for name, text in meanwhile.items() if text != before[name]}
    theirs = str(qualities.group("job") / "memory.low")
    assert {name: meanwhile[name] for name in changed} == {
        name: told["kept"][name] for name in changed - {theirs}
    }, about
    assert told["status"] == 0, about
    after = told["after"]
    assert str(MIB) == after.pop(theirs), about
    # The kernel forgets no device that was told its cost, but switches it off.
    for name in qualities.ROOT_FILES:
        assert "enable=1" not in after.pop(f"/sys/fs/cgroup/{name}"), about
    before = {name: text for name, text in before.items() if name in after}
    assert {name: text for name, text in after.items() if before[name] != text} == {}, about
