"""What pods say about their devices, and what is wrong with it."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordlet.scheduler.allocation import device_hints
from koordlet.scheduler.allocation.device_hints import DeviceHint, JointAllocation
from koordlet.scheduler.allocation.gpu_partitions import PartitionSpec
from koordlet.scheduler.objects.wire import BadObjectError
from tests.kit.devices import HINT, JOINT, PARTITION


def test_a_pod_that_says_nothing_wishes_nothing() -> None:
    """Neither do null and other annotations."""
    assert device_hints.read({}) is device_hints.NONE
    null = dict.fromkeys((HINT, JOINT, PARTITION), "null")
    assert device_hints.read({"other": "{", **null}) == device_hints.NONE


def test_wishes_are_read_whatever_the_case_of_their_keys() -> None:
    """As in Go; a type is named once."""
    hint = {"RequiredTopologyScope": "PCIe", "exclusivePolicy": "PCIeLevel", "vfSelector": None}
    wishes = device_hints.read(
        {
            HINT: json.dumps({"gpu": hint, "rdma": {"allocateStrategy": "ApplyForAll"}, "x": None}),
            JOINT: '{"DeviceTypes": ["gpu", "rdma", "gpu"], "requiredScope": "SamePCIe"}',
            PARTITION: '{"allocatePolicy": "Restricted", "ringBusBandwidth": "100Gi"}',
        }
    )
    assert wishes.hints == {
        "gpu": DeviceHint(scope="PCIe", exclusive="PCIeLevel"),
        "rdma": DeviceHint(strategy="ApplyForAll"),
        "x": device_hints.NO_HINT,
    }
    assert wishes.joint == JointAllocation(("gpu", "rdma"), same_pcie=True)
    assert wishes.partition == PartitionSpec(restricted=True, bandwidth=Fraction(100 * 2**30))


def test_an_empty_wish_is_a_wish() -> None:
    """A pod that says nothing of its group wants one all the same."""
    wishes = device_hints.read({JOINT: "{}", PARTITION: "{}"})
    assert wishes.joint == JointAllocation((), same_pcie=False)
    assert wishes.partition == PartitionSpec()


@pytest.mark.parametrize(
    ("key", "text", "refusal"),
    [
        (HINT, "", "invalid DeviceAllocateHint annotation, err: "),
        (HINT, "[]", "invalid DeviceAllocateHint annotation, err: no JSON object"),
        (HINT, '{"gpu": 7}', "invalid DeviceAllocateHint annotation, err: gpu is no JSON object"),
        (
            HINT,
            '{"gpu": {"requiredTopologyScope": "Rack"}}',
            "DeviceAllocateHint annotation, err: gpu: requiredTopologyScope 'Rack' is unknown",
        ),
        (HINT, '{"gpu": {"exclusivePolicy": "x"}}', "gpu: exclusivePolicy 'x' is unknown"),
        (HINT, '{"gpu": {"allocateStrategy": 1}}', "gpu: allocateStrategy is not a string"),
        (
            HINT,
            '{"rdma": {"selector": {"matchLabels": 1}}}',
            "invalid Selector of DeviceHint, deviceType: rdma, err: ",
        ),
        (
            HINT,
            '{"rdma": {"vfSelector": 1}}',
            "invalid VFSelector of DeviceHint, deviceType: rdma, err: ",
        ),
        (JOINT, "{", "invalid DeviceJointAllocate annotation, err: "),
        (JOINT, '{"deviceTypes": 1}', "invalid DeviceJointAllocate annotation, err: deviceTypes"),
        (JOINT, '{"requiredScope": "Rack"}', "requiredScope 'Rack' is unknown"),
        (PARTITION, "7", "invalid GPUPartitionSpec annotation, err: "),
        (PARTITION, '{"allocatePolicy": "Must"}', "allocatePolicy 'Must' is unknown"),
        (
            PARTITION,
            '{"ringBusBandwidth": "fast"}',
            "invalid GPUPartitionSpec annotation, err: ringBusBandwidth",
        ),
    ],
)
def test_a_wish_that_cannot_be_read_is_refused_by_name(key: str, text: str, refusal: str) -> None:
    """In the peers' words; the reason is ours."""
    with pytest.raises(BadObjectError) as caught:
        device_hints.read({key: text})
    assert refusal in str(caught.value)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["gpu", "selector", "vfSelector", "matchLabels", "deviceTypes"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(_JSON, st.sampled_from([HINT, JOINT, PARTITION]))
def test_nonsense_is_read_or_refused(body: Any, key: str) -> None:
    """Nothing else comes of it."""
    try:
        wishes = device_hints.read({key: json.dumps(body)})
    except BadObjectError:
        return
    assert isinstance(wishes, device_hints.DeviceWishes)
