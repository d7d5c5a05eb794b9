"""Devices and annotations as they are read, whatever is in them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.scheduler.allocation import devices
from koordlet.scheduler.allocation.devices import CORE, MEMORY, RATIO, DeviceFunction, Slice
from koordlet.scheduler.objects.wire import BadObjectError
from tests.kit.devices import gpu, rdma, report


def test_a_node_s_devices() -> None:
    """By type and minor, with what their sum is for the node."""
    name, reported = devices.decode(report("n", gpu(1), gpu(0, health=False), rdma(0)))

    assert name == "n"
    assert [(device.kind, device.minor, device.healthy) for device in reported.several] == [
        ("gpu", 0, False),
        ("gpu", 1, True),
        ("rdma", 0, True),
    ]

    assert reported.total() == {
        CORE: 200,
        RATIO: 200,
        MEMORY: 32 << 30,
        "koordinator.sh/gpu": 200,
        "koordinator.sh/gpu.shared": 200,
        "koordinator.sh/rdma": 100,
    }


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "gpu"},
        {"type": "gpu", "minor": -1},
        {"type": "gpu", "minor": True},
        {"type": "gpu", "minor": 2**31},
        {"type": ["gpu"], "minor": 3},
        "a card",
        None,
    ],
)
def test_a_device_that_cannot_be_read_costs_itself(broken: Any) -> None:
    """The others are there."""
    _, reported = devices.decode(report("n", broken, gpu(1)))
    assert [device.minor for device in reported.several] == [1]


def test_oddities_of_devices() -> None:
    """The first of one minor counts; no word about health is a bad one; no amounts, no room."""
    odd = gpu(0, resources={CORE: "-1"})
    odd.pop("health")
    _, reported = devices.decode(report("n", odd, gpu(0), gpu(1, id=None, topology=None)))

    first, second = reported.several
    assert (first.healthy, dict(first.room)) == (False, {})
    assert second.id == ""


@pytest.mark.parametrize(
    "body", [{"metadata": {}}, {"metadata": {"name": "n"}, "spec": []}, {"metadata": 7}]
)
def test_what_is_no_device_object(body: Any) -> None:
    """It is said which field."""
    with pytest.raises(BadObjectError):
        devices.decode(body)


def test_annotations_of_the_peers_are_read() -> None:
    """Numbers or texts; what we do not know of an entry is no harm."""
    spelled = json.dumps(
        {
            "gpu": [{"minor": 1, "id": "GPU-1", "resources": {CORE: 50, MEMORY: "8Gi"}}],
            "rdma": [
                {
                    "minor": 0,
                    "resources": {"koordinator.sh/rdma": "1"},
                    "extension": {"vfs": [{"minor": 1, "busID": "0000:1f:00.3"}]},
                }
            ],
        }
    )
    assert devices.read(spelled) == (
        Slice("gpu", 1, "GPU-1", {CORE: 50, MEMORY: 8 << 30}),
        Slice("rdma", 0, "", {"koordinator.sh/rdma": 1}, (DeviceFunction("0000:1f:00.3", 1),)),
    )


def test_what_is_written_is_what_the_peers_write() -> None:
    """Memory in powers of two; no id where none is known."""
    several = (
        Slice("gpu", 0, "GPU-0", {CORE: 100, MEMORY: 16 << 30, RATIO: 100}),
        Slice("rdma", 2, "", {"koordinator.sh/rdma": 100}),
    )
    assert devices.spelled(several) == {
        "gpu": [
            {
                "minor": 0,
                "id": "GPU-0",
                "resources": {CORE: "100", MEMORY: "16Gi", RATIO: "100"},
            }
        ],
        "rdma": [{"minor": 2, "resources": {"koordinator.sh/rdma": "100"}}],
    }


_AMOUNTS = st.dictionaries(
    st.sampled_from([CORE, MEMORY, RATIO, "koordinator.sh/rdma"]), st.integers(0, 2**40)
)
_SLICES = st.lists(
    st.builds(Slice, st.sampled_from(["gpu", "rdma"]), st.integers(0, 9), st.text(), _AMOUNTS)
)


@given(_SLICES)
def test_what_is_written_is_read_again(several: list[Slice]) -> None:
    """A restart knows exactly what was given."""
    shares = devices.read(json.dumps(devices.spelled(several)))
    assert sorted(map(repr, shares)) == sorted(map(repr, several))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["gpu", "minor", "resources", "spec", "devices", "type", CORE]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(_JSON)
def test_nonsense_names_nothing(body: Any) -> None:
    """Neither annotation nor object ends anything."""
    shares = devices.read(json.dumps(body))
    assert all(device.minor >= 0 for device in shares)
    assert devices.read(body if not isinstance(body, str) else None) == ()
    made = {"metadata": {"name": "n"}, "spec": {"devices": [body]}}
    _, told = devices.decode(made)
    assert len(told.several) <= 1


def test_depth_is_no_end() -> None:
    """An annotation nested a hundred thousand times names nothing."""
    assert devices.read("[" * 100_000) == ()
