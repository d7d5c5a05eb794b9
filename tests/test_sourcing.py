"""A machine is standalone until something of a cluster is seen on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from koordlet import sourcing
from koordlet.config import schema
from koordlet.host import directory, root


def config(**sections: Any) -> schema.Config:
    """With these sections."""
    return schema.Config.model_validate(sections)


@pytest.mark.parametrize(
    ("sections", "runs", "wants"),
    [
        ({}, False, False),
        ({"kubelet": {"mode": "on"}}, True, False),
        ({"kubelet": {"address": "127.0.0.1:1"}}, True, False),
        ({"kubelet": {"mode": "off", "address": "127.0.0.1:1"}}, False, False),
        ({"kube": {"kubeconfig": "/etc/kubeconfig"}}, False, True),
        ({"kube": {"mode": True}}, False, True),
    ],
)
def test_what_is_asked(sections: dict[str, Any], runs: object, wants: object) -> None:
    """What somebody wrote down counts; why is said."""
    sections.setdefault("kubelet", {}).setdefault("directory", "/nowhere")
    found = sourcing.choose(config(**sections), root.LiveHost(), {})

    assert (runs, wants) == (found.kubelet, found.kube)
    assert (not (runs or wants)) is found.standalone
    assert 2 == len(found.why)


def test_a_kubelet_is_seen_by_its_checkpoint(tmp_path: Path) -> None:
    """Every kubelet writes it."""
    (tmp_path / "cpu_manager_state").write_text("{}")
    said = config(kubelet={"directory": str(tmp_path)})

    assert sourcing.choose(said, root.LiveHost(), {}).kubelet


def test_a_recorded_machine_is_never_asked(tmp_path: Path) -> None:
    """Whatever the configuration says."""
    said = config(kubelet={"mode": "on"}, kube={"mode": "on"})
    host = directory.DirHost(str(tmp_path))

    assert sourcing.choose(said, host, {}).standalone
    assert sourcing.gatherer(said, host) is None
    assert sourcing.once(said, host) is None
