"""The types of single configuration values: CPU lists, quantities, units, paths, addresses.

Covers: what one value may look like, and the words that refuse a wrong one.
Does not cover: which fields exist (``schema``), finding the line of a value (``problems``).

Each type is a string in the shape that the operator wrote, checked: ``koordlet config`` prints it
back unchanged, and whoever consumes it parses it with the module named here.
"""

from __future__ import annotations

import ipaddress
import re
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NoReturn, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from koordlet.config import address, places
from koordlet.kubeapi import labels
from koordlet.model import cpuset, quantity, slices

#: The error type of every refusal made here; its context carries ``message`` and ``fix``.
REFUSED = "koordlet"

_T = TypeVar("_T")

#: A value, checked.
Check = Callable[[object], Any]

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
_RESOURCE = re.compile(
    r"([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?/)?[A-Za-z0-9]([\w.-]*\w)?\Z", re.ASCII
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

#: ``sun_path`` of a Unix socket holds 108 bytes with the terminating NUL.
_MAX_SOCKET_PATH = 107
_MAX_NAME = 253
_MAX_PATH = 4095


def refuse(message: str, fix: str = "", at: tuple[str | int, ...] = ()) -> NoReturn:
    """Refuse a value, saying what is wrong, what to do, and where below the value it is."""
    context = {"message": message, "fix": fix, "at": at}
    raise PydanticCustomError(REFUSED, "{message}", context)


def _ip_address(value: object) -> str:
    try:
        return str(ipaddress.ip_address(str(value)))
    except ValueError:
        refuse(
            f"{places.show(value)} is not an IP address", "an address without a mask, as 10.0.0.7"
        )


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        refuse(f"expected {what}, found {places.show(value)}")
    if value == "":
        refuse(f"expected {what}, found an empty string", "use null or leave the key out")
    return value


def _or_null(check: Check) -> BeforeValidator:
    return BeforeValidator(lambda value: None if value is None else check(value))


def _spelled(what: str, right: Callable[[str], object], wrong: str, fix: str = "") -> Check:
    """A text that is right, or else named with what is wrong about it."""

    def check(value: object) -> str:
        text = _text(value, what)
        if not right(text):
            refuse(f"{wrong}: {places.show(text)}", fix)
        return text

    return check


def _number_as_text(value: object, kinds: type[int] | types.UnionType) -> object:
    return str(value) if isinstance(value, kinds) and not isinstance(value, bool) else value


def _cpu_list(value: object) -> str:
    # A list of one CPU: ``cpus: 3`` reads as a number in YAML.
    text = _text(_number_as_text(value, int), "a CPU list")
    if re.search(r"\b(all|N)\b", text, re.IGNORECASE):
        refuse(f"{places.show(text)} depends on the machine", 'write the CPUs out, such as "0-3,8"')
    try:
        parsed = cpuset.CPUSet.parse(text)
    except ValueError as error:
        refuse(str(error), 'write a list such as "0-3,8"')
    if not parsed:
        refuse(f"{places.show(text)} names no CPU", "use null or leave the key out")
    return text


def _cpus_or_count(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 1 <= value <= cpuset.MAX_CPUS:
            refuse(f"a number of CPUs is 1-{cpuset.MAX_CPUS}, found {places.show(value)}")
        return value
    return _cpu_list(value)


def _quantity(value: object) -> str:
    text = _text(_number_as_text(value, int | float), "a quantity").strip()
    try:
        quantity.milli(text)
    except ValueError as error:
        refuse(str(error), 'write a quantity such as "500m", 2 or "4Gi"')
    if text.startswith("-"):
        refuse(f"a quantity must not be negative, found {places.show(text)}")
    return text


def _part(value: int | str) -> object:
    if isinstance(value, int):
        if not 0 <= value <= 100:
            refuse(f"{value} is not a percentage", "a number is percent, 0 to 100")
    elif quantity.units(value) < 0:
        refuse(f"{value} is negative", "give bits per second")
    return value


def _cgroup(value: object) -> str:
    text = _text(value, "a cgroup path")
    fix = 'write it relative to the cgroup root, such as "batch/jobs"'
    if _CONTROL.search(text):
        refuse(f"a cgroup path must not contain control characters, found {places.show(text)}", fix)
    if text.startswith("/"):
        refuse(f"a cgroup path must be relative, found {places.show(text)}", fix)
    if any(part in ("", ".", "..") for part in text.split("/")) or len(text) > _MAX_PATH:
        refuse(f"not a plain relative path: {places.show(text)}", fix)
    return text


def _is_path(text: str) -> bool:
    return not _CONTROL.search(text) and len(text) <= _MAX_PATH


def _socket(value: object) -> str:
    text: str = _directory(value)
    if len(text.encode(errors="replace")) > _MAX_SOCKET_PATH:
        refuse(f"a socket path has at most {_MAX_SOCKET_PATH} bytes, found {places.show(text)}")
    return text


_unit = _spelled(
    "a systemd unit",
    slices.is_unit,
    "not a systemd unit",
    'write the full name, such as "nginx.service"',
)
_cgroup_root = _spelled(
    "a cgroup path",
    lambda text: _is_path(text) and ".." not in text.split("/"),
    "not a plain cgroup path",
    'write it like "/kubelet"',
)
_directory = _spelled(
    "a path", lambda text: text.startswith("/") and _is_path(text), "not an absolute path"
)
_address = _spelled(
    "an address",
    address.is_one,
    "not HOST:PORT",
    'write it like "127.0.0.1:9316" or "[::1]:9316"; "0.0.0.0:9316" is every address',
)
_name = _spelled(
    "a name",
    lambda text: _NAME.match(text) and len(text) <= _MAX_NAME,
    "not a name",
    "use letters, digits and . _ - between them",
)
_node_name = _spelled(
    "a node name",
    labels.is_subdomain,
    "not a name of a Kubernetes node",
    "use lower-case letters, digits, - and .: a kubelet registers a host name in lower case",
)
_resource = _spelled(
    "a resource name", _RESOURCE.match, "not a resource name", 'write it like "cpu" or "memory"'
)


#: ``null`` is a map, or a list, without anything.
ABSENT_MAP = BeforeValidator(lambda value: {} if value is None else value)
Listed = Annotated[
    tuple[_T, ...],
    Field(strict=False),
    BeforeValidator(lambda value: () if value is None else value),
]
_NULL_OR_TEXT = WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "null"}]})
_TEXT = WithJsonSchema({"type": "string"})
_NUMBER_OR_TEXT = {"type": ["string", "number"]}

