"""Where the runtime puts things, as groups of ours."""

from __future__ import annotations

import pytest

from koordlet.workloads.nri import places

ID = "c" * 64


@pytest.mark.parametrize(
    ("text", "base", "expected"),
    [
        ("/kubepods/besteffort/podu", "", "kubepods/besteffort/podu"),
        (f"/kubepods/podu/{ID}", "", f"kubepods/podu/{ID}"),
        ("/test/kubepods/podu", "test", "kubepods/podu"),
        ("/elsewhere/podu", "test", None),
        ("/testing/podu", "test", None),
        (
            "kubepods-burstable-podu_1.slice",
            "",
            "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu_1.slice",
        ),
        (
            f"kubepods-podu.slice:cri-containerd:{ID}",
            "",
            f"kubepods.slice/kubepods-podu.slice/cri-containerd-{ID}.scope",
        ),
        (f"-.slice:crio:{ID}", "", f"crio-{ID}.scope"),
        (f"a--b.slice:crio:{ID}", "", None),
        ("/kubepods/../../etc", "", None),
        ("a//b", "", None),
        ("", "", None),
    ],
)
def test_both_drivers(text: str, base: str, expected: str | None) -> None:
    """Paths and instructions to systemd; what leads elsewhere is nobody's."""
    assert places.group(text, base) == expected
