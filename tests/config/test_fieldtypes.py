"""Single values are accepted or refused with a reason, and kept as they were written."""

from __future__ import annotations

import typing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from koordlet.config import fieldtypes, places, workload_sections
from koordlet.model import cpuset, qos

NAMES = (
    "Address",
    "CgroupPath",
    "CgroupRoot",
    "CpuList",
    "CpusOrCount",
    "Directory",
    "Name",
    "NodeName",
    "OptionalQuantity",
    "Quantities",
    "Quantity",
    "ServerName",
    "SocketPath",
    "StringMap",
    "Unit",
)
TYPES = {name: TypeAdapter(getattr(fieldtypes, name)) for name in NAMES}

GOOD = [
    ("Address", "127.0.0.1:9316"),
    ("Address", "[::1]:0"),
    ("Address", "node-1.example:65535"),
    ("CgroupPath", "batch"),
    ("CgroupPath", "a/b.slice/c d"),
    ("CgroupPath", "a..b/..c"),
    ("CgroupRoot", "/"),
    ("CgroupRoot", "/kubelet"),
    ("CpuList", "0-3,8"),
    ("CpuList", None),
    ("CpusOrCount", 4),
    ("CpusOrCount", "4"),
    ("Directory", "/var/lib/koordlet"),
    ("Name", "web-1.a_b"),
    ("NodeName", None),
    ("NodeName", "web-1.example"),
    ("ServerName", "Web-1"),
    ("Quantity", "500m"),
    ("Quantity", "1.5Gi"),
    ("OptionalQuantity", None),
    ("SocketPath", "/run/koordlet/koordlet.sock"),
    ("Unit", "nginx.service"),
    ("Unit", "getty@tty1.service"),
    ("Unit", "a\\x2db.slice"),
]

BAD = [
    ("Address", ":9316", "not HOST:PORT"),
    ("Address", "localhost", "not HOST:PORT"),
    ("Address", "127.0.0.1:65536", "not HOST:PORT"),
    ("Address", "a:1\n", "not HOST:PORT"),
    ("Address", "::1:9316", "not HOST:PORT"),
    ("CgroupPath", "../a", '"../a"'),
    ("CgroupPath", "a/../b", '"a/../b"'),
    ("CgroupPath", "/a", "relative"),
    ("CgroupPath", "a\nb", r'"a\nb"'),
    ("CgroupPath", "a\0", "control"),
    ("CgroupPath", "", "empty"),
    ("CgroupPath", ".", "plain"),
    ("CgroupPath", "a//b", "plain"),
    ("CgroupPath", "a/", "plain"),
    ("CgroupPath", 3, "expected a cgroup path"),
    ("CgroupRoot", "/a/../b", "plain"),
    ("CpuList", "0-", "not a CPU list item"),
    ("CpuList", "3-1", "backwards"),
    ("CpuList", "all", "depends on the machine"),
    ("CpuList", "0-N", "depends on the machine"),
    ("CpuList", "", "empty"),
    ("CpuList", ",", "names no CPU"),
    ("CpuList", True, "expected a CPU list"),
    ("CpuList", 70_000, "out of range"),
    ("CpusOrCount", 0, "1-65536"),
    ("CpusOrCount", -1, "1-65536"),
    ("CpusOrCount", 1.5, "expected a CPU list"),
    ("Directory", "var", "absolute"),
    ("Directory", "/a\nb", "absolute"),
    ("Name", "-a", "not a name"),
    ("Name", "a b", "not a name"),
    ("Name", "a" * 300, "not a name"),
    ("NodeName", "Web-1", 'not a name of a Kubernetes node: "Web-1"'),
    ("NodeName", "web_1", "not a name of a Kubernetes node"),
    ("Quantity", "1x", "not a quantity"),
    ("Quantity", "-1", "not be negative"),
    ("Quantity", float("nan"), "not a quantity"),
    ("Quantity", True, "expected a quantity"),
    ("Quantities", {"": "1"}, "resource name"),
    ("Quantities", {"a b": "1"}, "resource name"),
    ("SocketPath", "/" + "a" * 107, "at most 107 bytes"),
    ("Unit", "nginx", "not a systemd unit"),
    ("Unit", "a/b.service", "not a systemd unit"),
    ("Unit", "nginx.service\n", "not a systemd unit"),
    ("Unit", "a" * 255 + ".service", "not a systemd unit"),
]


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_good(name: str, value: object) -> None:
    """A good value is kept as it was written."""
    assert value == TYPES[name].validate_python(value, strict=True)


@pytest.mark.parametrize(("name", "value", "words"), BAD)
def test_bad(name: str, value: object, words: str) -> None:
    """A bad value is refused with a printable reason that shows it."""
    with pytest.raises(ValidationError) as caught:
        TYPES[name].validate_python(value, strict=True)

    message = caught.value.errors()[0]["msg"]
    assert words in message
    assert message.isprintable()
    assert len(message) < 200


@pytest.mark.parametrize(("given_value", "kept"), [(2, "2"), (0.5, "0.5"), (" 1 ", "1")])
def test_quantity_spellings(given_value: object, kept: str) -> None:
    """Numbers that YAML reads as such are quantities, too."""
    assert kept == TYPES["Quantity"].validate_python(given_value)


def test_one_cpu() -> None:
    """A list of one CPU may be written as a number."""
    assert TYPES["CpuList"].validate_python(3) == "3"


@given(
    st.sampled_from(sorted(TYPES)),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
)
def test_anything(name: str, value: object) -> None:
    """Whatever stands there is accepted or refused, nothing else."""
    details: list[Any] = []
    try:
        TYPES[name].validate_python(value)
    except ValidationError as error:
        details = list(error.errors())

    assert all(detail["msg"].isprintable() for detail in details)


@given(st.sets(st.integers(0, 300), min_size=1))
def test_cpu_lists(cpus: set[int]) -> None:
    """Every CPU list that we print is accepted."""
    text = str(cpuset.CPUSet.of(cpus))

    assert text == TYPES["CpuList"].validate_python(text)


@given(st.text())
def test_show(text: str) -> None:
    """A shown value is short and printable."""
    shown = places.show(text)

    assert shown.isprintable()
    assert len(shown) <= 10 * 61 + 3


def test_qos_classes() -> None:
    """The classes that a workload may name are those of the model."""
    choices = typing.get_args(workload_sections.Workload.model_fields["qos"].annotation)

    assert [pod_class.value for pod_class in qos.Qos] == list(choices)
