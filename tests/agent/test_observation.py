"""What is read only where somebody asks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from koordlet.agent import observation
from koordlet.host import observe
from koordlet.host.recording import directory
from koordlet.model import plan
from koordlet.policy.memory_io import blkio_qos, network_qos
from tests.kit import moments


def test_nobody_asks_for_links_while_the_policy_is_off(tmp_path: Path) -> None:
    """Neither off nor unknown modes look; shadow does, so that people see what would be done."""
    seen = moments.moment(moments.machine())
    seen = replace(seen, pods=())
    observer = observe.Observer(directory.DirHost(str(tmp_path)))
    settings = {
        blkio_qos.STEM: blkio_qos.Settings(),
        network_qos.STEM: network_qos.Settings(interfaces=("eth0",)),
    }
    for mode in ({}, {network_qos.STEM: plan.Mode.OFF}):
        assert observation.read_optional(seen, observer, settings, mode, slow=True) is seen

    shadowed = {network_qos.STEM: plan.Mode.SHADOW}
    assert observation.read_optional(seen, observer, settings, shadowed, slow=True) == seen
    assert seen.blocks is None
