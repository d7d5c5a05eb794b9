"""Where the memory of all pods is looked for: where pods are, before where they usually are."""

from __future__ import annotations

import pytest

from koordlet.agent import pressure_settings
from koordlet.host.counters import pressure
from koordlet.model import qos
from tests.kit import colocation, moments

NESTED = "kubelet.slice/kubelet-kubepods.slice"
USUAL = pressure.PressurePaths(pods=("kubepods.slice", "kubepods"))


@pytest.mark.parametrize(
    ("group", "first"),
    [
        ("kubelet/kubepods/burstable/pod1-2", "kubelet/kubepods"),
        (
            f"{NESTED}/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod1_2.slice",
            NESTED,
        ),
        ("kubepods/burstable/pod1-2", "kubepods.slice"),
        ("system.slice/nginx.service", "kubepods.slice"),
        (None, "kubepods.slice"),
    ],
)
def test_where_pods_are(group: str | None, first: str) -> None:
    """A nested kubelet's tree counts as soon as one pod was found in it; the usual ones stay."""
    one = moments.workload(
        "web", colocation.Qos.LS, None, group=group, kube_qos=qos.KubeQos.BURSTABLE
    )

    found = pressure_settings.proved(USUAL, (one,))

    assert first == found.pods[0]
    assert set(USUAL.pods) <= set(found.pods)


def test_nobody_there() -> None:
    """Without pods it is as it was."""
    assert USUAL is pressure_settings.proved(USUAL, ())
