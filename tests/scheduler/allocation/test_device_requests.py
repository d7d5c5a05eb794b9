"""What requests mean in devices."""

from __future__ import annotations

import pytest

from koordlet.scheduler.allocation import device_requests
from koordlet.scheduler.allocation.device_requests import DeviceRequest
from koordlet.scheduler.allocation.devices import (
    CORE,
    MEMORY,
    NPU_CORE,
    NPU_CPU,
    NPU_DVPP,
    PERCENT,
    RATIO,
    SHARED,
)
from koordlet.scheduler.objects.wire import BadObjectError

RDMA, FPGA = "koordinator.sh/rdma", "koordinator.sh/fpga"


@pytest.mark.parametrize(
    ("asked", "count", "each"),
    [
        ({PERCENT: 50}, 1, {CORE: 50, RATIO: 50}),
        ({PERCENT: 100}, 1, {CORE: 100, RATIO: 100}),
        ({PERCENT: 300}, 3, {CORE: 100, RATIO: 100}),
        ({"nvidia.com/gpu": 2}, 2, {CORE: 100, RATIO: 100}),
        ({"amd.com/gpu": 1}, 1, {CORE: 100, RATIO: 100}),
        ({CORE: 30, RATIO: 40}, 1, {CORE: 30, RATIO: 40}),
        ({CORE: 200, RATIO: 200}, 2, {CORE: 100, RATIO: 100}),
        ({CORE: 50, MEMORY: 8 << 30}, 1, {CORE: 50, MEMORY: 8 << 30}),
        ({MEMORY: 5}, 1, {MEMORY: 5}),
        ({RATIO: 20}, 1, {RATIO: 20}),
        ({SHARED: 2, MEMORY: 5}, 2, {MEMORY: 2}),
        ({SHARED: 9, MEMORY: 5}, 9, {MEMORY: 1}),
        ({NPU_CORE: 16, RATIO: 200}, 2, {NPU_CORE: 8, RATIO: 100}),
        (
            {SHARED: 1, NPU_CORE: 4, NPU_CPU: 4, MEMORY: 9},
            *(1, {NPU_CORE: 4, NPU_CPU: 4, MEMORY: 9}),
        ),
        ({SHARED: 2, CORE: 100, RATIO: 60}, 2, {CORE: 50, RATIO: 30}),
    ],
)
def test_cards(asked: dict[str, int], count: int, each: dict[str, int]) -> None:
    """Shares of one, or so many; what does not divide is rounded down."""
    assert device_requests.of({"cpu": 1, **asked}) == (DeviceRequest("gpu", count, each),)


def test_several_types() -> None:
    """Each is a wish of its own."""
    assert device_requests.of({PERCENT: 100, RDMA: 200, FPGA: 7}) == (
        DeviceRequest("gpu", 1, {CORE: 100, RATIO: 100}),
        DeviceRequest("rdma", 2, {RDMA: 100}),
        DeviceRequest("fpga", 1, {FPGA: 7}),
    )


def test_nothing() -> None:
    """Amounts of zero and other names mean no devices."""
    assert device_requests.of({"cpu": 1, "example.com/gpu": 3, PERCENT: 0}) == ()


@pytest.mark.parametrize(
    ("asked", "refusal"),
    [
        ({PERCENT: 150}, "invalid resource unit koordinator.sh/gpu: 150"),
        ({RDMA: 101}, "invalid resource unit koordinator.sh/rdma: 101"),
        ({CORE: 50}, "invalid resource device requests: [koordinator.sh/gpu-core]"),
        ({CORE: 150, RATIO: 100}, "invalid resource device requests"),
        ({PERCENT: 50, RATIO: 50}, "invalid resource device requests"),
        ({"nvidia.com/gpu": 1, PERCENT: 50}, "invalid resource device requests"),
        ({SHARED: 2}, "invalid resource device requests"),
        ({SHARED: 2, RATIO: 33}, "invalid resource device requests"),
        ({SHARED: 2, RATIO: 400}, "invalid resource device requests"),
        ({MEMORY: 5, RATIO: 5}, "invalid resource device requests"),
        ({SHARED: 2, NPU_CORE: 4, NPU_CPU: 4, MEMORY: 9}, "invalid resource device requests"),
        ({NPU_CORE: 4, NPU_CPU: 4, MEMORY: 9}, "invalid resource device requests"),
        ({SHARED: 1, NPU_CORE: 4, RATIO: 50}, "invalid resource device requests"),
        (
            {SHARED: 1, NPU_CORE: 4, NPU_CPU: 4, NPU_DVPP: 101, MEMORY: 9},
            "invalid resource device requests",
        ),
    ],
)
def test_what_does_not_go_together(asked: dict[str, int], refusal: str) -> None:
    """It is refused in words; of a pod that is placed already it is nothing."""
    with pytest.raises(BadObjectError) as caught:
        device_requests.of(asked)
    assert refusal in str(caught.value)
    assert device_requests.rough(asked) == ()


def test_absurd_amounts() -> None:
    """They are just that many."""
    [want] = device_requests.of({"nvidia.com/gpu": 2**56})
    assert want.count == 2**56
