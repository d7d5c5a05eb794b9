"""Which of two thresholds comes first, and when that cannot be told yet."""

from __future__ import annotations

from typing import Any

import pytest

from koordlet.model import earlier, thresholds

_GI = 1 << 30


def parsed(**texts: Any) -> tuple[thresholds.Threshold, ...]:
    """Of four maps."""
    return earlier.of_kubelet(thresholds.Texts(**texts), "single")


@pytest.mark.parametrize(
    ("ours", "theirs", "capacity", "expected"),
    [
        ("500Mi", "100Mi", None, (False, True)),
        ("100Mi", "100Mi", None, (True, True)),
        ("0.1Gi", "100Mi", None, (False, True)),
        ("100Mi", "1Gi", None, (True, True)),
        ("10%", "5%", None, (False, True)),
        ("5.0%", "5%", None, (True, True)),
        ("5%", "100Mi", None, (True, False)),
        ("5%", "100Mi", 10 * _GI, (False, True)),
        ("5%", "100Mi", _GI, (True, True)),
    ],
)
def test_larger_is_earlier(
    ours: str, theirs: str, capacity: int | None, expected: tuple[bool, bool]
) -> None:
    """Strictly; a quantity and a percentage need the capacity."""
    (mine, *_) = parsed(hard={"memory.available": ours}, enforce_pods=False)
    rival, certain = earlier.rival(mine, parsed(hard={"memory.available": theirs}), capacity)

    assert (rival is not None, certain) == expected


def test_each_of_the_kubelets_counts() -> None:
    """Earlier than the hard one and later than the soft one is not earlier; 0% is no threshold."""
    theirs = parsed(
        hard={"memory.available": "100Mi", "pid.available": "0%"},
        soft={"memory.available": "1Gi"},
        soft_grace={"memory.available": "5m"},
    )
    (mine, pids) = parsed(
        hard={"memory.available": "500Mi", "pid.available": "1%"}, enforce_pods=False
    )
    rival, certain = earlier.rival(mine, theirs, None)

    assert rival is not None
    assert certain
    assert (
        earlier.words(mine, rival)
    ) == "memory.available<500Mi is not earlier than the kubelet's soft threshold 1Gi"
    assert earlier.rival(pids, theirs, None) == (None, True)


def test_what_the_kubelet_derives_is_its_own() -> None:
    """It has a threshold for containers where it has one for the node, and for all pods."""
    theirs = parsed(hard={"nodefs.available": "10%", "memory.available": "100Mi"})
    ours = {threshold.signal: threshold for threshold in theirs}

    for signal in ("containerfs.available", "allocatableMemory.available"):
        assert earlier.rival(ours[signal], theirs, 100)[0] is not None
