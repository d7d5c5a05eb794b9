"""Who else writes a file of ours: by where it lies."""

from __future__ import annotations

import pytest

from koordlet.apply import intents


@pytest.mark.parametrize(
    ("group", "who"),
    [
        ("kubepods.slice/kubepods-pod1.slice/cri-containerd-ab.scope", "container runtime"),
        ("kubepods.slice/kubepods-pod1.slice/crio-ab.scope/container", "crun update"),
        ("kubepods/besteffort/pod1", "kubelet"),
        ("docker/ab", "Docker"),
        ("system.slice/nginx.service", "systemd"),
        ("batch/jobs", "unknown"),
    ],
)
def test_the_usual_writer(group: str, who: str) -> None:
    """The innermost name tells most; a group that nobody's convention names has no usual writer."""
    assert who in intents.usual_writer(group)
