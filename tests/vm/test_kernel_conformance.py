"""Real kernels in virtual machines still answer as recorded: both cgroup versions, hotplug too."""

from __future__ import annotations

import pytest

from tests.kit.kernel import conformance, script
from tests.vm.fixtures import Boot
from tests.vm.qemu import Cgroup

pytestmark = pytest.mark.vm


@pytest.mark.parametrize("cgroup", ["v1", "v2"])
def test_the_guest_gives_the_recorded_answers(boot: Boot, cgroup: Cgroup) -> None:
    """Every script for this cgroup version runs in the guest and has the recorded answers."""
    guest = boot("2s8t", cgroup=cgroup)
    names = [name for name in conformance.scripts() if name.startswith(cgroup)]
    files = " ".join(f"fixtures/kernel/{name}.script" for name in names)

    run = f"modprobe loop && python3 -m tests.kit.kernel.script run --alone {files}"
    result = guest.run(run).check()
    recordings = script.recordings(result.stdout.splitlines())
    wrong, told = conformance.compare(recordings[0].facts, recordings)

    print("\n".join(told))
    assert wrong == []
    assert sorted(names) == sorted(recording.script for recording in recordings)