CpuList = Annotated[
    str | None,
    _or_null(_cpu_list),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "null"}],
            "examples": ["0-3,8", 3],
        }
    ),
]
CpusOrCount = Annotated[
    int | str | None,
    _or_null(_cpus_or_count),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}, {"type": "null"}],
            "examples": ["0-3,8", 4],
        }
    ),
]
IpAddress = Annotated[str, BeforeValidator(_ip_address), _TEXT]
Quantity = Annotated[str, _or_null(_quantity), WithJsonSchema(_NUMBER_OR_TEXT)]
OptionalQuantity = Annotated[
    str | None,
    _or_null(_quantity),
    WithJsonSchema({"type": ["string", "number", "null"], "examples": ["2", "1500m"]}),
]
#: Percent of the total as a number, or bits per second as a quantity.
Part = Annotated[int | str, Field(examples=[40, "200M"]), AfterValidator(_part)]
Unit = Annotated[str | None, _or_null(_unit), _NULL_OR_TEXT]
CgroupPath = Annotated[str | None, _or_null(_cgroup), _NULL_OR_TEXT]
CgroupRoot = Annotated[str | None, _or_null(_cgroup_root), _NULL_OR_TEXT]
Directory = Annotated[str | None, _or_null(_directory), _NULL_OR_TEXT]
SocketPath = Annotated[str | None, _or_null(_socket), _NULL_OR_TEXT]
Address = Annotated[str, BeforeValidator(_address), _TEXT]
OptionalAddress = Annotated[str | None, _or_null(_address), _NULL_OR_TEXT]
Name = Annotated[str, BeforeValidator(_name), _TEXT]
NodeName = Annotated[str | None, _or_null(_node_name), _NULL_OR_TEXT]
ServerName = Annotated[str | None, _or_null(_name), _NULL_OR_TEXT]

ResourceName = Annotated[str, BeforeValidator(_resource)]
StringMap = Annotated[
    Mapping[str, str],
    ABSENT_MAP,
    WithJsonSchema({"type": "object", "additionalProperties": {"type": "string"}}),
]
Quantities = Annotated[
    Mapping[ResourceName, Quantity],
    ABSENT_MAP,
    WithJsonSchema({"type": "object", "additionalProperties": _NUMBER_OR_TEXT}),
]
